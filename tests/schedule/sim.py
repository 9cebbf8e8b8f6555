"""The simulator: the real state machine, driven by virtual time; a seed is a whole run."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from random import Random
from typing import Any

from runnel.errors import ErrorClass, NotFound
from runnel.model.alerts import AlertKind
from runnel.schedule.clock import SteadyClock
from runnel.schedule.machine import Limits, Machine
from runnel.schedule.views import Ending, Finished, Start
from schedule.sim_book import SimBook
from schedule.sim_make import Shape, make_world
from schedule.sim_users import Users
from schedule.sim_world import SimSnapshot, World

START = 1_700_000_000.0
LEASE = 10.0
# The real loop looks each second; that nothing depends on it makes runs short.
_LONGEST_SLEEP = 10.0


@dataclass
class Heard:
    """Alerts, by table."""

    told: dict[str, set[AlertKind]] = field(default_factory=dict)

    def emit(self, kind: AlertKind, table: str | None, message: str, **facts: Any) -> None:
        self.told.setdefault(table or "", set()).add(kind)


@dataclass
class Process:
    """One scheduler process; after a crash another one with a new number takes its place.

    Its clock differs by `skew`. It looks again at `wakes`, and whenever a refresh has ended. Until
    `stalled` it does nothing, and loses its leases.
    """

    number: int
    machine: Machine
    clock: SteadyClock
    skew: float
    stalled: float = 0.0
    wakes: float = 0.0


class Simulation:
    """One run; `world.log` is what happened, the same for the same seed."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.shape = shape
        self.random = Random(seed)
        self.began = START + self.random.uniform(0, 200)
        self.end = self.began + shape.horizon
        self.calm = self.began + shape.troubled * shape.horizon
        self.world = make_world(self.random, shape, self.began)
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

    def at(self, time: float, act: Any) -> None:
        """Do something at a time."""
        self._count += 1
        heapq.heappush(self.events, (time, self._count, act))

    # -- what happens of itself -----------------------------------------------------------------

    def _prepare(self) -> None:
        for _ in range(self.shape.processes):
            self._start_process()
        for _ in range(self.shape.crashes):
            self.at(self.random.uniform(self.began, self.calm), self._crash)
        for name in self.world.bases:
            self.at(self.began + self.random.uniform(0, 20), lambda name=name: self._write(name))
        if self.shape.ahead:
            for _ in range(self.shape.processes):
                self.at(self.calm, self._crash)
        users = Users(self)
        for _ in range(self.shape.events):
            self.at(self.random.uniform(self.began, self.calm), users.act)
        if self.shape.failures or self.shape.events:
            self.at(self.calm, users.resume_all)

    def _write(self, name: str) -> None:
        self.world.bases[name] += 1
        self.world.say(f"{name} version {self.world.bases[name]}")
        pause = self.random.choice([0.3, 3.0, 20.0, 60.0])
        self.at(self.world.now + self.random.expovariate(1 / pause), lambda: self._write(name))

    def _start_process(self) -> None:
        self._count += 1
        workers = self.shape.workers or len(self.world.tables) + self.shape.events
        limits = Limits(workers, 3, 1.0, self.shape.longest_outage)
        machine = Machine(
            SimBook(self.world), self.alerts, limits, Random(self.random.random()),
            lambda tables: self.world.units,
        )  # fmt: skip
        skew = self.random.uniform(-self.shape.skew, self.shape.skew)
        if self.shape.ahead and self.world.now < self.calm:
            skew += self.random.choice([0.0, self.shape.ahead])
        clock = SteadyClock(lambda: self.world.now + process.skew, lambda: self.world.now)
        process = Process(self._count, machine, clock, skew)
        self.processes[process.number] = process
        process.wakes = self.world.now + self.random.uniform(0, 1)
        self.at(process.wakes, lambda: self._tick(process))

    def _crash(self) -> None:
        """Everything in a process's memory goes; its leases are taken over a little later."""
        if not self.processes:
            return
        number = self.random.choice(sorted(self.processes))
        del self.processes[number]
        self.world.say(f"process {number} dies")
        for key in [k for k, owner in self.world.running.items() if owner == number]:
            del self.world.running[key]
        self.world.forsake(number, self.world.now + self.random.choice([0, 0, LEASE]))
        self.at(self.world.now + self.random.uniform(0.1, 5), self._start_process)

    # -- what a process does --------------------------------------------------------------------

    def _is_absent(self, process: Process, act: Any) -> bool:
        """Dead for ever, or doing it only when it goes on."""
        if process.number not in self.processes:
            return True
        if self.world.now < process.stalled:
            self.at(process.stalled, act)
            return True
        return False

    def _tick(self, process: Process) -> None:
        if self._is_absent(process, lambda: self._tick(process)):
            return
        if self.world.now >= process.wakes:
            self._decide(process)

    def _decide(self, process: Process) -> None:
        starts = process.machine.decide(process.clock())
        self.world.check_groups()
        for start in starts:
            self._begin(process, start)
        self._sleep(process)

    def _sleep(self, process: Process) -> None:
        now = process.clock()
        pause = process.machine.next_wake(now) + 1e-6 - now
        wakes = self.world.now + max(0.05, min(pause, _LONGEST_SLEEP))
        if process.wakes <= self.world.now or wakes < process.wakes:
            process.wakes = wakes
            self.at(wakes, lambda: self._tick(process))

    def _begin(self, process: Process, start: Start) -> None:
        snapshot = start.snapshot
        assert isinstance(snapshot, SimSnapshot)
        refused = self.world.begin(start.unit, snapshot, process.number)
        if refused is not None:
            event = Finished(start, refused)
            self.at(self.world.now + 0.01, lambda: self._tell(process, event))
            return
        seconds = max(self.seconds(key) for key in start.unit.members)
        self.at(self.world.now + seconds, lambda: self._end(process, start, seconds))

    def seconds(self, key: str) -> float:
        """What a refresh of a table takes."""
        return self.random.uniform(0.05, self.world.tables[key].longest)

    def _end(self, process: Process, start: Start, seconds: float) -> None:
        if self._is_absent(process, lambda: self._end(process, start, seconds)):
            return
        snapshot = start.snapshot
        assert isinstance(snapshot, SimSnapshot)
        if not self.world.holds(start.unit, process.number):
            # It was taken over while the process stood still: nothing that it does counts.
            self.world.let_go(start.unit, process.number)
            self._tell(process, Finished(start, Ending.BUSY))
            return
        event = self._ended(start, snapshot, seconds)
        self.world.release(start.unit)
        self._tell(process, event)

    def _ended(self, start: Start, snapshot: SimSnapshot, seconds: float) -> Finished:
        error_class = self._error()
        if error_class is not None and not self.world.is_past(start.unit, snapshot):
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
        if self.world.now < self.calm and self.random.random() < self.shape.failures:
            return self.random.choice(list(ErrorClass))
        return None

    def _tell(self, process: Process, event: Finished) -> None:
        if self._is_absent(process, lambda: self._tell(process, event)):
            return
        try:
            process.machine.finished(process.clock(), event)
        except NotFound as error:
            self.world.say(f"the end could not be noted: {error}")
        self._decide(process)
