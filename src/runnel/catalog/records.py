"""What the catalog holds, as frozen values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, TypedDict

from runnel.model.alerts import Alert, AlertKind
from runnel.model.columns import Layout
from runnel.model.frontier import Frontier
from runnel.model.names import OF_PART, TableName
from runnel.model.refresh import Outcome, RefreshAction, RefreshMode, TableState
from runnel.model.schedule import Schedule
from runnel.model.smoothing import averaged
from runnel.model.views import Resolution, View

CYCLE, IN_CYCLE, READS = "cycle", "in_cycle", "reads"
"""Options of tables that read each other, and of the table that holds their rows."""

PART_OF, WHOLE = "part_of", "whole"
"""Options of a table that holds a part of another one's query, and of that one."""


@dataclass(frozen=True, slots=True)
class Source:
    """One table a query reads; `key` is how frontiers name it.

    `columns` are those the query uses, `known` all that the table had when the query was defined
    (empty: not recorded): what is added later is not in the query's sight.
    """

    key: str
    kind: Literal["delta", "stream"]
    name: TableName
    location: str | None
    table_id: str | None
    columns: tuple[str, ...]
    known: tuple[str, ...] = ()

    @property
    def is_part(self) -> bool:
        """Whether it is a part of the query that reads it."""
        return self.name.name.startswith(OF_PART)


def owner_of(options: Mapping[str, str]) -> TableName | None:
    """The table whose query a table with these options holds a part of."""
    return TableName(*json.loads(options[PART_OF])["name"]) if PART_OF in options else None


def with_options(options: Mapping[str, str], changed: Mapping[str, str | None]) -> dict[str, str]:
    """Options of a table after some were changed (None: removed)."""
    return {name: value for name, value in {**options, **changed}.items() if value is not None}


@dataclass(frozen=True, slots=True)
class BaseTable:
    """An external Delta table known by a name."""

    name: TableName
    location: str


