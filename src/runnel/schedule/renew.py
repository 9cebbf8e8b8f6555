"""Before a pass: tables whose views or sources became others get the definition they have now.

Their sources may be others then, so it comes before the order and the pins of the pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from runnel.catalog import StreamTable
from runnel.errors import Busy, RunnelError
from runnel.lake.frames import SparkSession
from runnel.lake.session import translate
from runnel.model.refresh import TableState
from runnel.refresh.attempt import lease_of, note_failure
from runnel.refresh.pins import Pins
from runnel.refresh.recovery import recover
from runnel.refresh.reinitialize import rebuild_definition
from runnel.refresh.source_ddl import moved_source
from runnel.refresh.views import redefined_view
from runnel.refresh.workspace import Workspace
from runnel.schedule.order import check_no_cycle, refresh_order


def renew_views(
    workspace: Workspace, tables: dict[str, StreamTable], targets: set[str] | None, pins: Pins
) -> dict[str, RunnelError]:
    """Renew the tables of a pass where needed, in place; the errors of those that do not fit."""
    if not any(table.views or table.reinitialize for table in tables.values()):
        return {}
    wanted = [tables[key] for key in _order(workspace, tables, targets)]
    failed = _renew_moved(workspace, tables, wanted)
    current = [tables[table.name.key] for table in wanted if table.name.key not in failed]
    watched = [t for t in current if t.views and t.state is not TableState.SUSPENDED]
    spark = _spark(workspace, wanted, pins) if watched else None
    stamps: dict[str, str | None] = {}
    for table in watched:
        if spark is not None:
            try:
                tables[table.name.key] = _renewed(workspace, spark, table, stamps)
            except Exception as error:
                failed[table.name.key] = _noted(workspace, table, translate(error))
    return failed


def _renew_moved(
    workspace: Workspace, tables: dict[str, StreamTable], wanted: Iterable[StreamTable]
) -> dict[str, RunnelError]:
    """Those that must start over, and one of whose sources is to be found somewhere else."""
    failed: dict[str, RunnelError] = {}
    for table in wanted:
        if not table.reinitialize or table.state is TableState.SUSPENDED:
            continue
        try:
            if moved_source(workspace, table) is not None:
                tables[table.name.key] = _rebuilt(workspace, table, table.reinitialize)
        except Exception as error:
            failed[table.name.key] = _noted(workspace, table, translate(error))
    return failed


def _order(
    workspace: Workspace, tables: dict[str, StreamTable], targets: set[str] | None
) -> list[str]:
    return refresh_order(tables.values(), targets, workspace.settings.diamond_consistency)


def _spark(workspace: Workspace, tables: Iterable[StreamTable], pins: Pins) -> SparkSession | None:
    """The session that views are looked up in; none is started when no table has anything to do."""
    session = workspace.present_spark()
    if session is None and any(_has_work(table, pins) for table in tables):
        return workspace.spark
    return session


def _has_work(table: StreamTable, pins: Pins) -> bool:
    base = [source for source in table.sources if source.kind == "delta"]
    known = table.frontier.pins if table.frontier else {}
    try:
        found = pins.frontier(base).pins
    except RunnelError:
        return True
    return table.follows_time or any(known.get(key) != pin for key, pin in found.items())


def _renewed(
    workspace: Workspace, spark: SparkSession, table: StreamTable, stamps: dict[str, str | None]
) -> StreamTable:
    view = redefined_view(workspace, spark, table, stamps)
    return table if view is None else _rebuilt(workspace, table, f"view {view.name} was redefined")


def _rebuilt(workspace: Workspace, table: StreamTable, reason: str) -> StreamTable:
    wait = workspace.settings.busy_wait_seconds
    with workspace.leases.hold(lease_of(table.id), wait=wait):
        current = workspace.catalog.get(table.id)
        if current is None or (current.resolution, current.sources) != (
            table.resolution, table.sources
        ):  # fmt: skip
            return current or table
        # An epoch that the catalog does not know yet has the old definition: it comes first.
        current = recover(workspace, current)
        others = partial(check_no_cycle, workspace.catalog.tables(), table.name.key)
        return rebuild_definition(workspace, current, reason, others)


def _noted(workspace: Workspace, table: StreamTable, error: RunnelError) -> RunnelError:
    return error if isinstance(error, Busy) else note_failure(workspace, table, error)
