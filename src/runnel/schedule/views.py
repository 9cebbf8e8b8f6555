"""What the scheduler knows of a table, and of a lake: values, and the questions it asks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from runnel.errors import ErrorClass, RunnelError
from runnel.model.frontier import Pin
from runnel.model.refresh import TableState
from runnel.model.results import RefreshResult
from runnel.model.schedule import Schedule
from runnel.schedule.units import Unit


@dataclass(frozen=True, slots=True)
class TableView:
    """A stream table for the scheduler; times are seconds since 1970.

    `is_restless`: a refresh has something to do even when no source changed. `label` is what to
    call a table before the user that is not the user's own. `since` is when it was last defined.
    A refresh takes `seconds`, and begins `waited` seconds after the instant that it leads to.
    `seen_at`: when it came to its `timestamp`, where that was ahead of the clock.
    """

    key: str
    name: str
    id: str
    schedule: Schedule | None = None
    reads: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    state: TableState = TableState.ACTIVE
    timestamp: float | None = None
    pins: Mapping[str, Pin] = field(default_factory=dict)
    incarnation: str = ""
    epoch: int = 0
    is_restless: bool = False
    reinitialize: str | None = None
    errors: int = 0
    retry_at: float | None = None
    seconds: float | None = None
    label: str = ""
    since: float = 0.0
    waited: float | None = None
    seen_at: float | None = None

    @property
    def title(self) -> str:
        return self.label or self.name


class Snapshot(Protocol):
    """One instant of all base sources; a source that could not be read has no pin."""

    @property
    def timestamp(self) -> float: ...
    @property
    def pins(self) -> Mapping[str, Pin]: ...


@dataclass(frozen=True, slots=True)
class Start:
    """Refresh this unit to this instant."""

    number: int
    unit: Unit
    snapshot: Snapshot


class Ending(StrEnum):
    """How a refresh of a unit ended.

    BUSY: someone else is at it. OVERTAKEN: it has moved on, or changed, since the pass began. LOST:
    this process has lost what it needs for any refresh.
    """

    DONE = "done"
    FAILED = "failed"
    BUSY = "busy"
    OVERTAKEN = "overtaken"
    ABANDONED = "abandoned"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a start: what was done, or whose fault it is that it was not.

    `fault` is what was lost, if that is how it ended.
    """

    start: Start
    ending: Ending
    results: tuple[RefreshResult, ...] = ()
    error: str | None = None
    error_class: ErrorClass | None = None
    is_retryable: bool = False
    failed: str | None = None
    fault: RunnelError | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A refresh that failed before; `is_retryable`: by an outage, not by the query or a source."""

    at: float
    is_retryable: bool


class Book(Protocol):
    """The lake's record, as the scheduler reads and writes it."""

    def revision(self) -> int:
        """Grows with every change of definitions."""
        ...

    def tables(self) -> dict[str, TableView]: ...
    def progress(self, known: Mapping[str, TableView]) -> dict[str, TableView]:
        """The same tables, as far as they have come now."""
        ...

    def pin(self, timestamp: float, tables: Collection[TableView]) -> Snapshot:
        """Look once at each distinct base source of these tables."""
        ...

    def quiet(self, snapshot: Snapshot, tables: Iterable[TableView]) -> Collection[str]:
        """Move tables without news to the snapshot; the keys of those that were still there."""
        ...

    def failures(self, table: TableView) -> Sequence[Failure]:
        """The table's errors in a row, newest first."""
        ...

    def note_wait(self, table: TableView) -> None: ...
    def skip(self, table: TableView, reason: str) -> None: ...
    def hold_off(self, table: TableView, until: float) -> None: ...
    def suspend(self, table: TableView, reason: str) -> None: ...


def instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
