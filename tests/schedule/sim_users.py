"""What users do beside the scheduler of a simulated lake, and what happens to its machines."""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import TYPE_CHECKING

from runnel.model.refresh import TableState
from runnel.schedule.units import Unit, condense
from runnel.schedule.views import Ending
from schedule.sim_book import SimBook
from schedule.sim_make import add_table, below, drop, redefine, reschedule, units_of
from schedule.sim_world import SimSnapshot

if TYPE_CHECKING:
    from schedule.sim import Simulation

_PATIENCE = 10.0
_ACTS = (
    "suspend", "resume", "redefine", "reschedule", "drop", "create", "refresh", "refresh",
    "step_clock", "stall",
)  # fmt: skip


class Users:
    """One act a call, by chance."""

    def __init__(self, run: Simulation) -> None:
        self.run = run
        self.world = run.world
        self.random = run.random
        self._callers = 0

    def act(self) -> None:
        getattr(self, f"_{self.random.choice(_ACTS)}")()
        self.world.check_groups()

    def resume_all(self) -> None:
        for key, table in self.world.tables.items():
            if table.view.state is TableState.SUSPENDED:
                self._mark(key, TableState.ACTIVE)

    def _suspend(self) -> None:
        if (key := self._some()) is not None:
            self._mark(key, TableState.SUSPENDED)

    def _resume(self) -> None:
        if (key := self._some()) is not None:
            self._mark(key, TableState.ACTIVE)

    def _mark(self, key: str, state: TableState) -> None:
        self.world.say(f"the user makes {key} {state}")
        self.world.tables[key].mark(state, self.world.now)
        self.world.revision += 1

    def _redefine(self) -> None:
        if (key := self._some()) is not None and not self._is_held([key]):
            self.world.say(f"the user redefines {key}")
            redefine(self.world, key)

    def _reschedule(self) -> None:
        if (key := self._some()) is not None:
            text = self.random.choice([*self.run.shape.schedules, "DOWNSTREAM", None])
            self.world.say(f"the user sets the schedule of {key} to {text}")
            reschedule(self.world, key, text)

    def _drop(self) -> None:
        key = self._some()
        if key is not None and not self._is_held(below(self.world, key)):
            self.world.say(f"the user drops {key}")
            drop(self.world, key)

    def _create(self) -> None:
        add_table(self.world, self.run.shape)
        self.world.say(f"the user creates {list(self.world.tables)[-1]}")
        self.world.regroup(units_of(self.world))

    def _step_clock(self) -> None:
        process = self.random.choice(list(self.run.processes.values()) or [None])
        if process is not None:
            process.skew += self.random.choice([-10.0, -3.0, 3.0, 10.0])
            self.world.say(f"the clock of {process.number} is set to {process.skew:+.1f} s")

    def _stall(self) -> None:
        """A process stands still for longer than its leases last, and lives on."""
        process = self.random.choice(list(self.run.processes.values()) or [None])
        if process is not None:
            process.stalled = self.world.now + self.random.uniform(5, 40)
            self.world.say(f"process {process.number} stands still")
            self.world.forsake(process.number, self.world.now + _PATIENCE)
            self.run.at(process.stalled, lambda: self._awake(process.number))

    def _awake(self, number: int) -> None:
        """What nobody has taken over it keeps."""
        if number in self.run.processes:
            self.world.forsake(number, inf)

    # -- a refresh by hand ----------------------------------------------------------------------

    def _refresh(self) -> None:
        """`lake.refresh(name)`: a pass of its own, one table after the other."""
        key = self._some()
        if key is None:
            return
        views = {k: table.view for k, table in self.world.tables.items()}
        graph = condense(views, self.world.units)
        unit = graph.unit_of[key]
        order = graph.in_order({unit, *graph.above[unit]})
        if any(views[k].state is TableState.SUSPENDED for u in order for k in u.members):
            return
        reached = [views[k].timestamp or 0.0 for u in order for k in u.members]
        timestamp = max(self.world.now, max(reached) + 1e-6)
        snapshot = SimBook(self.world).pin(timestamp, [views[k] for u in order for k in u.members])
        self._callers -= 1
        self.world.say(f"the user refreshes {key}")
        self._go_on(snapshot, order, self._callers, self.world.now + _PATIENCE)

    def _go_on(self, snapshot: SimSnapshot, order: list[Unit], caller: int, until: float) -> None:
        if not order or order[0] not in self.world.units:
            return
        refused = self.world.begin(order[0], snapshot, caller)
        if refused is None:
            seconds = max(self.run.seconds(key) for key in order[0].members)
            end = self.world.now + seconds
            self.run.at(end, lambda: self._done(snapshot, order, caller))
        elif refused is Ending.BUSY and self.world.now < until:
            later = self.world.now + 0.5
            self.run.at(later, lambda: self._go_on(snapshot, order, caller, until))

    def _done(self, snapshot: SimSnapshot, order: list[Unit], caller: int) -> None:
        done = self.world.commit(order[0], snapshot)
        self.world.release(order[0])
        self.world.check_groups()
        if done is not None:
            self._go_on(snapshot, order[1:], caller, self.world.now + _PATIENCE)

    # -- choosing -------------------------------------------------------------------------------

    def _some(self) -> str | None:
        names = [k for k, table in self.world.tables.items() if not table.view.label]
        return self.random.choice(names) if names else None

    def _is_held(self, keys: Collection[str]) -> bool:
        """Members of a cycle are not changed one by one, and nobody in the middle of a refresh."""
        tables = self.world.tables
        in_cycle = any(tables[s].view.label for key in keys for s in tables[key].view.reads)
        return in_cycle or not self.world.running.keys().isdisjoint(keys)
