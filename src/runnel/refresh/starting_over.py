"""A table that has to keep something else for the same columns: filled anew, then switched to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from runnel.catalog import Lease, StreamTable
from runnel.model.failpoints import reach
from runnel.refresh.execute import Outcome, execute
from runnel.refresh.plan import RefreshPlan
from runnel.refresh.recovery import current
from runnel.refresh.storage import remove_storage, storage_lease
from runnel.refresh.workspace import Workspace


def start_over(
    workspace: Workspace,
    old: StreamTable,
    plan: RefreshPlan,
    held: Sequence[Lease],
    phases: dict[str, float],
) -> Outcome:
    """Carry out a plan in the new life of its table; until that is there the old one is read.

    Those who read the table start over too, as after a change of its query. Epochs are counted on,
    so that a past one is never taken for one of the new life.
    """
    new = plan.table.incarnation
    with workspace.leases.hold(storage_lease(new)):
        try:
            outcome = execute(workspace, plan, phases=phases)
            reach("start_over.before_catalog")
            workspace.catalog.redefine_table(_filled(workspace, old, plan), held)
        except Exception:
            if current(workspace, old.id).incarnation != new:
                remove_storage(workspace, new)
            raise
    reach("start_over.after_catalog")
    remove_storage(workspace, old.incarnation)
    workspace.renew_names()
    return outcome


def _filled(workspace: Workspace, old: StreamTable, plan: RefreshPlan) -> StreamTable:
    """The new life in the row of the table; what others changed in that meanwhile stays."""
    now, made = current(workspace, old.id), plan.table
    last = workspace.trace(made).last_commit()
    assert last is not None
    return replace(
        now, incarnation=made.incarnation, query=made.query, layout=made.layout,
        sources=made.sources, not_differential=made.not_differential, resolution=made.resolution,
        frontier=plan.frontier, epoch=last.epoch, since=last.since, trace_version=last.version,
        reinitialize=None if now.reinitialize == old.reinitialize else now.reinitialize,
    )  # fmt: skip
