"""The simulator: the real state machine, driven by virtual time; a seed is a whole run."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import networkx as nx

from runnel.errors import ErrorClass
from runnel.model.alerts import AlertKind
from runnel.model.refresh import TableState
from runnel.model.schedule import Schedule
from runnel.schedule.machine import Limits, Machine
from runnel.schedule.units import Unit, condense, units_of
from runnel.schedule.views import Ending, Finished, Start, TableView
from schedule.sim_world import Broken, SimBook, SimSnapshot, SimTable, World

START = 1_700_000_000.0


@dataclass(frozen=True)
class Shape:
    """What a run may contain."""

    tables: int = 7
    horizon: float = 400.0
    processes: int = 1
    workers: int | None = None
    failures: float = 0.0
    crashes: int = 0
    longest: float = 8.0
    schedules: tuple[str, ...] = ("12s", "30s", "1m", "100s", "4m")
    groups: bool = True
    skew: float = 0.0
    fading: bool = True
    outages: tuple[tuple[float, float], ...] = ()
    """From when to when, in seconds after the beginning, every refresh fails."""
    longest_outage: float = 3600.0


@dataclass
class Heard:
    """Alerts, counted."""

    kinds: dict[AlertKind, int] = field(default_factory=dict)

    def emit(self, kind: AlertKind, table: str | None, message: str, **facts: Any) -> None:
        self.kinds[kind] = self.kinds.get(kind, 0) + 1


@dataclass
class Process:
    """One scheduler process; after a crash another one with a new number takes its place."""

    number: int
    machine: Machine
    skew: float


class Simulation:
    """One run; `world.log` is what happened, the same for the same seed."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.shape = shape
        self.random = Random(seed)
        self.world = make_world(self.random, shape)
        self.world.now = START + self.random.uniform(0, 200)
        self.began = self.world.now
        self.end = self.world.now + shape.horizon
        self.alerts = Heard()
        self.events: list[tuple[float, int, Any]] = []
        self.processes: dict[int, Process] = {}
        self._count = 0
        self._prepare()

    def run(self) -> World:
        while self.events:
            at, _, act = heapq.heappop(self.events)
            if at > self.end:
                break
            self.world.now = at
            act()
        return self.world

    # -- events ---------------------------------------------------------------------------------

    def _at(self, time: float, act: Any) -> None:
        self._count += 1
        heapq.heappush(self.events, (time, self._count, act))

    def _prepare(self) -> None:
        for _ in range(self.shape.processes):
            self._start_process()
        for _ in range(self.shape.crashes):
            self._at(self.random.uniform(self.began, self.end), self._crash)
        for name in self.world.bases:
            self._at(self.began + self.random.uniform(0, 20), lambda name=name: self._write(name))

    def _write(self, name: str) -> None:
        self.world.bases[name] += 1
        self.world.say(f"{name} version {self.world.bases[name]}")
        pause = self.random.choice([0.3, 3.0, 20.0, 60.0])
        self._at(self.world.now + self.random.expovariate(1 / pause), lambda: self._write(name))

    def _start_process(self) -> None:
        self._count += 1
        workers = self.shape.workers or len(self.world.tables)
        limits = Limits(workers, 3, 1.0, self.shape.longest_outage)
        machine = Machine(
            SimBook(self.world), self.alerts, limits, Random(self.random.random()),
            lambda tables: self.world.units,
        )  # fmt: skip
        skew = self.random.uniform(-self.shape.skew, self.shape.skew)
        process = Process(self._count, machine, skew)
        self.processes[process.number] = process
        self._at(self.world.now + self.random.uniform(0, 1), lambda: self._tick(process))

    def _crash(self) -> None:
        """Everything in a process's memory goes; its leases are taken over a little later."""
        if not self.processes:
            return
        number = self.random.choice(sorted(self.processes))
        del self.processes[number]
        self.world.say(f"process {number} dies")
        for key in [k for k, owner in self.world.running.items() if owner == number]:
            del self.world.running[key]
        for key, (owner, _) in list(self.world.leases.items()):
            if owner == number:
                self.world.leases[key] = (owner, self.world.now + self.random.choice([0, 0, 10]))
        self._at(self.world.now + self.random.uniform(0.1, 5), self._start_process)

    def _tick(self, process: Process) -> None:
        if process.number not in self.processes:
            return
        self._decide(process)
        now = self.world.now
        wake = process.machine.next_wake(now + process.skew) - process.skew
        self._at(max(now + 0.05, min(wake + 1e-6, now + 10.0)), lambda: self._tick(process))

    def _decide(self, process: Process) -> None:
        for start in process.machine.decide(self.world.now + process.skew):
            self._begin(process, start)

    def _begin(self, process: Process, start: Start) -> None:
        snapshot = start.snapshot
        assert isinstance(snapshot, SimSnapshot)
        if not self.world.begin(start.unit, snapshot, process.number):
            self._end_at(0.01, process, Finished(start, Ending.BUSY))
            return
        seconds = max(self._seconds(key) for key in start.unit.members)
        self._at(self.world.now + seconds, lambda: self._end(process, start, seconds))

    def _seconds(self, key: str) -> float:
        return self.random.uniform(0.05, self.world.tables[key].longest)

    def _end_at(self, pause: float, process: Process, event: Finished) -> None:
        self._at(self.world.now + pause, lambda: self._tell(process, event))

    def _end(self, process: Process, start: Start, seconds: float) -> None:
        if process.number not in self.processes:
            return
        snapshot = start.snapshot
        assert isinstance(snapshot, SimSnapshot)
        for key in start.unit.members:
            if self.world.leases.get(key, (None,))[0] != process.number:
                raise Broken(f"{key} was taken from a living process")
        event = self._ended(start, snapshot, seconds)
        self.world.release(start.unit)
        self._tell(process, event)

    def _ended(self, start: Start, snapshot: SimSnapshot, seconds: float) -> Finished:
        error_class = self._error()
        if error_class is not None:
            key = self.random.choice(start.unit.members)
            is_retryable = error_class is ErrorClass.SYSTEM
            self.world.fail(key, is_retryable)
            return Finished(
                start, Ending.FAILED, error="simulated", error_class=error_class,
                is_retryable=is_retryable, failed=key,
            )  # fmt: skip
        results = self.world.commit(start.unit, snapshot, seconds)
        if results is None:
            return Finished(start, Ending.OVERTAKEN)
        return Finished(start, Ending.DONE, results)

    def _error(self) -> ErrorClass | None:
        """What goes wrong with a refresh that ends now."""
        passed = self.world.now - self.began
        if any(begin <= passed < end for begin, end in self.shape.outages):
            return ErrorClass.SYSTEM
        is_early = not self.shape.fading or passed < self.shape.horizon / 2
        if is_early and self.random.random() < self.shape.failures:
            return self.random.choice(list(ErrorClass))
        return None

    def _tell(self, process: Process, event: Finished) -> None:
        if process.number not in self.processes:
            return
        process.machine.finished(self.world.now + process.skew, event)
        self._check_groups()
        self._decide(process)

    def _check_groups(self) -> None:
        for unit in self.world.units:
            reached = {self.world.tables[key].view.timestamp for key in unit.members}
            if len(reached) > 1:
                raise Broken(f"{unit} advanced in part: {reached}")


