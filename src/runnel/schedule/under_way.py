"""Passes under way: which units wait, run or are done in each, all to one instant a pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from runnel.schedule.units import Condensed, Unit
from runnel.schedule.views import Snapshot


@dataclass(slots=True)
class Pass:
    """One instant, and the units that are still to be brought to it.

    `begun` are those that were started in it, however that ended. `graph` is the one it was formed
    in: definitions may change meanwhile. `at` is when it was formed: T can be later, when another
    clock is ahead, or was.
    """

    number: int
    at: float
    snapshot: Snapshot
    graph: Condensed
    deadlines: dict[Unit, float]
    waiting: set[Unit] = field(default_factory=set)
    running: set[Unit] = field(default_factory=set)
    done: set[Unit] = field(default_factory=set)
    begun: set[Unit] = field(default_factory=set)

    def is_ready(self, unit: Unit) -> bool:
        """Whether all that the unit reads has reached this pass's instant."""
        return self.graph.parents[unit] <= self.done

    @property
    def members(self) -> set[Unit]:
        """What reaches this instant, or has reached it."""
        return self.waiting | self.running | self.done

    def take(self, units: set[Unit], together: set[Unit], deadline: float) -> None:
        """Let units come along that were not in it; all of `together` is as urgent as they are."""
        self.waiting |= units
        for unit in together & self.waiting:
            self.deadlines[unit] = min(deadline, self.deadlines.get(unit, deadline))

    def start(self, unit: Unit) -> None:
        self.waiting.discard(unit)
        self.running.add(unit)
        self.begun.add(unit)

    def drop_below(self, unit: Unit) -> set[Unit]:
        """Give up what waits for a unit that did not get there."""
        dropped = {other for other in self.waiting if unit in self.graph.above[other]}
        self.waiting -= dropped
        return dropped

    @property
    def is_over(self) -> bool:
        return not self.waiting and not self.running


@dataclass(slots=True)
class Passes:
    """All passes under way, oldest first; a unit runs in one at most, and waits in two at most."""

    under_way: dict[int, Pass] = field(default_factory=dict)
    _count: int = 0

    def open(
        self, at: float, snapshot: Snapshot, graph: Condensed, deadlines: dict[Unit, float]
    ) -> Pass:
        self._count += 1
        found = Pass(self._count, at, snapshot, graph, deadlines, waiting=set(deadlines))
        self.under_way[found.number] = found
        return found

    def waiting(self) -> set[str]:
        """Tables that wait in a pass."""
        return _tables(unit for p in self.under_way.values() for unit in p.waiting)

    def waits(self) -> Counter[str]:
        """In how many passes each table waits."""
        return Counter(
            k for p in self.under_way.values() for unit in p.waiting for k in unit.members
        )

    def running(self) -> set[str]:
        return _tables(unit for p in self.under_way.values() for unit in p.running)

    def running_after(self, of_pass: Pass) -> set[str]:
        """Tables that run in later passes."""
        later = (p for p in self.under_way.values() if p.number > of_pass.number)
        return _tables(unit for p in later for unit in p.running)

    def count_running(self) -> int:
        return sum(len(p.running) for p in self.under_way.values())

    def ready(self) -> list[tuple[Pass, Unit]]:
        """What can start now, most urgent first; nothing that an older pass has yet to do."""
        busy = self.running()
        found: list[tuple[Pass, Unit]] = []
        for p in self.under_way.values():
            free = [u for u in p.waiting if p.is_ready(u) and busy.isdisjoint(u.members)]
            found += [(p, unit) for unit in free]
            busy |= _tables(p.waiting)
        return sorted(found, key=lambda f: (f[0].deadlines[f[1]], f[0].number, f[1].members))

    def follow(self, graph: Condensed) -> None:
        """Give up what waits and is another unit now: dropped, refreshed with others, or with a
        query that reads tables of which this pass knows nothing.
        """
        for of_pass in self.under_way.values():
            known = of_pass.graph.parents
            changed = [u for u in of_pass.waiting if graph.parents.get(u) != known[u]]
            for unit in changed:
                of_pass.waiting.discard(unit)
                of_pass.drop_below(unit)
        self.close_over()

    def close_over(self) -> None:
        for number in [n for n, p in self.under_way.items() if p.is_over]:
            del self.under_way[number]


def _tables(units: Iterable[Unit]) -> set[str]:
    return {key for unit in units for key in unit.members}
