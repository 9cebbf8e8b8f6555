"""Target lag through the graph: each unit's period and due instants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from math import inf

from runnel.model.schedule import Cron
from runnel.schedule.periods import aligned, period_for
from runnel.schedule.units import Condensed, Policy, Unit
from runnel.schedule.views import TableView, instant

_REFERENCE = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Rhythm:
    """When a unit is due by itself: every `period` seconds, or by its cron lines, or never.

    `follows` are cron lines above it: then it is due with those, its own period being shorter.
    """

    period: float | None = None
    crons: tuple[Cron, ...] = ()
    follows: tuple[Cron, ...] = ()
    policy: Policy = Policy.FASTEST

    @property
    def is_own(self) -> bool:
        return self.period is not None or bool(self.crons)

    @property
    def every(self) -> float | None:
        """About how many seconds lie between two due instants."""
        gaps = [*map(_gap, self.crons), *([] if self.period is None else [self.period])]
        chosen = min if self.policy is Policy.FASTEST else max
        return chosen(gaps) if gaps else None

    def last(self, now: float) -> float:
        """The last due instant."""
        found = [_fired(cron, now) for cron in self.crons]
        if self.period is not None:
            followed = [_fired(cron, now) for cron in self.follows]
            found.append(max(followed) if followed else aligned(now, self.period))
        chosen = max if self.policy is Policy.FASTEST else min
        return chosen(found) if found else -inf

    def next(self, reached: float) -> float:
        """When a unit that has come this far is due again: the first instant at which `last` is
        later than that.
        """
        found = [_fires(cron, reached) for cron in self.crons]
        if self.period is not None:
            followed = [_fires(cron, reached) for cron in self.follows]
            following = aligned(reached, self.period) + self.period
            found.append(min(followed) if followed else following)
        chosen = min if self.policy is Policy.FASTEST else max
        return chosen(found) if found else inf


@dataclass(frozen=True, slots=True)
class Aim:
    """What a table is to keep: its own target, or the one that its consumers hand up.

    `raised_by` is the table above that makes its period longer than its target asks for,
    `wanted_by` the table whose schedule was handed up.
    """

    target: float | None = None
    period: float | None = None
    raised_by: str | None = None
    cron: Cron | None = None
    wanted_by: str | None = None


@dataclass(frozen=True, slots=True)
class LagPlan:
    """The rhythms of all units and the aims of all tables; changes only with definitions."""

    graph: Condensed
    rhythms: Mapping[Unit, Rhythm]
    aims: Mapping[str, Aim]


def plan_lag(tables: Mapping[str, TableView], graph: Condensed) -> LagPlan:
    """Resolve schedules: periods go down the graph, needs go up."""
    aims = _aims_down(tables, graph)
    _needs_up(tables, graph, aims)
    rhythms = {unit: _rhythm(unit, tables, graph, aims) for unit in graph.units}
    return LagPlan(graph, rhythms, aims)


def _aims_down(tables: Mapping[str, TableView], graph: Condensed) -> dict[str, Aim]:
    """Own targets; a period is never shorter than that of a table above."""
    aims: dict[str, Aim] = {}
    beats: dict[Unit, tuple[float, str]] = {}
    for unit in graph.in_order(graph.units):
        slowest = max((beats[above] for above in graph.above[unit]), default=(0.0, ""))
        for key in unit.members:
            aims[key] = _own_aim(tables[key], slowest)
        beats[unit] = _beat(unit, aims, tables)
    return aims


def _own_aim(table: TableView, slowest: tuple[float, str]) -> Aim:
    schedule = table.schedule
    if schedule is None or schedule.is_downstream:
        return Aim()
    if schedule.seconds is None:
        return Aim(cron=schedule.cron, period=_gap(schedule.cron) if schedule.cron else None)
    wanted = period_for(schedule.seconds)
    if slowest[0] > wanted:
        return Aim(schedule.seconds, slowest[0], slowest[1])
    return Aim(schedule.seconds, wanted)


def _beat(
    unit: Unit, aims: Mapping[str, Aim], tables: Mapping[str, TableView]
) -> tuple[float, str]:
    """The period that a unit is refreshed with, and the member that decides it."""
    periods = [(p, tables[k].name) for k in unit.members if (p := aims[k].period) is not None]
    chosen = min if unit.policy is Policy.FASTEST else max
    return chosen(periods) if periods else (0.0, "")


def _needs_up(tables: Mapping[str, TableView], graph: Condensed, aims: dict[str, Aim]) -> None:
    """A DOWNSTREAM table has the target of the table below, or beside it, that needs it most often.

    Who has no schedule hands on what is needed of it: it comes along when a consumer is due.
    """
    needs: dict[Unit, Aim] = {}
    below = _readers(graph)
    for unit in reversed(graph.in_order(graph.units)):
        timed = [key for key in unit.members if aims[key].target is not None or aims[key].cron]
        wanted = [_wanted(aims[key], tables[key].name) for key in timed]
        if len(timed) < len(unit.members):
            wanted += [needs[reader] for reader in below[unit] if reader in needs]
        if not wanted:
            continue
        needs[unit] = min(wanted, key=_hurry)
        for key in unit.members:
            schedule = tables[key].schedule
            if schedule is not None and schedule.is_downstream:
                aims[key] = needs[unit]


def _readers(graph: Condensed) -> dict[Unit, list[Unit]]:
    found: dict[Unit, list[Unit]] = {unit: [] for unit in graph.units}
    for unit in graph.units:
        for parent in graph.parents[unit]:
            found[parent].append(unit)
    return found


def _wanted(aim: Aim, by: str) -> Aim:
    """What a table's own aim asks of those above it."""
    return Aim(aim.target, None if aim.cron else aim.period, cron=aim.cron, wanted_by=by)


def _hurry(aim: Aim) -> tuple[bool, float, str]:
    """A target lag comes before a cron line, and the more frequent one first."""
    gap = _gap(aim.cron) if aim.cron else aim.period or inf
    return aim.target is None, gap, aim.wanted_by or ""


def _rhythm(
    unit: Unit, tables: Mapping[str, TableView], graph: Condensed, aims: Mapping[str, Aim]
) -> Rhythm:
    period = _unit_period(unit, aims, tables)
    above = _crons(graph.above[unit], tables) if period is not None else ()
    slower = tuple(cron for cron in above if _gap(cron) >= (period or inf))
    return Rhythm(period, _crons([unit], tables), slower, unit.policy)


def _crons(units: Iterable[Unit], tables: Mapping[str, TableView]) -> tuple[Cron, ...]:
    schedules = (tables[key].schedule for unit in units for key in unit.members)
    found = {s.cron for s in schedules if s is not None and s.cron is not None}
    return tuple(sorted(found, key=lambda cron: (cron.fields, cron.zone)))


def _unit_period(
    unit: Unit, aims: Mapping[str, Aim], tables: Mapping[str, TableView]
) -> float | None:
    own = [k for k in unit.members if (s := tables[k].schedule) is not None and s.seconds]
    periods = [p for k in own if (p := aims[k].period) is not None]
    chosen = min if unit.policy is Policy.FASTEST else max
    return chosen(periods) if periods else None


@lru_cache(maxsize=256)
def _gap(cron: Cron) -> float:
    """About how far apart the instants of a cron line are."""
    first = cron.after(_REFERENCE)
    return (cron.after(first) - first).total_seconds()


def _fired(cron: Cron, now: float) -> float:
    return cron.until(instant(now)).timestamp()


def _fires(cron: Cron, now: float) -> float:
    return cron.after(instant(now)).timestamp()
