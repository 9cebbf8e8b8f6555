"""What must hold over a whole simulated run; what is possible is worked out here once more."""

from __future__ import annotations

from collections.abc import Callable

from runnel.model.alerts import AlertKind
from runnel.model.refresh import TableState
from runnel.schedule.units import Condensed, Policy, Unit, condense
from schedule.sim import Simulation
from schedule.sim_world import Broken, World

# Within so many seconds a process has noticed what there is to do.
_TICK = 0.1
_CRON = 120.0
# Leases that run out, and pauses after failures.
_SLACK = 60.0
# Who finds a table busy elsewhere looks at it again after at most so many seconds.
_BUSY = 5.0


def check_lag(run: Simulation) -> int:
    """How many tables had a target that can be kept: period, waiting and work fit into it."""
    lake, shape = _Lake(run.world), run.shape
    if shape.processes == 1:
        return _check_held(run, lake, lake.lag_of)
    return _check_held(run, lake, lambda unit: lake.lag_with_others(unit, shape.skew))


def check_lag_with_few_workers(run: Simulation) -> int:
    """The same where refreshes wait for a turn, but keep the workers busy less than half the time."""
    lake, workers = _Lake(run.world), run.shape.workers
    assert workers is not None
    if len(lake.graph.units) <= workers or lake.load() >= 0.5 * workers:
        return 0
    return _check_held(run, lake, lambda unit: lake.lag_in_turn(unit, workers))


def _check_held(run: Simulation, lake: _Lake, lag_of: Callable[[Unit], float | None]) -> int:
    held = 0
    for unit in lake.timed:
        needed = lag_of(unit)
        for key in unit.members:
            target = lake.target(key)
            if needed is None or target is None or needed >= target:
                continue
            lag = _worst(run, key)
            if lag > target:
                said = f"{key} was {lag:.1f} s behind, its target is {target:g} s"
                raise Broken(f"{said}, and {needed:.1f} s can be kept")
            held += 1
    return held


def check_rhythm(run: Simulation) -> None:
    """Nobody is refreshed more often than it is due, unless a consumer asks for it."""
    lake = _Lake(run.world)
    for unit in lake.timed:
        beat = lake.beats[unit]
        if beat is None or any(unit in lake.graph.above[other] for other in lake.timed):
            continue
        most = 2 + int((run.world.now - run.began) / beat)
        for key in unit.members:
            if run.world.tables[key].refreshes > most:
                raise Broken(f"{key} was refreshed more often than every {beat:g} s")


def check_late_is_told(run: Simulation) -> int:
    """How many tables were late all the time: of each an alert has said so, with the reason."""
    late = 0
    for key, table in run.world.tables.items():
        target = _Lake(run.world).target(key)
        if target is None or len(table.lags) < 6 or min(table.lags) < 1.3 * target:
            continue
        late += 1
        if AlertKind.LAG_UNREACHABLE not in run.alerts.told.get(key, ()):
            raise Broken(f"{key} was late all the time, and nobody was told why")
    return late


def check_nobody_starves(run: Simulation) -> int:
    """How many tables that someone wants got their turn all the time, however much there is."""
    return _check_turns(run, lambda key: _worst(run, key))


def check_nobody_is_left(run: Simulation) -> int:
    """How many tables that someone wants have come along to the end, whatever happened before."""

    def behind(key: str) -> float:
        table = run.world.tables[key]
        view = table.view
        # An instant to come is that of a clock that ran ahead: it says nothing of the contents.
        is_ahead = view.timestamp is not None and view.timestamp > run.world.now + run.shape.skew
        reached = table.reached_at if is_ahead else view.timestamp
        return run.world.now - (view.since if reached is None else reached)

    return _check_turns(run, behind)


def _check_turns(run: Simulation, behind: Callable[[str], float]) -> int:
    lake = _Lake(run.world)
    work = sum(table.longest for table in run.world.tables.values())
    for unit, beat in lake.wanted.items():
        allowed = 2 * beat + 3 * work + _SLACK
        for key in unit.members if not lake.is_stuck(unit) else ():
            if behind(key) > allowed:
                said = f"{key} is {behind(key):.0f} s behind, {allowed:.0f} s at most were expected"
                raise Broken(f"{said}; all refreshes take {work:.0f} s")
    return len(lake.wanted)


def period(target: float) -> float:
    """48 seconds times a power of two, at most half of the target."""
    found = 48.0 / 2**7
    while 2 * found <= target / 2:
        found *= 2
    return found


def _worst(run: Simulation, key: str) -> float:
    table = run.world.tables[key]
    reached = table.view.timestamp
    return max(table.worst_lag, run.world.now - (run.began if reached is None else reached))