def make_world(random: Random, shape: Shape) -> World:
    """A random graph with random schedules."""
    bases = {f"x{i}": random.randrange(5) for i in range(random.randint(1, 4))}
    tables: dict[str, SimTable] = {}
    for i in range(random.randint(2, shape.tables)):
        key = f"t{i}"
        reads = tuple(
            sorted(random.sample(sorted(tables), min(len(tables), random.choice([0, 1, 2, 2]))))
        )
        count = random.randint(0 if reads else 1, 2)
        read_bases = tuple(sorted(random.sample(sorted(bases), min(len(bases), count)) or ["x0"]))
        if not reads and not read_bases:
            read_bases = ("x0",)
        text = random.choice([*shape.schedules, "DOWNSTREAM", None])
        schedule = Schedule.parse(text) if text else None
        longest = random.choice([0.2, 1.0, shape.longest])
        view = TableView(
            key, key, key, schedule, reads, read_bases, TableState.UNINITIALIZED,
            incarnation=f"i{i}", is_restless=True, seconds=longest,
        )  # fmt: skip
        tables[key] = SimTable(view, random.choice([1, 1, 3]), longest)
    units = make_units(random, {k: t.view for k, t in tables.items()}, shape)
    return World(random, bases, tables, units)


def make_units(random: Random, views: Mapping[str, TableView], shape: Shape) -> tuple[Unit, ...]:
    """Some tables in atomic groups, closed so that no group waits for itself."""
    if not shape.groups or random.random() < 0.4:
        return units_of(views)
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(views)
    graph.add_edges_from((s, k) for k, view in views.items() for s in view.reads)
    joined = [k for k, view in views.items() if len(view.reads) > 1]
    for key in random.sample(joined, min(len(joined), 1)):
        group = [key, *views[key].reads]
        graph.add_edges_from((a, b) for a in group for b in group if a != b)
    order = {k: i for i, k in enumerate(views)}
    components = (sorted(c, key=order.__getitem__) for c in nx.strongly_connected_components(graph))
    return tuple(sorted((Unit(tuple(c)) for c in components), key=lambda u: u.members))


def scheduled(world: World) -> set[str]:
    """Tables that someone wants: with a schedule of their own, or above one that has."""
    graph = condense({k: t.view for k, t in world.tables.items()}, world.units)
    own = {
        unit
        for unit in world.units
        if any(
            (s := world.tables[k].view.schedule) is not None and not s.is_downstream
            for k in unit.members
        )
    }
    wanted = own.union(*(graph.above[unit] for unit in own))
    return {key for unit in wanted for key in unit.members}


def resume(world: World) -> None:
    """What RESUME does."""
    for table in world.tables.values():
        if table.view.state is TableState.SUSPENDED:
            table.view = replace(table.view, state=TableState.ACTIVE, errors=0, retry_at=None)
            table.failures.clear()
    world.revision += 1
