"""What a table's history amounts to: totals, durations, and how well its target lag was held."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean, median
from typing import ClassVar

from runnel.model.refresh import Outcome, RefreshAction
from runnel.model.results import HistoryEntry, predicted_for
from runnel.model.tabular import Record

_NO_WORK = (RefreshAction.NO_DATA, RefreshAction.SKIP)
_MOST_TIMES = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class TableStats(Record):
    """One table over one window of time.

    Durations are those of refreshes that did some work. `lag_attainment` is the share of
    `measured_seconds` (the window from the first commit on) at which the lag was within
    `target_seconds`; `cost_ratio` the median of actual by predicted seconds.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "name", "refreshes", "actions", "failed", "rows_inserted", "rows_deleted",
        "average_seconds", "p50_seconds", "p95_seconds", "target_seconds", "lag_attainment",
        "cost_ratio",
    )  # fmt: skip

    name: str
    since: datetime
    until: datetime
    refreshes: int = 0
    actions: dict[str, int] = field(default_factory=dict)
    failed: int = 0
    interrupted: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    rows_inserted: int = 0
    rows_deleted: int = 0
    change_rows: int = 0
    total_seconds: float = 0.0
    average_seconds: float | None = None
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    p99_seconds: float | None = None
    max_seconds: float | None = None
    average_by_action: dict[str, float] = field(default_factory=dict)
    target_seconds: float | None = None
    measured_seconds: float = 0.0
    lag_attainment: float | None = None
    average_lag_seconds: float | None = None
    max_lag_seconds: float | None = None
    cost_ratio: float | None = None


def summarize(
    name: str,
    history: Iterable[HistoryEntry],
    since: datetime,
    until: datetime,
    target_seconds: float | None = None,
) -> TableStats:
    """The statistics of one table from its attempts, in any order.

    Attempts that ended before `since` count for nothing but the lag with which the window began.
    """
    entries = list(history)
    ended = [e for e in entries if e.finished_at and since <= e.finished_at <= until]
    done = [e for e in ended if e.outcome is Outcome.OK]
    seconds = sorted(e.seconds for e in done if e.seconds is not None and _is_work(e))
    lag = lag_over(entries, since, until, target_seconds)
    return TableStats(
        name,
        since,
        until,
        refreshes=len(done),
        actions=_counted(str(e.action) for e in done if e.action),
        failed=_with(ended, Outcome.FAILED),
        interrupted=_with(ended, Outcome.INTERRUPTED),
        errors=_counted(e.error_code for e in ended if e.error_code),
        rows_inserted=sum(e.rows_inserted or 0 for e in done),
        rows_deleted=sum(e.rows_deleted or 0 for e in done),
        change_rows=sum(e.change_rows or 0 for e in done),
        total_seconds=math.fsum(e.seconds or 0.0 for e in ended),
        average_seconds=fmean(seconds) if seconds else None,
        p50_seconds=percentile(seconds, 0.5),
        p95_seconds=percentile(seconds, 0.95),
        p99_seconds=percentile(seconds, 0.99),
        max_seconds=seconds[-1] if seconds else None,
        average_by_action=_averages(done),
        target_seconds=target_seconds,
        measured_seconds=lag.seconds,
        lag_attainment=lag.attainment,
        average_lag_seconds=lag.average,
        max_lag_seconds=lag.greatest,
        cost_ratio=_cost_ratio(done),
    )


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The least of the values that at least this share of them does not exceed."""
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1] if ordered else None


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag over `seconds` of time."""

    seconds: float = 0.0
    attainment: float | None = None
    average: float | None = None
    greatest: float | None = None


def lag_over(
    history: Iterable[HistoryEntry], since: datetime, until: datetime, target: float | None
) -> Lag:
    """The lag at t is t less the newest data timestamp committed at t: between two commits it
    grows with the clock, so that each stretch between them is known exactly.
    """
    steps = _steps(history, since, until)
    if not steps:
        return Lag(attainment=None if target is None else 0.0)
    seconds = (until - steps[0][0]).total_seconds()
    within = area = 0.0
    for begin, end, newest in steps:
        first, last = (begin - newest).total_seconds(), (end - newest).total_seconds()
        area += (first + last) / 2 * (last - first)
        within += max(0.0, min(last, target) - first) if target is not None else 0.0
    greatest = max((end - newest).total_seconds() for _, end, newest in steps)
    return Lag(seconds, None if target is None else within / seconds, area / seconds, greatest)


def _steps(
    history: Iterable[HistoryEntry], since: datetime, until: datetime
) -> list[tuple[datetime, datetime, datetime]]:
    """Stretches of the window with the newest data timestamp that was committed during each."""
    commits = sorted(
        commit for entry in history if entry.outcome is Outcome.OK for commit in _commits(entry)
    )
    ends = [at for at, _ in commits[1:]] + [until]
    steps: list[tuple[datetime, datetime, datetime]] = []
    newest: datetime | None = None
    for (at, data_timestamp), following in zip(commits, ends, strict=False):
        newest = data_timestamp if newest is None else max(newest, data_timestamp)
        begin, end = max(at, since), min(following, until)
        if begin < end:
            steps.append((begin, end, newest))
    return steps


def _commits(entry: HistoryEntry) -> Iterator[tuple[datetime, datetime]]:
    """When an entry committed which data timestamp; a quiet time did so again and again.

    One that lies after its commit was set by a clock that ran ahead: contents are never newer.
    """
    if entry.finished_at is None or entry.data_timestamp is None:
        return
    times = min(int(entry.phases.get("times", 1)), _MOST_TIMES)
    reached = min(entry.data_timestamp, entry.finished_at)
    behind = entry.finished_at - reached
    length = entry.finished_at - entry.started_at
    for i in range(times - 1):
        at = entry.started_at + length * (i / (times - 1))
        yield at, at - behind
    yield entry.finished_at, reached


def _is_work(entry: HistoryEntry) -> bool:
    return entry.action is not None and entry.action not in _NO_WORK


def _with(entries: Sequence[HistoryEntry], outcome: Outcome) -> int:
    return sum(entry.outcome is outcome for entry in entries)


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _averages(done: Sequence[HistoryEntry]) -> dict[str, float]:
    seconds: dict[str, list[float]] = {}
    for entry in done:
        if entry.action is not None and entry.seconds is not None:
            seconds.setdefault(str(entry.action), []).append(entry.seconds)
    return {action: fmean(values) for action, values in sorted(seconds.items())}


def _cost_ratio(done: Sequence[HistoryEntry]) -> float | None:
    ratios = [
        entry.seconds / predicted
        for entry in done
        if entry.seconds and (predicted := predicted_for(entry.action, entry.predicted))
    ]
    return median(ratios) if ratios else None
