"""What `status` says about lag: what the scheduler would plan, from the catalog alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf, isfinite

from runnel.catalog import Questions, StreamTable
from runnel.model.refresh import TableState
from runnel.model.settings import Settings
from runnel.model.tabular import duration
from runnel.schedule.clock import AHEAD
from runnel.schedule.diamonds import planned_units
from runnel.schedule.held_up import HeldUp, held_up
from runnel.schedule.lag import LagPlan, plan_lag
from runnel.schedule.misses import misses, note_of
from runnel.schedule.retry import at_most
from runnel.schedule.staleness import is_stale, lag_by
from runnel.schedule.units import Unit, condense
from runnel.schedule.views import TableView, instant

_AHEAD_OF_CLOCK = "its data timestamp is {} ahead of the clock, which was or is wrong: {}"
_COUNTED = "its lag is counted from its last refresh"
_NOT_KNOWN = "how old its contents are is not known"
_RECENT = 200
_AT_REST = (TableState.SUSPENDED, TableState.UPSTREAM_SUSPENDED)


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of a table, and whether it keeps it."""

    state: TableState
    target: float | None
    is_stale: bool | None
    lag: float | None
    note: str
    next_due: datetime | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """The lag plan of a lake, for questions about single tables."""

    tables: Mapping[str, TableView]
    plan: LagPlan
    missed: Mapping[str, tuple[float, str]]
    held_up: Mapping[str, HeldUp]
    below: Mapping[Unit, frozenset[Unit]]

    @staticmethod
    def of(tables: Collection[StreamTable], settings: Settings) -> Outlook:
        views = {table.name.key: view_of(table) for table in tables}
        plan = plan_lag(views, condense(views, planned_units(tables, settings)))
        below: dict[Unit, set[Unit]] = {unit: set() for unit in plan.graph.units}
        for unit in plan.graph.units:
            for other in plan.graph.above[unit]:
                below[other].add(unit)
        frozen = {unit: frozenset(found) for unit, found in below.items()}
        return Outlook(views, plan, misses(views, plan), held_up(views, plan), frozen)

    def of_table(self, key: str, at: datetime, seen: float | None = None) -> Expected:
        """`seen` is when the table came to its data timestamp, where that lies ahead."""
        now = at.timestamp()
        table = replace(self.tables[key], seen_at=seen)
        state = self._state(key)
        notes = [note_of(key, table, self.plan, self.missed.get(key))]
        if (ahead := _reached(table) - now) > AHEAD:
            how_old = _NOT_KNOWN if lag_by(table, now) is None else _COUNTED
            notes.append(_AHEAD_OF_CLOCK.format(duration(ahead), how_old))
        if key in self.held_up:
            notes.append(self.held_up[key][1])
        due = None if state in _AT_REST else self._next_due(key, now)
        aim = self.plan.aims[key]
        note = "; ".join(filter(None, notes))
        late = is_stale(table, aim.target, aim.cron, now)
        return Expected(state, aim.target, late, lag_by(table, now), note, due)

    def _state(self, key: str) -> TableState:
        own = self.tables[key].state
        is_held_up = own is TableState.ACTIVE and key in self.held_up
        return self.held_up[key][0] if is_held_up else own

    def _next_due(self, key: str, now: float) -> datetime | None:
        """When `run` comes to it: by its own schedule, or with a consumer."""
        unit = self.plan.graph.unit_of[key]
        due = min(self._own_due(other, now) for other in {unit, *self.below[unit]})
        later = due
        for other in {unit, *self.plan.graph.above[unit]}:
            tries = [t for k in other.members if (t := self.tables[k].retry_at) is not None]
            later = max([later, *(at_most(t, now, self._own_due(other, now)) for t in tries)])
        return instant(later) if isfinite(later) else None

    def _own_due(self, unit: Unit, now: float) -> float:
        rhythm = self.plan.rhythms[unit]
        if not rhythm.is_own:
            return inf
        last = rhythm.last(now)
        reached = min(_reached(self.tables[k]) for k in unit.members)
        # What lies far ahead was set by a wrong clock, and keeps nobody waiting.
        reached = min(reached, now) if reached > now + AHEAD else reached
        return last if reached < last else rhythm.next(reached)


def _reached(table: TableView) -> float:
    return -inf if table.timestamp is None else table.timestamp


def seen_at(reader: Questions, table: StreamTable, now: datetime) -> float | None:
    """When a table came to its data timestamp, where that lies ahead: by the history, if at all."""
    if table.frontier is None or (reached := table.frontier.data_timestamp) <= now:
        return None
    attempts = reader.history(table.name.key, _RECENT)
    found = (a.finished_at for a in attempts if a.data_timestamp == reached)
    return next((at.timestamp() for at in found if at is not None), None)


def view_of(table: StreamTable) -> TableView:
    """What the scheduler sees of a stream table."""
    frontier = table.frontier
    return TableView(
        key=table.name.key,
        name=str(table.name),
        id=table.id,
        schedule=table.schedule,
        reads=tuple(s.key for s in table.sources if s.kind == "stream"),
        bases=tuple(s.key for s in table.sources if s.kind != "stream"),
        state=table.state,
        timestamp=frontier.data_timestamp.timestamp() if frontier else None,
        pins=frontier.pins if frontier else {},
        incarnation=table.incarnation,
        epoch=table.epoch,
        is_restless=frontier is None or table.follows_time or table.reinitialize is not None,
        reinitialize=table.reinitialize,
        errors=table.consecutive_errors,
        retry_at=table.retry_at.timestamp() if table.retry_at else None,
        seconds=table.work_seconds,
        waited=table.wait_seconds,
        label=table.label if table.is_hidden else "",
        since=table.altered_at.timestamp(),
    )
