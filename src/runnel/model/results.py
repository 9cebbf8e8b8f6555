"""What the verbs give back to the user."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from runnel.model.frontier import Frontier
from runnel.model.refresh import Outcome, RefreshAction, RefreshMode, TableState
from runnel.model.tabular import Record, duration

_WAYS = ("differential", "full")

ITERATIONS = "iterations"
"""Among the phases of a cycle's refresh: how many rounds it took."""
TIDYING = "tidying"
"""A phase that follows a refresh when it is done: what was appended is compacted or merged."""

SHARED = "shared"
"""Among the phases: the part of `change` spent on what several tables of the pass read."""

# The line above each step of a printed program.
_STEP = re.compile(r"^-- (\w+: .*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, repr=False)
class RefreshResult(Record):
    """What one refresh of one table did, and why in that way."""

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "name", "action", "reason", "rows_inserted", "rows_deleted", "change_rows", "seconds",
    )  # fmt: skip

    name: str
    action: RefreshAction
    reason: str
    rows_inserted: int = 0
    rows_deleted: int = 0
    change_rows: int | None = None
    seconds: float = 0.0
    data_timestamp: datetime | None = None
    frontier: Frontier | None = None
    epoch: int | None = None
    phases: dict[str, float] = field(default_factory=dict)
    predicted: dict[str, float] = field(default_factory=dict)

    @property
    def receipt(self) -> str:
        """What it cost, beside what either way was predicted to cost."""
        return receipt_of(self.seconds, self.predicted)

    def __str__(self) -> str:
        rows = f"+{self.rows_inserted:,} -{self.rows_deleted:,} rows"
        return f"{self.name}: {self.action}, {rows} in {duration(self.seconds)} ({self.reason})"


@dataclass(frozen=True, slots=True, repr=False)
class VerifyResult(Record):
    """Whether a table holds what its query gives at the same versions; true when it does."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("name", "ok", "missing", "unexpected", "seconds")

    name: str
    ok: bool
    missing: int = 0
    unexpected: int = 0
    sample: tuple[Mapping[str, Any], ...] = ()
    frontier: Frontier | None = None
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        if self.ok:
            return f"{self.name}: OK, equal to its query ({duration(self.seconds)})"
        head = (
            f"{self.name}: DIFFERENT, {self.missing:,} rows missing, {self.unexpected:,} unexpected"
        )
        return "\n".join([head, *(f"  {dict(row)}" for row in self.sample)])


@dataclass(frozen=True, slots=True, repr=False)
class TableStatus(Record):
    """A stream table as it stands; `lag_seconds` is how far it may be behind its sources.

    That is None when it was never filled, or when wrong clocks leave nothing to tell it by.
    `target_seconds` is its schedule, or for DOWNSTREAM that of the consumer which needs it most
    often; `lag_note` says why a target cannot be kept, `next_due` when `run` comes to it.
    `verified_at` and the rest are of the last VERIFY: whether it was equal, how many rows differed.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "name", "state", "mode", "schedule", "lag", "stale", "epoch", "last_action",
        "last_refresh_at", "consecutive_errors",
    )  # fmt: skip

    name: str
    state: TableState
    mode: RefreshMode
    schedule: str | None = None
    lag_seconds: float | None = None
    target_seconds: float | None = None
    stale: bool | None = None
    data_timestamp: datetime | None = None
    epoch: int = 0
    last_action: RefreshAction | None = None
    last_reason: str | None = None
    last_refresh_at: datetime | None = None
    consecutive_errors: int = 0
    last_error: str | None = None
    sources: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    comment: str | None = None
    refresh_reason: str | None = None
    query: str | None = None
    views: tuple[str, ...] = ()
    lag_note: str | None = None
    next_due: datetime | None = None
    verified_at: datetime | None = None
    verified_ok: bool | None = None
    verified_missing: int | None = None
    verified_unexpected: int | None = None

    @property
    def lag(self) -> str:
        return duration(self.lag_seconds)


