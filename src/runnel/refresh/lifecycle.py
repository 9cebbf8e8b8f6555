"""Creating, redefining and dropping tables, so that dying in between leaves at most a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from time import perf_counter

from runnel.catalog import StreamTable
from runnel.errors import AlreadyExists, RunnelError, SourceError, UserError
from runnel.lake.log import DeltaLog
from runnel.lake.names import TableKind, describe
from runnel.lake.session import translate
from runnel.model import refresh as states
from runnel.model.failpoints import reach
from runnel.model.names import RESERVED, TableName
from runnel.model.refresh import RefreshAction, TableState
from runnel.refresh.attempt import lease_of
from runnel.refresh.execute import Outcome, execute
from runnel.refresh.pins import Pins
from runnel.refresh.plan import RefreshPlan, plan_refresh
from runnel.refresh.storage import remove_storage, storage_lease
from runnel.refresh.workspace import Workspace


def create_table(workspace: Workspace, table: StreamTable, pins: Pins | None) -> StreamTable:
    """Fill a new trace (unless `pins` is None), then make the table known in one transaction."""
    check_name_is_free(workspace, table.name)
    with workspace.leases.hold(storage_lease(table.incarnation)):
        fill = _fill(workspace, table, pins)
        reach("create.before_catalog")
        _publish(workspace, fill, workspace.catalog.add_table)
    reach("create.after_catalog")
    _note(workspace, fill)
    return fill.table


def redefine_table(
    workspace: Workspace, old: StreamTable, new: StreamTable, pins: Pins | None
) -> StreamTable:
    """Replace a table's query: fill a trace of the new one, switch, remove the old trace."""
    with (
        workspace.leases.hold(lease_of(old.id), wait=workspace.settings.busy_wait_seconds) as lease,
        workspace.leases.hold(storage_lease(new.incarnation)),
    ):
        fill = _fill(workspace, new, pins)
        reach("alter.before_catalog")
        _publish(workspace, fill, lambda t: workspace.catalog.redefine_table(t, [lease]))
        reach("alter.after_catalog")
        _note(workspace, fill)
        remove_storage(workspace, old.incarnation)
        return fill.table


def switch_tables(
    workspace: Workspace,
    gone: Sequence[StreamTable],
    tables: Sequence[StreamTable],
    pins: Pins | None,
) -> None:
    """Fill new lives of several tables, each over those before it, then make all known at once.

    `gone` are the tables that end, and the present lives of those that go on.
    """
    wait = workspace.settings.busy_wait_seconds
    with ExitStack() as held:
        for old in sorted(gone, key=lambda t: t.id):
            held.enter_context(workspace.leases.hold(lease_of(old.id), wait=wait))
        for table in tables:
            held.enter_context(workspace.leases.hold(storage_lease(table.incarnation)))
        fills = _switch(workspace, gone, tables, pins)
        for fill in fills:
            _note(workspace, fill)
        for old in gone:
            remove_storage(workspace, old.incarnation)


def _switch(
    workspace: Workspace,
    gone: Sequence[StreamTable],
    tables: Sequence[StreamTable],
    pins: Pins | None,
) -> list[_Fill]:
    staged = workspace.staged(tables)
    # What a new table reads through a new part is found among those that are being made.
    pins = replace(pins, workspace=staged) if pins is not None else None
    fills: list[_Fill] = []
    try:
        for table in tables:
            fills.append(_fill(staged, table, pins))
            filled = staged.pending[table.name.key] = fills[-1].table
            if pins is not None:
                pins.set_epoch(filled.name.key, filled.incarnation, filled.epoch)
        reach("switch.before_catalog")
        workspace.catalog.replace_tables([t.id for t in gone], [f.table for f in fills])
    except Exception:
        for table in tables:
            remove_storage(workspace, table.incarnation)
        raise
    reach("switch.after_catalog")
    return fills


def drop_tables(workspace: Workspace, tables: Sequence[StreamTable]) -> None:
    """Forget tables together, then remove what they stored."""
    reach("drop.before_catalog")
    workspace.catalog.remove_tables([t.id for t in tables])
    reach("drop.after_catalog")
    for table in tables:
        remove_storage(workspace, table.incarnation)


