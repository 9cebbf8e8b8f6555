"""One pass: tables refreshed in order, all to the same pins."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from runnel.catalog import Source, StreamTable
from runnel.model.refresh import RefreshAction, TableState
from runnel.model.results import RefreshResult
from runnel.refresh.attempt import refresh_table
from runnel.refresh.compaction import compact_when_due
from runnel.refresh.pins import Pins
from runnel.refresh.workspace import Workspace
from runnel.schedule.order import refresh_order

Notice = Callable[[RefreshResult], None]


def refresh_pass(
    workspace: Workspace, targets: set[str] | None, notice: Notice = lambda result: None
) -> dict[str, RefreshResult]:
    """Refresh tables (None: all) and everything above them; results by key, in order."""
    tables = {t.name.key: t for t in workspace.catalog.tables()}
    pins = Pins(workspace)
    results: dict[str, RefreshResult] = {}
    for key in refresh_order(tables.values(), targets):
        results[key] = _refresh(workspace, tables[key], pins)
        notice(results[key])
    return results


def bring_up(workspace: Workspace, sources: Iterable[Source]) -> Pins:
    """Refresh the stream tables among the sources, and all above them, to pins for a new table."""
    tables = {t.name.key: t for t in workspace.catalog.tables()}
    pins = Pins(workspace)
    targets = {s.key for s in sources if s.kind == "stream"}
    for key in refresh_order(tables.values(), targets) if targets else ():
        _refresh(workspace, tables[key], pins)
    return pins


def _refresh(workspace: Workspace, table: StreamTable, pins: Pins) -> RefreshResult:
    result = refresh_table(workspace, table.id, pins.frontier(table.sources))
    after = workspace.catalog.get(table.id)
    if after is not None and after.state is not TableState.UNINITIALIZED:
        epoch = result.epoch if result.epoch is not None else after.epoch
        pins.set_epoch(table.name.key, after.incarnation, epoch)
    if result.action is not RefreshAction.NO_DATA:
        compact_when_due(workspace, table.id)
    return result
