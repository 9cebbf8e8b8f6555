"""Made-up lakes: random graphs with schedules, atomic diamonds, cycles; and what users alter."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from random import Random

from runnel.catalog import IN_CYCLE
from runnel.model.diamonds import DiamondConsistency, SchedulePolicy
from runnel.model.refresh import TableState
from runnel.model.schedule import Schedule
from runnel.model.settings import Settings
from runnel.schedule.diamonds import planned_units
from runnel.schedule.units import Unit
from runnel.schedule.views import TableView
from schedule import graphs
from schedule.sim_world import SimTable, World


@dataclass(frozen=True)
class Shape:
    """What a run may contain.

    Failures, crashes and what users do (`events`) come in the `troubled` share of the time: after
    it everything has to be as it should. `outages`: from when to when, in seconds after the
    beginning, every refresh fails. `ahead`: how far the clocks of some processes run ahead, until
    everything is calm.
    """

    tables: int = 7
    horizon: float = 240.0
    processes: int = 1
    workers: int | None = None
    failures: float = 0.0
    crashes: int = 0
    events: int = 0
    troubled: float = 0.4
    longest: float = 6.0
    schedules: tuple[str, ...] = ("12s", "30s", "1m", "100s")
    skew: float = 0.0
    ahead: float = 0.0
    outages: tuple[tuple[float, float], ...] = ()
    longest_outage: float = 3600.0


def make_world(random: Random, shape: Shape, now: float) -> World:
    """A random graph with random schedules; some of it in atomic groups or a cycle."""
    bases = {f"x{i}": random.randrange(5) for i in range(random.randint(1, 4))}
    consistency = random.choice([DiamondConsistency.NONE, DiamondConsistency.ATOMIC])
    policy = random.choice([SchedulePolicy.FASTEST, SchedulePolicy.FASTEST, SchedulePolicy.SLOWEST])
    settings = Settings(diamond_consistency=consistency, diamond_schedule_policy=policy)
    world = World(random, bases, {}, (), now, settings=settings)
    for _ in range(random.randint(2, shape.tables)):
        add_table(world, shape)
    if random.random() < 0.3:
        add_cycle(world, shape)
    world.regroup(units_of(world))
    return world


def add_table(world: World, shape: Shape) -> None:
    """A table over some of the others; the user may ask for atomic diamonds, or refuse them."""
    random = world.random
    key = _new_key(world)
    asked = random.choice([None, None, None, *DiamondConsistency])
    options = {"diamond_consistency": asked.value} if asked else {}
    text = random.choice([*shape.schedules, "DOWNSTREAM", None])
    world.tables[key] = _made(world, shape, key, text, *_sources(world, world.tables), options)


def add_cycle(world: World, shape: Shape) -> None:
    """As the lake keeps one: a hidden table holds the rows, and the members are one unit."""
    random = world.random
    holder = _new_key(world)
    reads, bases = _sources(world, world.tables)
    table = _made(world, shape, holder, "DOWNSTREAM", reads, bases, {})
    table.view = replace(table.view, label=f"cycle of {holder}")
    world.tables[holder] = table
    text = random.choice([*shape.schedules, None])
    options = {IN_CYCLE: f"default.{holder}"}
    for _ in range(random.randint(2, 3)):
        key = _new_key(world)
        world.tables[key] = _made(world, shape, key, text, (holder,), (), options)


def redefine(world: World, key: str) -> None:
    """ALTER ... AS: another query, perhaps over other sources; its rows are to be computed anew."""
    table = world.tables[key]
    earlier = {k: t for k, t in world.tables.items() if _number(k) < _number(key)}
    reads, bases = _sources(world, earlier)
    table.view = replace(
        table.view, reads=reads, bases=bases, pins={}, is_restless=True, since=world.now,
        incarnation=f"{table.view.incarnation}'", reinitialize="the query was changed",
    )  # fmt: skip
    table.defined_at = world.now
    world.regroup(units_of(world))


def reschedule(world: World, key: str, text: str | None) -> None:
    table = world.tables[key]
    schedule = Schedule.parse(text) if text else None
    table.view = replace(table.view, schedule=schedule, since=world.now)
    world.revision += 1


def drop(world: World, key: str) -> None:
    """With everything that reads it."""
    for name in below(world, key):
        del world.tables[name]
    world.regroup(units_of(world))


def below(world: World, key: str) -> list[str]:
    """A table, and all that reads it."""
    found = [key]
    for name in sorted(world.tables, key=_number):
        if not set(found).isdisjoint(world.tables[name].view.reads):
            found.append(name)
    return found


def units_of(world: World) -> tuple[Unit, ...]:
    """The units that the real scheduler makes of these definitions."""
    known = dict.fromkeys(world.tables, "")
    tables = [
        graphs.table(key, [*t.view.reads, *t.view.bases], known, options=t.options)
        for key, t in world.tables.items()
    ]
    found = planned_units(tables, world.settings)
    return tuple(
        Unit(tuple(k.removeprefix("default.") for k in unit.members), unit.policy) for unit in found
    )


def _made(
    world: World, shape: Shape, key: str, text: str | None, reads: tuple[str, ...],
    bases: tuple[str, ...], options: dict[str, str],
) -> SimTable:  # fmt: skip
    longest = world.random.choice([0.2, 1.0, shape.longest])
    view = TableView(
        key, key, key, Schedule.parse(text) if text else None, reads, bases,
        TableState.UNINITIALIZED, incarnation=f"i{key}", is_restless=True, seconds=longest,
        since=world.now,
    )  # fmt: skip
    return SimTable(view, world.random.choice([1, 1, 3]), longest, options)


def _sources(world: World, tables: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    random = world.random
    known = sorted(key for key in tables if not world.tables[key].view.label)
    reads = tuple(sorted(random.sample(known, min(len(known), random.choice([0, 1, 2, 2])))))
    few = random.randint(0 if reads else 1, 2)
    bases = tuple(sorted(random.sample(sorted(world.bases), min(len(world.bases), few))))
    return reads, bases


def _new_key(world: World) -> str:
    return f"t{1 + max(map(_number, world.tables), default=-1)}"


def _number(key: str) -> int:
    return int(key[1:])
