"""Rows of a trace that only cancel others: many of them make reading dear, so it is tidied."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from runnel.catalog import Attempt, StreamTable
from runnel.model.refresh import RefreshAction
from runnel.model.settings import Settings
from runnel.refresh.workspace import Workspace

_SMALL = 100_000
# Of the changed rows of a source, where nothing is known of the table: an update is two of them.
_SHARE_DELETED = 0.5


def is_much(settings: Settings, superseded: int, rows: int) -> bool:
    """Whether so many of the rows only cancel others that rewriting all of them pays."""
    return superseded > most_superseded(settings, rows)


def most_superseded(settings: Settings, rows: int) -> int:
    """How many rows of a trace may only cancel others before it is compacted."""
    return max(_SMALL, int(settings.compact_share * rows))


def rows_to_tidy(
    workspace: Workspace, table: StreamTable, change_rows: int, history: Iterable[Attempt]
) -> int:
    """How many rows are rewritten after a differential refresh of a change; 0 when none are."""
    # One epoch after the last time it is not due yet.
    if table.epoch == 0 or table.epoch <= table.since:
        return 0
    trace = workspace.trace(table)
    rows = trace.row_estimate(table.epoch)
    deleted = int(change_rows * _share_deleted(history))
    superseded = trace.superseded_rows(table.epoch) + 2 * deleted
    return rows if is_much(workspace.settings, superseded, rows) else 0


def _share_deleted(history: Iterable[Attempt]) -> float:
    """How many rows of the table went for each changed row of its sources, lately."""
    known = [
        (attempt.rows_deleted or 0) / attempt.change_rows
        for attempt in history
        if attempt.action is RefreshAction.DIFFERENTIAL and attempt.change_rows
    ]
    return median(known) if known else _SHARE_DELETED
