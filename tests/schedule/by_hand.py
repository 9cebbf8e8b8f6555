"""A small lake whose scheduler is driven by hand, one step at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from runnel.errors import ErrorClass
from runnel.model.alerts import AlertKind
from runnel.model.refresh import TableState
from runnel.model.schedule import Schedule
from runnel.schedule.machine import Limits, Machine
from runnel.schedule.units import Unit, units_of
from runnel.schedule.views import Ending, Finished, Start, TableView
from schedule.sim_book import SimBook
from schedule.sim_world import SimSnapshot, SimTable, World

# A multiple of 48 s times a power of two: every table is due here.
T0 = 48.0 * 2**10 * 34_000


def table(name: str, schedule: str | None, *sources: str, seconds: float | None = None) -> SimTable:
    """A table over base sources (x, y ...) and other tables."""
    view = TableView(
        key=name, name=name, id=name,
        schedule=Schedule.parse(schedule) if schedule else None,
        reads=tuple(s for s in sources if s[0] not in "xyz"),
        bases=tuple(s for s in sources if s[0] in "xyz"),
        state=TableState.UNINITIALIZED, incarnation=f"life of {name}", is_restless=True,
        seconds=seconds, since=T0,
    )  # fmt: skip
    return SimTable(view, stride=1, longest=1.0)


@dataclass
class Ears:
    """Alerts, as they came."""

    heard: list[tuple[AlertKind, str | None, str]] = field(default_factory=list)

    def emit(self, kind: AlertKind, table: str | None, message: str, **facts: Any) -> None:
        self.heard.append((kind, table, message))

    def kinds(self, table: str) -> list[AlertKind]:
        return [kind for kind, name, _ in self.heard if name == table]


class ByHand:
    """`tick` gives the names that start; `finish` ends one of them."""

    def __init__(
        self, *tables: SimTable, concurrent: int = 4, units: tuple[Unit, ...] | None = None,
        outage: float = 3600.0,
    ) -> None:  # fmt: skip
        found = {t.view.key: t for t in tables}
        bases = {b: 1 for t in tables for b in t.view.bases}
        chosen = units or units_of({k: t.view for k, t in found.items()})
        self.world = World(Random(1), bases, found, chosen, now=T0)
        self.ears = Ears()
        self.book = SimBook(self.world)
        self.machine = self.process(concurrent, outage)
        self.running: dict[str, Start] = {}

    def process(self, concurrent: int = 4, outage: float = 3600.0) -> Machine:
        """Another scheduler on the same lake."""
        limits = Limits(concurrent, 3, 1.0, outage)
        return Machine(self.book, self.ears, limits, Random(1), lambda tables: self.world.units)

    def tick(self, now: float) -> list[str]:
        self.world.now = now
        return self._begun(self.machine.decide(now))

    def finish(
        self, name: str, now: float, ending: Ending = Ending.DONE, took: float = 0.0, **facts: Any
    ) -> list[str]:
        """End a refresh; what starts because of that."""
        self.world.now = now
        start = self.running.pop(name)
        event = Finished(start, ending, **facts)
        if ending is Ending.DONE:
            assert isinstance(start.snapshot, SimSnapshot)
            results = self.world.commit(start.unit, start.snapshot, took)
            assert results is not None
            event = replace(event, results=results)
        if ending is Ending.FAILED:
            self.world.fail(facts["failed"], facts["is_retryable"])
        self.world.release(start.unit)
        self.machine.finished(now, event)
        return self._begun(self.machine.decide(now))

    def fail(self, name: str, now: float, error_class: ErrorClass = ErrorClass.SYSTEM) -> list[str]:
        return self.finish(
            name, now, Ending.FAILED, error="no such luck", error_class=error_class,
            is_retryable=error_class is ErrorClass.SYSTEM, failed=name.partition("+")[0],
        )  # fmt: skip

    def run_all(self, now: float) -> list[str]:
        """Let everything that starts at this moment finish at once; the names in order."""
        done: list[str] = []
        self.tick(now)
        while self.running:
            name = next(iter(self.running))
            done.append(name)
            self.finish(name, now)
        return done

    def write(self, base: str) -> None:
        self.world.bases[base] += 1

    def at(self, name: str) -> float:
        """The table's data timestamp, in seconds after T0."""
        reached = self.world.tables[name].view.timestamp
        assert reached is not None
        return reached - T0

    def view(self, name: str) -> TableView:
        return self.world.tables[name].view

    def skips(self) -> list[str]:
        return [line.split()[1] for line in self.world.log if line.endswith("skipped")]

    def _begun(self, starts: list[Start]) -> list[str]:
        for start in starts:
            assert isinstance(start.snapshot, SimSnapshot)
            assert self.world.begin(start.unit, start.snapshot, 1) is None
            self.running[str(start.unit)] = start
        return [str(start.unit) for start in starts]
