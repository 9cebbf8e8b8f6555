"""A table that has to keep something else for the same columns: filled anew, then switched to."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from runnel.catalog import Lease, StreamTable
from runnel.errors import RunnelError
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


@dataclass(slots=True)
class NewLives:
    """Members of a group that start over: filled beside the old ones, until all are switched to.

    `workspace` has them already, for the members that read them.
    """

    workspace: Workspace
    _made: dict[str, tuple[StreamTable, StreamTable]] = field(default_factory=dict)
    _held: ExitStack = field(default_factory=ExitStack)

    def fill(self, old: StreamTable, plan: RefreshPlan, phases: dict[str, float]) -> Outcome:
        """Carry out a plan in the new life of its table, which nobody else sees yet."""
        new = plan.table.incarnation
        self._held.enter_context(self.workspace.leases.hold(storage_lease(new)))
        self._made[old.id] = (old, plan.table)
        outcome = execute(self.workspace, plan, phases=phases)
        filled = _filled(self.workspace, old, plan)
        self._made[old.id] = (old, filled)
        self.workspace = self.workspace.staged([filled])
        return outcome

    def of(self, table: StreamTable) -> StreamTable | None:
        """What a table becomes, if it starts over."""
        return self._made[table.id][1] if table.id in self._made else None

    def close(self) -> None:
        """Remove what is not to be read: the old lives, or the new ones if they were given up."""
        with self._held:
            for old, new in self._made.values():
                self._remove(old, new)

    def _remove(self, old: StreamTable, new: StreamTable) -> None:
        try:
            known = self.workspace.catalog.get(old.id)
        except RunnelError:
            # Whoever looks for folders that nobody owns finds the one that is left.
            return
        is_switched = known is not None and known.incarnation == new.incarnation
        remove_storage(self.workspace, (old if is_switched else new).incarnation)


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