def check_name_is_free(workspace: Workspace, name: TableName) -> None:
    """Refuse a name that Spark would not take, or that something has already."""
    if not re.fullmatch(r"[A-Za-z0-9_]+\.[A-Za-z0-9_]+", f"{name.schema}.{name.name}"):
        raise UserError(
            f"{name} cannot be the name of a table in Spark",
            detail="expected letters, digits and _ (columns may be called anything)",
            hint=f"call it {re.sub(r'[^A-Za-z0-9_]+', '_', name.name)}, for example",
        )
    if name.name.lower().startswith(RESERVED):
        begins = " or ".join(RESERVED)
        raise UserError(f"names that begin with {begins} are reserved", hint="choose another one")
    if workspace.catalog.find(name.key) is not None:
        raise AlreadyExists(
            f"stream table {name} already exists",
            hint="use CREATE OR REPLACE, IF NOT EXISTS, or another name",
        )
    info = describe(workspace.spark, name)
    kind = info.kind
    if kind is TableKind.MISSING:
        return
    # A readout view whose table another process dropped gives its name back.
    if kind is TableKind.VIEW and str(workspace.traces_path) in (info.view_text or ""):
        return
    raise AlreadyExists(
        f"{name} is already the name of a {'view' if kind is TableKind.VIEW else 'table'}",
        hint="choose another name, or drop it first",
    )


@dataclass(frozen=True, slots=True)
class _Fill:
    """A table whose storage is filled; without a plan it was left empty."""

    table: StreamTable
    plan: RefreshPlan | None = None
    outcome: Outcome | None = None
    seconds: float = 0.0


def _fill(workspace: Workspace, table: StreamTable, pins: Pins | None) -> _Fill:
    started = perf_counter()
    if pins is None:
        return _Fill(replace(table, state=TableState.UNINITIALIZED))
    plan = plan_refresh(workspace, table, pins.frontier(table.sources))
    try:
        outcome = execute(workspace, plan)
    except Exception as error:
        remove_storage(workspace, table.incarnation)
        raise translate(error) from error
    trace = workspace.trace(table)
    last = trace.last_commit()
    assert last is not None
    filled = replace(
        table, frontier=plan.frontier, epoch=last.epoch, since=last.since,
        trace_version=trace.log.latest_version(),
    )  # fmt: skip
    return _Fill(filled, plan, outcome, perf_counter() - started)


def _publish(workspace: Workspace, fill: _Fill, record: Callable[[StreamTable], object]) -> None:
    """Make the filled table known; when the catalog refuses it, its storage goes."""
    try:
        record(fill.table)
    except RunnelError:
        remove_storage(workspace, fill.table.incarnation)
        raise


def _note(workspace: Workspace, fill: _Fill) -> None:
    """The first fill is the first entry of the history, and the first measurement of FULL."""
    table, plan, outcome = fill.table, fill.plan, fill.outcome
    if outcome is None or plan is None:
        return
    attempt = workspace.catalog.start_attempt(
        table.id, workspace.leases.owner, predicted=plan.predicted
    )
    workspace.catalog.finish_attempt(
        attempt, states.Outcome.OK, action=RefreshAction.FULL, reason=plan.reason,
        rows_inserted=outcome.rows_inserted, rows_deleted=outcome.rows_deleted,
        change_rows=0, seconds=fill.seconds, phases=outcome.phases,
        predicted=plan.predicted, frontier=plan.frontier, epoch=table.epoch,
    )  # fmt: skip


def orphans(workspace: Workspace) -> list[str]:
    """Trace folders that no table owns and that nobody is filling."""
    folder = workspace.traces_path
    if not folder.is_dir():
        return []
    unknown = {entry.name for entry in folder.iterdir()} - _known(workspace)
    abandoned = {name for name in unknown if not _is_being_filled(workspace, name)}
    if not abandoned:
        return []
    # Asked again: whoever let go of a folder has told the catalog before.
    abandoned -= _known(workspace)
    # What a lost catalog knew can be had back: it is all that is left of those tables.
    lost = workspace.catalog.unknown_definitions() if abandoned else ()
    return sorted(abandoned - {t.incarnation for t in lost})


def _known(workspace: Workspace) -> set[str]:
    return {table.incarnation for table in workspace.catalog.progress()}


def _is_being_filled(workspace: Workspace, incarnation: str) -> bool:
    return workspace.leases.is_held(storage_lease(incarnation))


def remove_orphans(workspace: Workspace) -> list[str]:
    """Delete orphan folders; what was found is returned."""
    found = orphans(workspace)
    for incarnation in found:
        remove_storage(workspace, incarnation)
    return found


def storage_is_missing(workspace: Workspace, table: StreamTable) -> bool:
    """Whether someone removed the folder of a table that had contents."""
    try:
        DeltaLog(str(workspace.traces_path / table.incarnation)).latest_version()
    except SourceError:
        return table.epoch > 0
    return False
