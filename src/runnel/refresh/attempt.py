"""One refresh of one table under its lease, from recovering the last one to recording this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from time import perf_counter

from runnel.catalog import Source, StreamTable, set_grouped
from runnel.catalog.records import FORGIVEN, AttemptFields
from runnel.errors import Abandoned, Busy, NotFound, RunnelError, SourceError, SparkEnded
from runnel.lake.session import translate
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
from runnel.refresh.recovery import current, recover
from runnel.refresh.reinitialize import other_columns, rebuild_definition
from runnel.refresh.starting_over import start_over
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
        table = _by_itself(workspace, recovered(workspace, table_id))
        if table.state is TableState.SUSPENDED:
            return skipped(table, "the table is suspended")
        if table.frontier and table.frontier.data_timestamp >= frontier.data_timestamp:
            return skipped(table, "it is already at a newer data timestamp")
        if reads_older(table, frontier):
            return skipped(table, "it has already read newer versions of its sources")
        attempt = workspace.catalog.start_attempt(table.id, workspace.leases.owner)
        try:
            result = _attempt(workspace, table, frontier, start, lease.check, near)
        except Exception as error:
            raise fail(workspace, table, attempt, error, perf_counter() - start) from error
        except BaseException:
            workspace.catalog.finish_attempt(attempt, states.Outcome.INTERRUPTED)
            raise
        _finish(workspace, table, attempt, result)
        return result


def recovered(workspace: Workspace, table_id: str) -> StreamTable:
    """The table in step with its trace; when that cannot be read, this is a refresh that failed."""
    table = current(workspace, table_id)
    try:
        return recover(workspace, table)
    except NotFound:
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


def _attempt(
    workspace: Workspace,
    table: StreamTable,
    frontier: Frontier,
    start: float,
    check: Callable[[], None],
    near: NearRows | None,
) -> RefreshResult:
    plan, outcome = carry_out(workspace, table, frontier, check, near=near)
    if plan.table.incarnation != table.incarnation:
        # Recorded with the switch to its new life.
        return result_of(plan, outcome, perf_counter() - start)
    reach("refresh.before_record")
    since, trace_version = progress(workspace, plan.table, outcome)
    workspace.catalog.record_progress(
        table.id, plan.frontier, outcome.epoch, since, trace_version,
        incarnation=plan.table.incarnation,
    )  # fmt: skip
    return result_of(plan, outcome, perf_counter() - start)


def carry_out(
    workspace: Workspace,
    table: StreamTable,
    frontier: Frontier,
    check: Callable[[], None],
    group: str | None = None,
    near: NearRows | None = None,
) -> tuple[RefreshPlan, Outcome]:
    """Plan and execute; `check` raises when the lease was lost meanwhile."""
    reach("refresh.before_plan")
    planning = perf_counter()
    plan = plan_refresh(workspace, table, frontier)
    if plan.action is RefreshAction.REINITIALIZE:
        workspace.alerts.emit(AlertKind.REINITIALIZE_NEEDED, table.label, plan.reason)
        pinned = partial(_require_pins, table, frontier)
        plan = replace(plan, table=rebuild_definition(workspace, table, plan.reason, pinned))
    planned = perf_counter() - planning
    check()
    if plan.table.incarnation != table.incarnation:
        if group is not None:
            raise other_columns(table, plan.table.layout)
        outcome = start_over(workspace, table, plan, check)
        outcome.phases = {"planning": planned, **outcome.phases}
        return plan, outcome
    try:
        outcome = execute(workspace, replace(plan, group=group), near)
    except Exception as error:
        if not is_on_the_way(workspace, plan, error):
            raise
        plan = in_full(workspace, plan, "a sum overflowed while the change was added to it")
        check()
        outcome = execute(workspace, replace(plan, group=group))
    outcome.phases = {"planning": planned, **outcome.phases}
    return plan, outcome


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


def progress(workspace: Workspace, table: StreamTable, outcome: Outcome) -> tuple[int, int]:
    """The `since` and the version of a trace after a refresh."""
    if outcome.epoch == table.epoch:
        return table.since, table.trace_version
    last = workspace.trace(table).last_commit()
    assert last is not None
    return last.since, last.version


def result_of(plan: RefreshPlan, outcome: Outcome, seconds: float) -> RefreshResult:
    """What is told of a refresh."""
    action, reason = plan.action, plan.reason
    if action is RefreshAction.DIFFERENTIAL and not outcome.rows_inserted + outcome.rows_deleted:
        action, reason = RefreshAction.NO_DATA, "the changes do not touch the result"
    return RefreshResult(
        name=str(plan.table.name),
        action=action,
        reason=reason,
        rows_inserted=outcome.rows_inserted,
        rows_deleted=outcome.rows_deleted,
        change_rows=plan.change_rows,
        seconds=seconds,
        data_timestamp=plan.frontier.data_timestamp,
        frontier=plan.frontier,
        epoch=outcome.epoch,
        phases={name: round(value, 4) for name, value in outcome.phases.items()},
        predicted=plan.predicted,
    )


def _finish(workspace: Workspace, table: StreamTable, attempt: int, result: RefreshResult) -> None:
    workspace.catalog.finish_attempt(attempt, states.Outcome.OK, **fields_of(result))
    if (seconds := work_of(table, result)) is not None:
        workspace.catalog.update_table(table.id, work_seconds=seconds)
    workspace.catalog.clear_reinitialize(table.id, table.reinitialize)
    if table.consecutive_errors or table.last_error:
        workspace.catalog.update_table(table.id, **FORGIVEN)
    if table.state is TableState.UNINITIALIZED:
        workspace.catalog.update_table(table.id, state=TableState.ACTIVE)
    tell(workspace, table, result)


def work_of(table: StreamTable, result: RefreshResult) -> float | None:
    """What a table's refreshes take, after one more; None when it tells nothing of that."""
    if table.frontier is None or result.action not in (
        RefreshAction.FULL,
        RefreshAction.DIFFERENTIAL,
    ):
        return None
    return smoothed(table.work_seconds, result.seconds)