class _Lake:
    """Schedules and durations of a world; nothing of this is asked of the scheduler."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.graph = self._graph()
        self.timed = [u for u in self.graph.units if any(self._own(key) for key in u.members)]
        self.beats = self._beats()
        self.paths = self._paths()
        self.wanted = self._wanted()

    def target(self, key: str) -> float | None:
        schedule = self.world.tables[key].view.schedule
        return schedule.seconds if schedule is not None else None

    def lag_of(self, unit: Unit) -> float | None:
        """How far behind a unit is at most; None where a cron line decides about it.

        The next refresh begins when it is due, or when this one is over; on the way to it one may
        just have begun for someone else, and is not cut short.
        """
        beat, busy = self.beats[unit], self.paths[unit]
        if beat is None:
            return None
        others = set(self.timed) - {unit}
        needed = others.union(*(self.graph.above[other] for other in others))
        shared = needed & {unit, *self.graph.above[unit]}
        blocked = max((self._work(other) for other in shared), default=0.0)
        return max(beat, busy) + busy + blocked + _TICK

    def lag_with_others(self, unit: Unit, skew: float) -> float | None:
        """The same with other processes: one of them may be late by its clock, and find something
        busy on the last step of the way, so that it pauses and goes all the way again.
        """
        alone = self.lag_of(unit)
        return None if alone is None else alone + skew + _BUSY + self.paths[unit]

    def lag_in_turn(self, unit: Unit, workers: int) -> float | None:
        """The same with few workers: all there is may be due at once, and again before it is done.

        Nobody idles while something is ready, so that all of it takes at most what it takes side by
        side, and the longest path (Graham's bound).
        """
        if self.beats[unit] is None:
            return None
        work = [self._work(other) for other in self.graph.units]
        at_once = sum(work) / workers + max(self.paths.values())
        return max(self.beats[unit] or 0.0, at_once) + 2 * at_once + _TICK

    def load(self) -> float:
        """How many workers are busy on average, when there is always news."""
        total = 0.0
        for unit in self.graph.units:
            askers = [t for t in self.timed if unit in {t, *self.graph.above[t]}]
            beats = [self.beats[asker] or _CRON for asker in askers]
            total += self._work(unit) / min(beats) if beats else 0.0
        return total

    def is_stuck(self, unit: Unit) -> bool:
        together = {unit, *self.graph.above[unit]}
        states = (self.world.tables[key].view.state for u in together for key in u.members)
        return TableState.SUSPENDED in states

    def _graph(self) -> Condensed:
        return condense({k: t.view for k, t in self.world.tables.items()}, self.world.units)

    def _own(self, key: str) -> float | None:
        """How often a table is due by its own schedule, about."""
        schedule = self.world.tables[key].view.schedule
        if schedule is None or schedule.is_downstream:
            return None
        return period(schedule.seconds) if schedule.seconds else _CRON

    def _work(self, unit: Unit) -> float:
        return max(self.world.tables[key].longest for key in unit.members)

    def _beats(self) -> dict[Unit, float | None]:
        """How often each unit is due; nobody is more often than what it reads."""
        found: dict[Unit, float | None] = {}
        for unit in self.graph.in_order(self.graph.units):
            above = [found[other] for other in self.graph.above[unit]]
            schedules = [self.world.tables[key].view.schedule for key in unit.members]
            if None in above or any(s is not None and s.cron for s in schedules):
                found[unit] = None
                continue
            slowest = max([0.0, *(beat for beat in above if beat)])
            own = [max(beat, slowest) for key in unit.members if (beat := self._own(key))]
            chosen = min if unit.policy is Policy.FASTEST else max
            found[unit] = chosen(own) if own else 0.0
        return found

    def _paths(self) -> dict[Unit, float]:
        """How long it takes at most from an instant until a unit shows it."""
        found: dict[Unit, float] = {}
        for unit in self.graph.in_order(self.graph.units):
            above = max((found[p] for p in self.graph.parents[unit]), default=0.0)
            found[unit] = above + self._work(unit)
        return found

    def _wanted(self) -> dict[Unit, float]:
        """Units with a schedule and what they read, with how long it is about until they are due."""
        own = {u: max(filter(None, map(self._own, u.members))) for u in self.timed}
        slow = {u: max(own.get(a, 0.0) for a in {u, *self.graph.above[u]}) for u in self.timed}
        found = dict(slow)
        for unit in self.timed:
            for other in self.graph.above[unit]:
                found[other] = min(slow[unit], found.get(other, slow[unit]))
        return found
