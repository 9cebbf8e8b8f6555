"""What is recorded and told of a refresh, whether it went well or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from runnel.catalog import Advance, Lease, StreamTable, advance_alone
from runnel.catalog.records import FORGIVEN, AttemptFields
from runnel.errors import Abandoned, Busy, RunnelError, SparkEnded
from runnel.lake.session import translate
from runnel.model import refresh as states
from runnel.model.alerts import AlertKind
from runnel.model.failpoints import reach
from runnel.model.frontier import Frontier
from runnel.model.refresh import RefreshAction, TableState
from runnel.model.results import RefreshResult
from runnel.refresh.execute import Outcome
from runnel.refresh.plan import RefreshPlan
from runnel.refresh.workspace import Workspace


@dataclass(slots=True)
class Begun:
    """An attempt that runs, and what is known of it so far."""

    id: int
    fields: AttemptFields = field(default_factory=AttemptFields)

    def note(self, plan: RefreshPlan, planned: float) -> dict[str, float]:
        """What it is going to do; gives its phases, which grow while it is done."""
        phases = {"planning": planned}
        self.fields = {
            "reason": plan.reason, "change_rows": plan.change_rows, "predicted": plan.predicted,
            "phases": phases,
        }  # fmt: skip
        if plan.action is not RefreshAction.NO_DATA:
            self.fields["action"] = plan.action
        return phases

    def known(self, seconds: float) -> AttemptFields:
        """What the history keeps of it when it came to nothing."""
        phases = {name: round(spent, 4) for name, spent in self.fields.get("phases", {}).items()}
        return {**self.fields, "phases": phases, "seconds": seconds}


def begin(workspace: Workspace, table: StreamTable) -> Begun:
    return Begun(workspace.catalog.start_attempt(table.id, workspace.leases.owner))


def record(
    workspace: Workspace,
    table: StreamTable,
    plan: RefreshPlan,
    attempt: int,
    result: RefreshResult,
    lease: Lease,
) -> None:
    """Note how far the table has come, in one transaction that is refused without the lease."""
    if plan.table.incarnation != table.incarnation:
        # Recorded with the switch to its new life.
        _finish(workspace, table, attempt, result)
        return
    reach("refresh.before_record")
    made = plan.table
    try:
        step = advance_of(workspace, made, plan.frontier, attempt, result, work_of(table, result))
        advance_alone(workspace.catalog, step, lease)
    except Busy as error:
        raise _too_late(made, error) if result.epoch != made.epoch else error from error


def advance_of(
    workspace: Workspace,
    table: StreamTable,
    frontier: Frontier,
    attempt: int,
    result: RefreshResult,
    work_seconds: float | None,
) -> Advance:
    """The step of a table to what a refresh appended; Busy when others have appended since."""
    assert result.epoch is not None
    since, version = table.since, table.trace_version
    if result.epoch != table.epoch:
        last = workspace.trace(table).last_commit()
        if last is None or last.epoch != result.epoch:
            raise Busy(f"{table.name} was changed while it was refreshed", hint="refresh again")
        since, version = last.since, last.version
    return Advance(
        table, frontier, result.epoch, since, version, attempt, fields_of(result), work_seconds
    )


def _too_late(table: StreamTable, error: Busy) -> Busy:
    """What is told to one who lost the lease between the commit and its record."""
    return Busy(
        f"the lease on {table.name} was lost after its change was committed",
        detail=error.detail or error.primary,
        hint="whoever refreshes it next goes on from there",
    )


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
    """Close the attempt of a table that started over in other storage."""
    workspace.catalog.finish_attempt(attempt, states.Outcome.OK, **fields_of(result))
    if (seconds := work_of(table, result)) is not None:
        workspace.catalog.update_table(table.id, work_seconds=seconds)
    if table.consecutive_errors or table.last_error:
        workspace.catalog.update_table(table.id, **FORGIVEN)
    if table.state is TableState.UNINITIALIZED:
        workspace.catalog.update_table(table.id, state=TableState.ACTIVE)


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
    return fail(workspace, table, begin(workspace, table), error, 0.0)


def fail(
    workspace: Workspace, table: StreamTable, begun: Begun, error: Exception, seconds: float
) -> RunnelError:
    """Record why an attempt failed; gives the error as it is told."""
    known = begun.known(seconds)
    if workspace.is_ending.is_set():
        workspace.catalog.finish_attempt(begun.id, states.Outcome.INTERRUPTED, **known)
        return Abandoned(f"the refresh of {table.name} was given up: the process ends")
    told = translate(error)
    told = workspace.end_of_spark() or told
    if isinstance(told, Busy | SparkEnded):
        known["error"] = str(told)
        workspace.catalog.finish_attempt(begun.id, states.Outcome.INTERRUPTED, **known)
        return told
    known |= {"error": str(told), "error_code": told.code}
    workspace.catalog.finish_attempt(begun.id, states.Outcome.FAILED, **known)
    workspace.catalog.update_table(
        table.id, consecutive_errors=table.consecutive_errors + 1, last_error=str(told)
    )
    workspace.alerts.emit(
        AlertKind.REFRESH_FAILED, table.label, told.primary, code=told.code, detail=told.detail,
        hint=told.hint, consecutive_errors=table.consecutive_errors + 1,
    )  # fmt: skip
    return told


def cause_of(error: Exception, held: Sequence[Lease]) -> Exception:
    """Why something failed: whoever lost a lease may find anything changed or gone."""
    for lease in held:
        try:
            lease.check()
        except Busy as lost:
            return error if isinstance(error, Busy) else lost
        except RunnelError:
            continue
    return error


def smoothed(known: float | None, seconds: float) -> float:
    """What a table's refreshes take: slow ones count at once, quick ones little by little."""
    if known is None or seconds >= known:
        return seconds if known is None else (known + seconds) / 2
    return known + 0.2 * (seconds - known)
