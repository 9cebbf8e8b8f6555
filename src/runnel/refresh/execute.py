"""A plan carried out: compute the change, append it as one epoch, say what happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from runnel.lake.frames import DataFrame
from runnel.lake.trace import AppendStats
from runnel.model.failpoints import reach
from runnel.model.refresh import RefreshAction
from runnel.model.results import ITERATIONS
from runnel.refresh.bind import Binding, RoundLimit, binding
from runnel.refresh.definition import compiled_query
from runnel.refresh.differential import ProgramRun
from runnel.refresh.full import difference, full_rows
from runnel.refresh.plan import RefreshPlan, is_read
from runnel.refresh.windows import total_rows
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


def execute(workspace: Workspace, plan: RefreshPlan) -> Outcome:
    """Run the plan; nothing is visible before its single commit, everything after it."""
    outcome = Outcome(plan.table.epoch)
    if plan.action is RefreshAction.NO_DATA:
        return outcome
    is_differential = plan.action is RefreshAction.DIFFERENTIAL
    with (
        workspace.worker(plan.table.settings, adaptive=not is_differential) as spark,
        binding(workspace, spark) as bound,
    ):
        bound.limit = RoundLimit.of(workspace, plan.table)
        if is_differential:
            _differential(bound, plan, outcome)
        else:
            _full(bound, plan, outcome)
        if bound.limit is not None:
            outcome.phases[ITERATIONS] = bound.rounds
    return outcome


def _differential(bound: Binding, plan: RefreshPlan, outcome: Outcome) -> None:
    with outcome.phase("compile"):
        compiled = compiled_query(bound.workspace, bound.spark, plan.table)
        assert compiled is not None
        program = compiled.program(plan.changed, plan.growing, _sizes(bound.workspace, plan))
    if not program.steps:
        return
    with outcome.phase("change"):
        sql = ProgramRun(plan, program, bound).output()
    if sql is None:
        return
    with outcome.phase("plan"):
        frame = bound.spark.sql(sql)
    _commit(bound.workspace, plan, frame, outcome, rows_hint=plan.change_rows)


def _sizes(workspace: Workspace, plan: RefreshPlan) -> dict[str, int]:
    """How many bits the numbers of the sources' rows have: that seldom changes."""
    return {
        key: total_rows(workspace, window.source, window.new).bit_length()
        for key, window in plan.windows.items()
    }


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
    reach("refresh.after_append")
    outcome.spent("write", stats.seconds)
    outcome.spent("commit", perf_counter() - start - stats.seconds)
    outcome.epoch = epoch
    outcome.rows_inserted, outcome.rows_deleted = stats.rows_inserted, stats.rows_deleted


def _metadata(plan: RefreshPlan) -> dict[str, Any]:
    return {
        "table": str(plan.table.name),
        "frontier": plan.frontier.to_json(),
        "action": plan.action.value,
        "reason": plan.reason,
        **({"group": plan.group} if plan.group else {}),
    }