@dataclass(frozen=True, slots=True, repr=False)
class HistoryEntry(Record):
    """One refresh attempt; `predicted` holds the estimated seconds of each way to do it."""

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "name", "started_at", "outcome", "action", "rows_inserted", "rows_deleted", "receipt",
        "reason", "error",
    )  # fmt: skip

    name: str
    started_at: datetime
    outcome: Outcome
    finished_at: datetime | None = None
    action: RefreshAction | None = None
    reason: str | None = None
    rows_inserted: int | None = None
    rows_deleted: int | None = None
    change_rows: int | None = None
    seconds: float | None = None
    phases: dict[str, float] = field(default_factory=dict)
    predicted: dict[str, float] = field(default_factory=dict)
    data_timestamp: datetime | None = None
    frontier: Frontier | None = None
    epoch: int | None = None
    error: str | None = None
    error_code: str | None = None
    owner: str | None = None
    id: int | None = None

    @property
    def receipt(self) -> str:
        """What it cost, beside what either way was predicted to cost."""
        return receipt_of(self.seconds, self.predicted)

    @property
    def iterations(self) -> int | None:
        """How many rounds the rows of a cycle took to come to rest."""
        return int(self.phases[ITERATIONS]) if ITERATIONS in self.phases else None


@dataclass(frozen=True, slots=True, repr=False)
class CycleStatus(Record):
    """Stream tables that read each other, and how finding their rows ended the last time.

    `error` is that of the last attempt; the rest tells of the last one that had rows to find.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "members", "iterations", "converged", "action", "seconds", "refreshed_at", "error",
    )  # fmt: skip

    members: tuple[str, ...]
    iterations: int | None = None
    converged: bool | None = None
    action: RefreshAction | None = None
    seconds: float | None = None
    refreshed_at: datetime | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class CompactResult(Record):
    """What compacting one trace did; nothing changes for its readers."""

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "name", "compacted", "reason", "since", "files_before", "files_after", "rows_before",
        "rows_after", "seconds",
    )  # fmt: skip

    name: str
    compacted: bool
    reason: str
    since: int = 0
    files_before: int | None = None
    files_after: int | None = None
    rows_before: int | None = None
    rows_after: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Record):
    """How a query would be, or is, kept up to date.

    `tree` names the law of each operator, `costly` those that look at more than the change, `now`
    what a refresh would do at this moment; `place` and `hint` belong to a refused construct.
    `parts` are groupings inside the query that have a trace of their own, which the rest reads.
    """

    name: str | None
    mode: RefreshMode
    differentiable: bool
    reason: str
    place: str | None = None
    hint: str | None = None
    now: str = ""
    costly: tuple[str, ...] = ()
    tree: str = ""
    program: str = ""
    readout: str = ""
    sources: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    translation: str = ""
    parts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text()

    def text(self, *, full: bool = False) -> str:
        """For a terminal: the steps of the program by name and purpose, or with all their SQL."""
        way = "differentially" if self.differentiable else "by full recomputation"
        head = [f"{self.name or 'query'} ({self.mode}): maintained {way}", self.reason]
        head += [f"at: {self.place}"] if self.place else []
        head += [f"hint: {self.hint}"] if self.hint else []
        sections = (
            ("now", self.now),
            ("in Spark SQL", self.translation),
            ("sources", "\n".join(self.sources)),
            ("through the views", "\n".join(self.views)),
            ("parts kept in traces of their own", "\n".join(self.parts)),
            ("costly", "\n".join(self.costly)),
            ("operator tree", self.tree),
            ("change program", self.program if full else "\n".join(_STEP.findall(self.program))),
            ("readout", self.readout),
        )
        return "\n\n".join(
            ["\n".join(head), *(f"{title}\n{_indent(text)}" for title, text in sections if text)]
        )


def receipt_of(seconds: float | None, predicted: Mapping[str, float]) -> str:
    """`0.6 s (differential 0.5 s, full 0.9 s predicted)`; what is not known is left out."""
    ways = [f"{way} {duration(predicted[way])}" for way in _WAYS if way in predicted]
    guess = f"({', '.join(ways)} predicted)" if ways else ""
    return " ".join(part for part in (duration(seconds), guess) if part)


def predicted_for(action: RefreshAction | None, predicted: Mapping[str, float]) -> float | None:
    """The prediction for what was done, if there was one."""
    match action:
        case RefreshAction.DIFFERENTIAL:
            return predicted.get("differential")
        case RefreshAction.FULL | RefreshAction.REINITIALIZE:
            return predicted.get("full")
    return None


def _indent(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.strip("\n").splitlines())
