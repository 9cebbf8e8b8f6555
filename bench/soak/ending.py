"""After a soak: every table is brought up to date, verified, and compared with what was written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

import runnel
from bench.soak.checks import grouped, reach
from bench.soak.daemon import WORK
from bench.soak.graph import NAMES, path_of
from bench.soak.load import Truth
from bench.soak.report import Report
from runnel.model.refresh import Outcome, RefreshAction

_MANY = 100_000


def measure(lake: runnel.Lake, report: Report, seconds: float) -> None:
    """How well the targets were kept; to be asked while the daemon still keeps them."""
    for stats in lake.stats(window=seconds):
        if stats.target_seconds is not None and stats.lag_attainment is not None:
            report.attainment[stats.name] = (stats.target_seconds, stats.lag_attainment)


def settle(lake: runnel.Lake, folder: Path, truth: Truth, report: Report, began: datetime) -> None:
    """Fill in what can be told only when all is over."""
    report.tables = len(NAMES)
    for name in NAMES:
        _look_back(lake, name, report, began)
    for status in lake.status():
        if status.state != "ACTIVE":
            report.broken.append(f"{status.name} is {status.state}: {status.last_error}")
    lake.refresh()
    for name in NAMES:
        verified = lake.verify(name)
        if verified.ok:
            report.verified.append(name)
        else:
            report.broken.append(str(verified))
    _compare(lake, folder, truth, report)
    report.judge()


def _look_back(lake: runnel.Lake, name: str, report: Report, began: datetime) -> None:
    """Count a table's refreshes since the daemon began: no epoch twice, nothing still running,
    and all by differences, as the tables are defined.

    The history of a table in a cycle is also the cycle's, which may start from empty after deletes.
    """
    epochs: list[tuple[str, int | None]] = []
    for entry in lake.history(name, limit=_MANY):
        if entry.started_at < began:
            break
        report.failed += entry.outcome is Outcome.FAILED
        report.interrupted += entry.outcome is Outcome.INTERRUPTED
        if entry.outcome is Outcome.FAILED:
            report.broken.append(f"{name} failed: {entry.error}")
        if entry.outcome is Outcome.RUNNING:
            report.broken.append(f"{name} is said to be running after the daemon ended")
        if entry.outcome is Outcome.OK and entry.action in WORK:
            epochs.append((entry.name, entry.epoch))
            if entry.name != name:
                continue
            report.refreshes += 1
            if entry.action is not RefreshAction.DIFFERENTIAL:
                report.broken.append(f"{name} was computed anew: {entry.reason}")
    twice = sorted({e for e in epochs if e[1] is not None and epochs.count(e) > 1})
    if twice:
        report.broken.append(f"{name} made its epochs {twice} more than once")


def _compare(lake: runnel.Lake, folder: Path, truth: Truth, report: Report) -> None:
    """Nothing was lost, nothing came twice: against the writer's own account of it."""
    entries = truth.entries()
    credits = [amount for _, _, amount in entries if amount > 0]
    even, odd = reach(truth.edges)
    balances = grouped((account, amount) for _, account, amount in entries)
    stored = DeltaTable(path_of(folder, "entries")).to_pyarrow_table().to_pylist()
    expected: dict[str, tuple[list[Any], Callable[[], list[Any]]]] = {
        "entries": (entries, lambda: [tuple(row.values()) for row in stored]),
        "balances": (
            [(account, total, n) for account, (total, n) in balances.items()],
            lambda: _rows(lake, "balances"),
        ),
        "credited_all": (
            [(sum(credits), len(credits)) if credits else (None, None)],
            lambda: _rows(lake, "credited_all"),
        ),
        "reach_even": (list(even), lambda: _rows(lake, "reach_even")),
        "reach_odd": (list(odd), lambda: _rows(lake, "reach_odd")),
    }
    for name, (wanted, found) in expected.items():
        if sorted(wanted) != sorted(found()):
            report.broken.append(f"{name} does not hold what was written")


def _rows(lake: runnel.Lake, name: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in lake.table(name).collect()]
