"""A plan carried out: compute the change, append it as one epoch, say what happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from runnel.compile.program import Program
from runnel.errors import Busy
from runnel.lake.frames import DataFrame
from runnel.lake.trace import AppendStats
from runnel.model.failpoints import reach
from runnel.model.refresh import RefreshAction
from runnel.model.results import ITERATIONS, SHARED
from runnel.refresh.bind import Binding, RoundLimit, binding
from runnel.refresh.differential import ProgramRun
from runnel.refresh.full import difference, full_rows
from runnel.refresh.near import NearRows
from runnel.refresh.plan import RefreshPlan, is_read
from runnel.refresh.programs import program_of
from runnel.refresh.workspace import Workspace


@dataclass
class Outcome:
    """What execution found out; `epoch` is the table's epoch afterwards."""

    epoch: int
    rows_inserted: int = 0
    rows_deleted: int = 0
    phases: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = perf_counter()
        try:
            yield
        finally:
            self.spent(name, perf_counter() - start)

    def spent(self, phase: str, seconds: float) -> None:
        self.phases[phase] = self.phases.get(phase, 0.0) + seconds


def execute(
    workspace: Workspace,
    plan: RefreshPlan,
    near: NearRows | None = None,
    phases: dict[str, float] | None = None,
) -> Outcome:
    """Run the plan; nothing is visible before its single commit, everything after it.

    `near` is what the tables of a pass share. What it takes is added to `phases`, also when it
    fails.
    """
    outcome = Outcome(plan.table.epoch, phases={} if phases is None else phases)
    if plan.action is RefreshAction.NO_DATA:
        return outcome
    is_differential = plan.action is RefreshAction.DIFFERENTIAL
    with (
        workspace.worker(plan.table.settings, adaptive=not is_differential) as spark,
        binding(workspace, spark) as bound,
    ):
        bound.limit = RoundLimit.of(workspace, plan.table)
        if is_differential:
            _differential(bound, plan, outcome, near)
        else:
            _full(bound, plan, outcome)
        if bound.limit is not None:
            outcome.phases[ITERATIONS] = bound.rounds
    return outcome


def _differential(
    bound: Binding, plan: RefreshPlan, outcome: Outcome, near: NearRows | None
) -> None:
    with outcome.phase("compile"):
        program = program_of(bound.workspace, bound.spark, plan)
    if not program.steps:
        return
    with outcome.phase("change"):
        sql = _change(bound, plan, program, outcome, near)
    if sql is None:
        return
    with outcome.phase("plan"):
        frame = bound.spark.sql(sql)
    _commit(bound.workspace, plan, frame, outcome, rows_hint=plan.change_rows)


def _change(
    bound: Binding, plan: RefreshPlan, program: Program, outcome: Outcome, near: NearRows | None
) -> str | None:
    """The text of the change; finding what all tables of the pass read is a phase of its own."""
    start = perf_counter()
    shared = near.of(plan, program) if near is not None else None
    waited = perf_counter() - start
    sql = ProgramRun(plan, program, bound, shared).output()
    if shared is not None:
        outcome.spent(SHARED, waited + shared.seconds)
    return sql


def _full(bound: Binding, plan: RefreshPlan, outcome: Outcome) -> None:
    with outcome.phase("compile"):
        rows = full_rows(bound, plan.table, plan.frontier)
    table, trace = plan.table, bound.workspace.trace(plan.table)
    if table.epoch == 0 or not (plan.group or is_read(bound.workspace, table)):
        # Nobody waits for the difference, or for the group to see the new rows: one commit puts
        # them in the old ones' place.
        _commit(bound.workspace, plan, rows, outcome, replace=True)
        return
    with outcome.phase("plan"):
        changed = difference(bound, trace, rows, table.epoch)
    _commit(bound.workspace, plan, changed, outcome)


def _commit(
    workspace: Workspace,
    plan: RefreshPlan,
    frame: DataFrame,
    outcome: Outcome,
    rows_hint: int | None = None,
    replace: bool = False,
) -> None:
    """One Delta commit with the frontier inside it; the job before it is a phase of its own."""
    start = perf_counter()
    trace = workspace.trace(plan.table)
    epoch = plan.epoch
    reach("refresh.before_append")
    write = trace.replace if replace else trace.append
    stats: AppendStats = write(frame.sparkSession, frame, epoch, _metadata(plan), rows_hint)
    if not stats.is_new:
        raise _overtaken(plan)
    reach("refresh.after_append")
    outcome.spent("write", stats.seconds)
    outcome.spent("commit", perf_counter() - start - stats.seconds)
    outcome.epoch = epoch
    outcome.rows_inserted, outcome.rows_deleted = stats.rows_inserted, stats.rows_deleted


def _overtaken(plan: RefreshPlan) -> Busy:
    """What was appended and not recorded before, `recover` has taken over: this is someone else's.

    Either its writer took over our lease, or it had lost the one that we hold.
    """
    return Busy(
        f"another process has written epoch {plan.epoch} of {plan.table.name} meanwhile",
        detail="one of the two was paused or cut off for longer than its lease lasts",
        hint="try again: nothing of this attempt was kept",
    )


def _metadata(plan: RefreshPlan) -> dict[str, Any]:
    return {
        "table": str(plan.table.name),
        "frontier": plan.frontier.to_json(),
        "action": plan.action.value,
        "reason": plan.reason,
        **({"attempt": plan.attempt} if plan.attempt is not None else {}),
        **({"group": plan.group} if plan.group else {}),
    }
