"""One pass: tables refreshed in order, all to the same pins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from runnel.catalog import Source, StreamTable
from runnel.errors import RunnelError
from runnel.model.names import RESERVED, TableName
from runnel.model.refresh import RefreshAction, TableState
from runnel.model.results import RefreshResult
from runnel.refresh.attempt import note_failure, refresh_table
from runnel.refresh.compaction import tidy_when_due
from runnel.refresh.group import refresh_group
from runnel.refresh.pins import Pins
from runnel.refresh.workspace import Workspace
from runnel.schedule.alerting import note_caught_up
from runnel.schedule.diamonds import Unit
from runnel.schedule.newest import newest_state
from runnel.schedule.order import refresh_units
from runnel.schedule.renew import renew_views

Notice = Callable[[RefreshResult], None]


def refresh_pass(
    workspace: Workspace, targets: set[str] | None, notice: Notice = lambda result: None
) -> dict[str, RefreshResult]:
    """Refresh tables (None: all) and everything above them; results by key, in order.

    A table that fails holds up those below it, not the others; its error is raised at the end.
    """
    tables = {t.name.key: t for t in workspace.catalog.tables()}
    keys = {str(t.name): key for key, t in tables.items()}
    pins = Pins(workspace)
    failed = renew_views(workspace, tables, targets, pins)
    results: dict[str, RefreshResult] = {}
    for unit in _units(workspace, tables, targets):
        for result in _refresh_unit(workspace, [tables[key] for key in unit], pins, failed):
            key = keys[result.name]
            if not tables[key].keeps_cycle:
                results[key] = result
                notice(result)
    note_caught_up(workspace.catalog, workspace.alerts, datetime.now(UTC))
    if failed:
        raise next(iter(failed.values()))
    return results


def bring_up(workspace: Workspace, sources: Sequence[Source], target: float | None = None) -> Pins:
    """Refresh the stream tables among the sources, and all above them, to pins for a new table.

    Not when they have a common state that is fresh enough for its target lag.
    """
    tables = {t.name.key: t for t in workspace.catalog.tables()}
    pins = Pins(workspace)
    if target is not None:
        oldest = pins.data_timestamp - timedelta(seconds=target)
        if (found := newest_state(tables, sources, oldest)) is not None:
            return Pins(workspace, found.data_timestamp, dict(found.pins))
    targets = {s.key for s in sources if s.kind == "stream"}
    for error in renew_views(workspace, tables, targets, pins).values() if targets else ():
        raise error
    for unit in _units(workspace, tables, targets) if targets else ():
        refresh_unit(workspace, [tables[key] for key in unit], pins)
    return pins


def refresh_unit(
    workspace: Workspace, tables: Sequence[StreamTable], pins: Pins
) -> list[RefreshResult]:
    """Refresh a table by itself, or the tables of an atomic group together."""
    if len(tables) == 1:
        return [_refresh(workspace, tables[0], pins)]
    results = refresh_group(workspace, [table.id for table in tables], pins)
    for table in tables:
        result = results[table.name.key]
        _pin(workspace, table, result, pins)
        if result.action not in (RefreshAction.NO_DATA, RefreshAction.SKIP):
            tidy_when_due(workspace, table.id)
    return list(results.values())


def _units(
    workspace: Workspace, tables: Mapping[str, StreamTable], targets: set[str] | None
) -> list[Unit]:
    return refresh_units(tables.values(), targets, workspace.settings.diamond_consistency)


def _refresh_unit(
    workspace: Workspace,
    tables: Sequence[StreamTable],
    pins: Pins,
    failed: dict[str, RunnelError],
) -> list[RefreshResult]:
    """The results of a unit; when it fails or has to wait, that is noted for those below it."""
    known = {table.name.key for table in tables}
    upstream = next((s for t in tables for s in t.sources if s.key in failed), None)
    error = next((failed[key] for key in sorted(known) if key in failed), None)
    if upstream is not None and upstream.key not in known:
        waiting = [t for t in tables if t.name.key not in failed]
        failed.update({t.name.key: failed[upstream.key] for t in waiting})
        return [_held_up(table, upstream.name) for table in waiting]
    if error is None:
        try:
            return refresh_unit(workspace, tables, pins)
        except RunnelError as found:
            error = found
    failed.update(dict.fromkeys(known, error))
    return []


def _held_up(table: StreamTable, upstream: TableName) -> RefreshResult:
    reason = f"{upstream}, which it reads, could not be refreshed"
    if upstream.name.startswith(RESERVED):
        reason = "the rows of its cycle could not be found"
    return RefreshResult(str(table.name), RefreshAction.SKIP, reason, epoch=table.epoch)


def _refresh(workspace: Workspace, table: StreamTable, pins: Pins) -> RefreshResult:
    try:
        frontier = pins.frontier(table.sources)
    except RunnelError as error:
        raise note_failure(workspace, table, error) from error
    result = refresh_table(workspace, table.id, frontier)
    _pin(workspace, table, result, pins)
    if result.action is not RefreshAction.NO_DATA:
        tidy_when_due(workspace, table.id)
    return result


def _pin(workspace: Workspace, table: StreamTable, result: RefreshResult, pins: Pins) -> None:
    """Those below it read the table where this pass left it."""
    after = workspace.catalog.get(table.id)
    if after is not None and after.state is not TableState.UNINITIALIZED:
        epoch = result.epoch if result.epoch is not None else after.epoch
        pins.set_epoch(table.name.key, after.incarnation, epoch)