def tell(workspace: Workspace, table: StreamTable, result: RefreshResult) -> None:
    """What was done is worth an alert; that nothing had to be done is not."""
    if result.action is RefreshAction.REINITIALIZE:
        workspace.alerts.emit(AlertKind.REINITIALIZED, table.label, result.reason)
    if result.action is not RefreshAction.NO_DATA:
        workspace.alerts.emit(
            AlertKind.REFRESH_COMPLETED, table.label, f"{result.action}: {result.reason}",
            action=result.action, rows_inserted=result.rows_inserted,
            rows_deleted=result.rows_deleted, seconds=round(result.seconds, 3),
        )  # fmt: skip


def fields_of(result: RefreshResult) -> AttemptFields:
    """What the history keeps of a result."""
    return {
        "action": result.action, "reason": result.reason, "rows_inserted": result.rows_inserted,
        "rows_deleted": result.rows_deleted, "change_rows": result.change_rows,
        "seconds": result.seconds, "phases": result.phases, "predicted": result.predicted,
        "frontier": result.frontier, "epoch": result.epoch,
    }  # fmt: skip


def note_failure(workspace: Workspace, table: StreamTable, error: Exception) -> RunnelError:
    """Record a refresh that failed before it began."""
    attempt = workspace.catalog.start_attempt(table.id, workspace.leases.owner)
    return fail(workspace, table, attempt, error, 0.0)


def fail(
    workspace: Workspace, table: StreamTable, attempt: int, error: Exception, seconds: float
) -> RunnelError:
    """Record why an attempt failed; gives the error as it is told."""
    if workspace.is_ending.is_set():
        workspace.catalog.finish_attempt(attempt, states.Outcome.INTERRUPTED, seconds=seconds)
        return Abandoned(f"the refresh of {table.name} was given up: the process ends")
    told = translate(error)
    told = workspace.end_of_spark() or told
    if isinstance(told, Busy | SparkEnded):
        workspace.catalog.finish_attempt(
            attempt, states.Outcome.INTERRUPTED, error=str(told), seconds=seconds
        )
        return told
    workspace.catalog.finish_attempt(
        attempt, states.Outcome.FAILED, error=str(told), error_code=told.code, seconds=seconds
    )
    workspace.catalog.update_table(
        table.id, consecutive_errors=table.consecutive_errors + 1, last_error=str(told)
    )
    workspace.alerts.emit(
        AlertKind.REFRESH_FAILED, table.label, told.primary, code=told.code, detail=told.detail,
        hint=told.hint, consecutive_errors=table.consecutive_errors + 1,
    )  # fmt: skip
    return told


def smoothed(known: float | None, seconds: float) -> float:
    """What a table's refreshes take: slow ones count at once, quick ones little by little."""
    if known is None or seconds >= known:
        return seconds if known is None else (known + seconds) / 2
    return known + 0.2 * (seconds - known)


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


def now() -> datetime:
    return datetime.now(UTC)
