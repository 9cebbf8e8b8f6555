"""Tables whose views or sources became others get the definition they have now.

Before a pass, since their sources may be others then: it comes before the order and the pins. And
after a statement that was run here, where the new name is known: the names of a process are its
own, and `runnel run` might never see it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from runnel.catalog import Source, StreamTable
from runnel.errors import Busy, RunnelError
from runnel.lake.frames import SparkSession
from runnel.lake.session import translate
from runnel.model.alerts import AlertKind
from runnel.model.ddl import SourceChange, Taken
from runnel.model.refresh import TableState
from runnel.refresh.attempt import lease_of
from runnel.refresh.functions import SQL, watch_functions
from runnel.refresh.pins import Pins
from runnel.refresh.recording import note_failure
from runnel.refresh.recovery import recover
from runnel.refresh.reinitialize import other_columns, rebuild_definition
from runnel.refresh.source_ddl import is_concerned, moved_source
from runnel.refresh.views import record_views, redefined_view
from runnel.refresh.workspace import Workspace
from runnel.schedule.order import ALLOW, check_no_cycle, refresh_order

_log = logging.getLogger("runnel")


def renew_views(
    workspace: Workspace,
    tables: dict[str, StreamTable],
    targets: set[str] | None,
    pins: Pins,
    wait: float | None = None,
) -> dict[str, RunnelError]:
    """Renew the tables of a pass where needed, in place; the errors of those that do not fit.

    The errors are in the history already. `wait`: how long for someone else to let go of a table.
    """
    functions = workspace.catalog.functions(SQL)
    if not functions and not any(t.views or t.reinitialize for t in tables.values()):
        return {}
    wanted = [tables[key] for key in _order(workspace, tables, targets)]
    if functions:
        _watch(workspace, tables, wanted, functions, pins)
        wanted = [tables[table.name.key] for table in wanted]
    failed = _renew_noted(workspace, tables, wanted, wait)
    current = [tables[table.name.key] for table in wanted if table.name.key not in failed]
    watched = [t for t in current if t.views and t.state is not TableState.SUSPENDED]
    spark = _spark(workspace, wanted, pins) if watched else None
    stamps: dict[str, str | None] = {}
    for table in watched:
        if spark is not None:
            try:
                tables[table.name.key] = _renewed(workspace, spark, table, stamps, wait)
            except Exception as error:
                failed[table.name.key] = _noted(workspace, table, translate(error))
    return failed


def renew_readers(workspace: Workspace, change: SourceChange) -> None:
    """After a statement: those who read what it changed. Who no longer fits is left as it is.

    The next refresh of such a table says why.
    """
    if change.kind not in (Taken.TABLE, Taken.VIEW):
        return
    for table in workspace.catalog.tables():
        if not is_concerned(table, change):
            continue
        try:
            known = record_views(workspace, table)
            if (reason := _outdated(workspace, known)) is not None:
                workspace.alerts.emit(AlertKind.REINITIALIZE_NEEDED, table.label, reason)
                _rebuilt(workspace, known, reason)
        except Exception as error:
            _log.warning("%s: %s", table.label, translate(error).primary)


def _watch(
    workspace: Workspace, tables: dict[str, StreamTable], wanted: Sequence[StreamTable],
    functions: Iterable[str], pins: Pins,
) -> None:  # fmt: skip
    """Have those start over that call a function which does something else now."""
    texts = [table.text.lower() for table in wanted]
    called = [name for name in functions if any(name in text for text in texts)]
    spark = _spark(workspace, wanted, pins) if called else None
    try:
        if spark is not None and watch_functions(workspace, spark, called):
            tables |= {t.name.key: t for t in workspace.catalog.tables() if t.name.key in tables}
    except Exception as error:
        _log.warning("functions could not be looked at: %s", translate(error).primary)


def _renew_noted(
    workspace: Workspace,
    tables: dict[str, StreamTable],
    wanted: Iterable[StreamTable],
    wait: float | None,
) -> dict[str, RunnelError]:
    """Those of which the catalog says that they read something else now."""
    failed: dict[str, RunnelError] = {}
    noted = [table for table in wanted if table.reinitialize or table.new_view]
    if noted:
        workspace.renew_names()
    for table in noted:
        if table.state is TableState.SUSPENDED:
            continue
        try:
            if (reason := _outdated(workspace, table)) is not None:
                tables[table.name.key] = _rebuilt(workspace, table, reason, wait)
        except Exception as error:
            failed[table.name.key] = _noted(workspace, table, translate(error))
    return failed


def _outdated(workspace: Workspace, table: StreamTable) -> str | None:
    """Why a definition is not what it was: a view, or a source that is somewhere else now."""
    if table.new_view is not None:
        return f"view {table.new_view.name} was redefined"
    if table.reinitialize and moved_source(workspace, table) is not None:
        return table.reinitialize
    return None


def _order(
    workspace: Workspace, tables: dict[str, StreamTable], targets: set[str] | None
) -> list[str]:
    return refresh_order(tables.values(), targets, workspace.settings.diamond_consistency)


def _spark(workspace: Workspace, tables: Iterable[StreamTable], pins: Pins) -> SparkSession | None:
    """The session that views are looked up in; none is started when no table has anything to do."""
    session = workspace.present_spark()
    if session is None and any(_has_work(table, pins) for table in tables):
        return workspace.nameless_spark
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
    workspace: Workspace,
    spark: SparkSession,
    table: StreamTable,
    stamps: dict[str, str | None],
    wait: float | None,
) -> StreamTable:
    view = redefined_view(workspace, spark, table, stamps)
    if view is None:
        return table
    return _rebuilt(workspace, table, f"view {view.name} was redefined", wait)


def _rebuilt(
    workspace: Workspace, table: StreamTable, reason: str, wait: float | None = None
) -> StreamTable:
    patience = workspace.settings.busy_wait_seconds if wait is None else wait
    with workspace.leases.hold(lease_of(table.id), wait=patience) as lease:
        current = workspace.catalog.get(table.id)
        if current is None or (current.resolution, current.sources) != (
            table.resolution, table.sources
        ):  # fmt: skip
            return current or table
        # An epoch that the catalog does not know yet has the old definition: it comes first.
        current = recover(workspace, current, lease)
        renewed = rebuild_definition(workspace, current, reason, _accept(workspace, current))
        if renewed.incarnation == current.incarnation:
            return renewed
        return _put_off(workspace, current, renewed, reason)


def _accept(workspace: Workspace, table: StreamTable) -> Callable[[Sequence[Source]], None]:
    """A view that closes a cycle makes none: its tables have to be defined as one."""
    again = f"or make it a cycle: ALTER STREAM TABLE {table.owner} AS {table.written}"
    otherwise = again if workspace.settings.allow_circular else ALLOW
    tables, key = workspace.catalog.tables(), table.name.key
    return partial(check_no_cycle, tables, key, otherwise=otherwise)


def _put_off(
    workspace: Workspace, table: StreamTable, renewed: StreamTable, reason: str
) -> StreamTable:
    """Its storage must become another: its next refresh does that, from the tables it has now."""
    if _places(renewed) != _places(table):
        raise other_columns(table, renewed.layout)
    noted = table.reinitialize or reason
    workspace.catalog.update_table(table.id, reinitialize=noted)
    return replace(table, reinitialize=noted)


def _places(table: StreamTable) -> set[tuple[str, str | None]]:
    return {(source.key, source.location) for source in table.sources}


def _noted(workspace: Workspace, table: StreamTable, error: RunnelError) -> RunnelError:
    return error if isinstance(error, Busy) else note_failure(workspace, table, error)
