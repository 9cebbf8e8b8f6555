"""One pass: tables refreshed in order, all to the same pins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from runnel.catalog import Source, StreamTable
from runnel.errors import RunnelError
from runnel.model.refresh import RefreshAction, TableState
from runnel.model.results import RefreshResult
from runnel.refresh.attempt import note_failure, refresh_table
from runnel.refresh.compaction import tidy_when_due
from runnel.refresh.pins import Pins
from runnel.refresh.workspace import Workspace
from runnel.schedule.alerting import note_caught_up
from runnel.schedule.order import refresh_order
from runnel.schedule.renew import renew_views

Notice = Callable[[RefreshResult], None]


def refresh_pass(
    workspace: Workspace, targets: set[str] | None, notice: Notice = lambda result: None
) -> dict[str, RefreshResult]:
    """Refresh tables (None: all) and everything above them; results by key, in order.

    A table that fails holds up those below it, not the others; its error is raised at the end.
    """
    tables = {t.name.key: t for t in workspace.catalog.tables()}
    pins = Pins(workspace)
    failed = renew_views(workspace, tables, targets, pins)
    results: dict[str, RefreshResult] = {}
    for key in refresh_order(tables.values(), targets):
        table = tables[key]
        if key in failed:
            continue
        upstream = next((s.key for s in table.sources if s.key in failed), None)
        if upstream is not None:
            failed[key] = failed[upstream]
            results[key] = _held_up(table, tables[upstream])
        else:
            try:
                results[key] = _refresh(workspace, table, pins)
            except RunnelError as error:
                failed[key] = error
                continue
        notice(results[key])
    note_caught_up(workspace.catalog, workspace.alerts, datetime.now(UTC))
    if failed:
        raise next(iter(failed.values()))
    return results


def bring_up(workspace: Workspace, sources: Iterable[Source]) -> Pins:
    """Refresh the stream tables among the sources, and all above them, to pins for a new table."""
    tables = {t.name.key: t for t in workspace.catalog.tables()}
    pins = Pins(workspace)
    targets = {s.key for s in sources if s.kind == "stream"}
    for error in renew_views(workspace, tables, targets, pins).values() if targets else ():
        raise error
    for key in refresh_order(tables.values(), targets) if targets else ():
        _refresh(workspace, tables[key], pins)
    return pins


def _held_up(table: StreamTable, upstream: StreamTable) -> RefreshResult:
    reason = f"{upstream.name}, which it reads, could not be refreshed"
    return RefreshResult(str(table.name), RefreshAction.SKIP, reason, epoch=table.epoch)


def _refresh(workspace: Workspace, table: StreamTable, pins: Pins) -> RefreshResult:
    try:
        frontier = pins.frontier(table.sources)
    except RunnelError as error:
        raise note_failure(workspace, table, error) from error
    result = refresh_table(workspace, table.id, frontier)
    after = workspace.catalog.get(table.id)
    if after is not None and after.state is not TableState.UNINITIALIZED:
        epoch = result.epoch if result.epoch is not None else after.epoch
        pins.set_epoch(table.name.key, after.incarnation, epoch)
    if result.action is not RefreshAction.NO_DATA:
        tidy_when_due(workspace, table.id)
    return result