@dataclass(frozen=True, slots=True)
class StreamTable:
    """A stream table: its definition, and how far it has been refreshed.

    `query` is what the user wrote; `resolution` what is evaluated, where that is something else.
    `grouped`: it advances together with others, so its trace may hold an epoch that is not visible
    yet; `epoch` and `trace_version` are always those that readers see.
    After an error it is left alone until `retry_at`; `work_seconds` is what its refreshes take,
    `wait_seconds` how long before that they wait for other tables.
    """

    id: str
    name: TableName
    query: str
    mode: RefreshMode
    schedule: Schedule | None
    state: TableState
    comment: str | None
    incarnation: str
    layout: Layout
    settings: dict[str, str]
    not_differential: str | None
    sources: tuple[Source, ...]
    frontier: Frontier | None
    epoch: int
    since: int
    trace_version: int
    reinitialize: str | None
    consecutive_errors: int
    last_error: str | None
    options: dict[str, str]
    created_at: datetime
    altered_at: datetime
    resolution: Resolution | None = None
    grouped: bool = False
    retry_at: datetime | None = None
    work_seconds: float | None = None
    wait_seconds: float | None = None

    @property
    def text(self) -> str:
        """The query that is compiled and evaluated: it reads tables only."""
        return self.resolution.text if self.resolution else self.query

    @property
    def views(self) -> tuple[View, ...]:
        return self.resolution.views if self.resolution else ()

    @property
    def new_view(self) -> View | None:
        """A view whose definition is recorded, but not read by the table yet."""
        return next((view for view in self.views if view.is_new), None)

    @property
    def follows_time(self) -> bool:
        return self.resolution is not None and self.resolution.follows_time

    @property
    def written(self) -> str:
        """The query as the user wrote it, in whichever dialect."""
        return self.options.get("query", self.query)

    @property
    def keeps_cycle(self) -> bool:
        """Whether it is no table of the user's, but holds the rows of a cycle of them."""
        return CYCLE in self.options

    @property
    def part_of(self) -> TableName | None:
        """The table whose query it holds a part of."""
        return owner_of(self.options)

    def is_part_of(self, table: StreamTable) -> bool:
        return self.part_of is not None and self.part_of.key == table.name.key

    @property
    def is_hidden(self) -> bool:
        """Whether it is no table of the user's, but serves one."""
        return self.keeps_cycle or PART_OF in self.options

    @property
    def whole(self) -> str:
        """The query over the user's own tables, also where parts of it are tables of their own."""
        return self.options.get(WHOLE, self.text)

    @property
    def is_cut(self) -> bool:
        """Whether parts of its query are kept in tables of their own."""
        return WHOLE in self.options

    @property
    def cycle(self) -> str | None:
        """The key of the table that holds the rows of the cycle it is in."""
        return self.options.get(IN_CYCLE)

    @property
    def reads(self) -> tuple[Source, ...]:
        """The tables that its query names; it may be computed from something else."""
        if READS not in self.options:
            return self.sources
        return tuple(
            Source(key, kind, TableName(*name), None, None, ())
            for key, kind, name in json.loads(self.options[READS])
        )

    @property
    def owner(self) -> str:
        """What the user calls that which it belongs to: a query, with its parts, or a cycle."""
        return str(self.part_of) if self.part_of is not None else self.label

    @property
    def label(self) -> str:
        """What to call it before the user."""
        if PART_OF in self.options:
            return f"part {json.loads(self.options[PART_OF])['number']} of {self.part_of}"
        if not self.keeps_cycle:
            return str(self.name)
        return f"cycle of {', '.join(str(TableName(*m['name'])) for m in self.cycle_members)}"

    @property
    def cycle_members(self) -> list[dict[str, Any]]:
        """The members of the cycle whose rows it holds, as they were recorded."""
        return list(json.loads(self.options[CYCLE])) if self.keeps_cycle else []


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a table has come, without its definition; `frontier` is the stored text."""

    id: str
    state: TableState
    incarnation: str
    epoch: int
    frontier: str | None
    reinitialize: str | None
    consecutive_errors: int
    retry_at: datetime | None
    work_seconds: float | None
    wait_seconds: float | None

    @property
    def is_failing(self) -> bool:
        return self.consecutive_errors > 0


@dataclass(frozen=True, slots=True)
class QuietMove:
    """A table that moves to a later instant without having changed.

    `attempt` is the entry of the history that is prolonged by this, for the `times`th time.
    """

    table_id: str
    known: Progress
    frontier: Frontier
    attempt: int | None = None
    times: int = 1

    def stands_at(self, stored: Progress) -> bool:
        """Whether the table is still where it was known to be."""
        return (stored.incarnation, stored.epoch, stored.frontier, stored.state) == (
            self.known.incarnation, self.known.epoch, self.known.frontier, self.known.state
        )  # fmt: skip

    @property
    def row(self) -> dict[str, Any]:
        # Who has no news waits for nobody.
        waited = averaged(self.known.wait_seconds, 0.0)
        return {
            "of_table": self.table_id, "to_frontier": self.frontier.to_json(), "to_wait": waited
        }  # fmt: skip

    def prolonged(self, now: datetime) -> dict[str, Any]:
        return {
            "of_attempt": self.attempt,
            "new_finished_at": now,
            "new_data_timestamp": self.frontier.data_timestamp,
            "new_phases": {"times": self.times},
        }

    def begun(self, now: datetime, owner: str) -> dict[str, Any]:
        return {
            "table_id": self.table_id, "owner": owner, "started_at": now, "finished_at": now,
            "outcome": Outcome.OK.value, "action": RefreshAction.NO_DATA.value,
            "reason": "no source changed", "rows_inserted": 0, "rows_deleted": 0,
            "change_rows": 0, "seconds": 0.0, "phases": {}, "predicted": {},
            "frontier": self.frontier.to_json(), "epoch": self.known.epoch,
            "data_timestamp": self.frontier.data_timestamp,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at refreshing a table; `finished_at` is None while it runs."""

    id: int
    table_id: str
    table_name: str
    started_at: datetime
    finished_at: datetime | None
    outcome: Outcome
    action: RefreshAction | None
    reason: str | None
    rows_inserted: int | None
    rows_deleted: int | None
    change_rows: int | None
    seconds: float | None
    phases: dict[str, float]
    predicted: dict[str, float]
    data_timestamp: datetime | None
    frontier: Frontier | None
    epoch: int | None
    error: str | None
    error_code: str | None
    owner: str


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt that failed: when it began, and the code of its error."""

    at: datetime
    code: str | None


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of comparing a table with its query."""

    table_id: str
    at: datetime
    ok: bool
    missing: int
    unexpected: int
    sample: list[dict[str, Any]] = field(default_factory=list)
    frontier: Frontier | None = None
    seconds: float | None = None


class Questions(Protocol):
    """What every reader of the catalog answers."""

    def tables(self) -> tuple[StreamTable, ...]: ...
    def find(self, key: str) -> StreamTable | None: ...
    def history(self, key: str | None = None, limit: int = 20) -> tuple[Attempt, ...]: ...
    def last_verification(self, table_id: str) -> Verification | None: ...
    def alerts(
        self,
        key: str | None = None,
        kind: AlertKind | None = None,
        limit: int = 50,
        *,
        lasting: bool = False,
    ) -> tuple[Alert, ...]: ...


class TableFields(TypedDict, total=False):
    """What `update_table` can set by itself."""

    schedule: Schedule | None
    mode: RefreshMode
    state: TableState
    comment: str | None
    not_differential: str | None
    reinitialize: str | None
    consecutive_errors: int
    last_error: str | None
    retry_at: datetime | None
    work_seconds: float | None
    wait_seconds: float | None
    settings: dict[str, str]
    options: Mapping[str, str | None]
    resolution: Resolution | None
    altered_at: datetime


FORGIVEN: TableFields = {"consecutive_errors": 0, "last_error": None, "retry_at": None}
"""What is recorded of a table when its errors are over."""


class AttemptFields(TypedDict, total=False):
    """What is known of an attempt when it ends."""

    action: RefreshAction | None
    reason: str | None
    rows_inserted: int | None
    rows_deleted: int | None
    change_rows: int | None
    seconds: float | None
    phases: dict[str, float]
    predicted: dict[str, float]
    data_timestamp: datetime | None
    frontier: Frontier | None
    epoch: int | None
    error: str | None
    error_code: str | None
