"""One refresh of one table under its lease, from recovering the last one to recording this one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

from runnel.catalog import Lease, Source, StreamTable, set_grouped
from runnel.errors import Busy, NotFound, RunnelError, SourceError
from runnel.model import refresh as states
from runnel.model.alerts import AlertKind
from runnel.model.failpoints import reach
from runnel.model.frontier import Frontier
from runnel.model.refresh import RefreshAction, TableState
from runnel.model.results import RefreshResult
from runnel.refresh.execute import Outcome, execute
from runnel.refresh.near import NearRows
from runnel.refresh.overflow import is_on_the_way
from runnel.refresh.plan import RefreshPlan, in_full, plan_refresh
from runnel.refresh.recording import (
    Begun,
    begin,
    cause_of,
    fail,
    note_failure,
    record,
    result_of,
    tell,
)
from runnel.refresh.recovery import current, recover
from runnel.refresh.reinitialize import rebuild_definition
from runnel.refresh.starting_over import NewLives, start_over
from runnel.refresh.workspace import Workspace


def lease_of(table_id: str) -> str:
    return f"table:{table_id}"


def refresh_table(
    workspace: Workspace,
    table_id: str,
    frontier: Frontier,
    *,
    wait: float | None = None,
    near: NearRows | None = None,
) -> RefreshResult:
    """Bring a table to a frontier; the frontier is read again once the lease is held.

    `wait`: how long for someone else to let go of the table; by default what is set. `near` is what
    it shares with other tables of its pass.
    """
    if (quick := _no_data(workspace, table_id, frontier)) is not None:
        return quick
    patience = workspace.settings.busy_wait_seconds if wait is None else wait
    with workspace.leases.hold(lease_of(table_id), wait=patience) as lease:
        start = perf_counter()
        table = _by_itself(workspace, recovered(workspace, table_id, lease))
        if table.state is TableState.SUSPENDED:
            return skipped(table, "the table is suspended")
        if table.frontier and table.frontier.data_timestamp >= frontier.data_timestamp:
            return skipped(table, "it is already at a newer data timestamp")
        if reads_older(table, frontier):
            return skipped(table, "it has already read newer versions of its sources")
        begun = begin(workspace, table)
        try:
            plan, outcome = carry_out(workspace, table, frontier, [lease], begun, near=near)
            result = result_of(plan, outcome, perf_counter() - start)
            record(workspace, table, plan, begun.id, result, lease)
        except Exception as error:
            cause = cause_of(error, [lease])
            raise fail(workspace, table, begun, cause, perf_counter() - start) from error
        except BaseException:
            known = begun.known(perf_counter() - start)
            workspace.catalog.finish_attempt(begun.id, states.Outcome.INTERRUPTED, **known)
            raise
        reach("refresh.after_record")
        tell(workspace, table, result)
        return result


def recovered(workspace: Workspace, table_id: str, lease: Lease) -> StreamTable:
    """The table in step with its trace; when that cannot be read, this is a refresh that failed."""
    table = current(workspace, table_id)
    try:
        return recover(workspace, table, lease)
    except (NotFound, Busy):
        raise
    except Exception as error:
        raise note_failure(workspace, table, error) from error


def _by_itself(workspace: Workspace, table: StreamTable) -> StreamTable:
    """A table that was in a group and is no longer: every commit of it is visible at once."""
    if table.grouped:
        set_grouped(workspace.catalog, [table.id], False)
    return replace(table, grouped=False)


def reads_older(table: StreamTable, frontier: Frontier) -> bool:
    """A pass of another process, whose clock is ahead, may be later by its T alone."""
    known = table.frontier.pins if table.frontier else {}
    return any(
        key in known and known[key].identity == pin.identity and known[key].version > pin.version
        for key, pin in frontier.pins.items()
    )


def _no_data(workspace: Workspace, table_id: str, frontier: Frontier) -> RefreshResult | None:
    """The usual case, without a lease: every source stands where it stood."""
    start = perf_counter()
    table = current(workspace, table_id)
    if not is_unmoved(workspace, table, frontier):
        return None
    result = unmoved(table, frontier, perf_counter() - start)
    owner = workspace.leases.owner
    if not workspace.catalog.record_no_data(table, frontier, owner, result.seconds, result.reason):
        return None
    return result


def is_unmoved(workspace: Workspace, table: StreamTable, frontier: Frontier) -> bool:
    """Whether a refresh to a frontier has nothing to do, as far as can be told without a lease."""
    return not (
        table.frontier is None
        or table.state is not TableState.ACTIVE
        or table.reinitialize
        or table.follows_time
        or table.frontier.pins != frontier.pins
        or table.frontier.data_timestamp >= frontier.data_timestamp
        or not _is_settled(workspace, table)
    )


def _is_settled(workspace: Workspace, table: StreamTable) -> bool:
    """Whether the trace is where the catalog has it; why it cannot be read is found out later."""
    try:
        return workspace.trace(table).log.latest_version() == table.trace_version
    except RunnelError:
        return False


def unmoved(table: StreamTable, frontier: Frontier, seconds: float) -> RefreshResult:
    """What a refresh gives that had nothing to do."""
    return RefreshResult(
        name=str(table.name), action=RefreshAction.NO_DATA, reason="no source changed",
        change_rows=0, seconds=seconds, data_timestamp=frontier.data_timestamp,
        frontier=frontier, epoch=table.epoch,
    )  # fmt: skip


def carry_out(
    workspace: Workspace,
    table: StreamTable,
    frontier: Frontier,
    held: Sequence[Lease],
    begun: Begun,
    group: str | None = None,
    near: NearRows | None = None,
    lives: NewLives | None = None,
) -> tuple[RefreshPlan, Outcome]:
    """Plan and execute; Busy when one of the leases that are held was lost meanwhile.

    `lives` takes those of a group that start over, and are not to be seen before the others.
    """
    reach("refresh.before_plan")
    planning = perf_counter()
    plan = plan_refresh(workspace, table, frontier)
    if plan.action is RefreshAction.REINITIALIZE:
        workspace.alerts.emit(AlertKind.REINITIALIZE_NEEDED, table.label, plan.reason)
        pinned = partial(_require_pins, table, frontier)
        plan = replace(plan, table=rebuild_definition(workspace, table, plan.reason, pinned))
    planned = perf_counter() - planning
    phases = begun.note(plan, planned)
    plan = replace(plan, group=group, attempt=begun.id)
    check_all(held)
    if plan.table.incarnation != table.incarnation:
        if lives is not None:
            return plan, lives.fill(table, plan, phases)
        return plan, start_over(workspace, table, plan, held, phases)
    try:
        return plan, execute(workspace, plan, near, phases=phases)
    except Exception as error:
        if not is_on_the_way(workspace, plan, error):
            raise
        plan = in_full(workspace, plan, "a sum overflowed while the change was added to it")
        phases = begun.note(plan, planned)
        check_all(held)
        return plan, execute(workspace, plan, phases=phases)


def check_all(held: Sequence[Lease]) -> None:
    for lease in held:
        lease.check()


def _require_pins(table: StreamTable, frontier: Frontier, sources: Sequence[Source]) -> None:
    """A view or a name may have come to stand for other tables since the pass began."""
    places = {source.key: source.location for source in table.sources}
    if any(
        source.key not in frontier.pins or places.get(source.key, "") != source.location
        for source in sources
    ):
        raise SourceError(
            f"the query of {table.name} reads other tables since this refresh began",
            hint="refresh again",
        )


def skipped(table: StreamTable, reason: str) -> RefreshResult:
    """What a refresh gives that was not done."""
    return RefreshResult(
        name=str(table.name),
        action=RefreshAction.SKIP,
        reason=reason,
        data_timestamp=table.frontier.data_timestamp if table.frontier else None,
        frontier=table.frontier,
        epoch=table.epoch,
    )
