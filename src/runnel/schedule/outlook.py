"""What `status` says about lag: what the scheduler would plan, from the catalog alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf, isfinite

from runnel.catalog import StreamTable
from runnel.model.refresh import TableState
from runnel.model.settings import Settings
from runnel.model.tabular import duration
from runnel.schedule.clock import AHEAD
from runnel.schedule.diamonds import planned_units
from runnel.schedule.held_up import HeldUp, held_up
from runnel.schedule.lag import LagPlan, plan_lag
from runnel.schedule.misses import misses, note_of
from runnel.schedule.staleness import is_stale
from runnel.schedule.units import Unit, condense
from runnel.schedule.views import TableView, instant

_AHEAD_OF_CLOCK = (
    "its data timestamp is {} ahead of the clock, which was or is wrong: how old its contents are "
    "is not known"
)
_AT_REST = (TableState.SUSPENDED, TableState.UPSTREAM_SUSPENDED)


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of a table, and whether it keeps it."""

    state: TableState
    target: float | None
    is_stale: bool | None
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

    def of_table(self, key: str, at: datetime) -> Expected:
        now = at.timestamp()
        table = self.tables[key]
        state = self._state(key)
        notes = [note_of(key, table, self.plan, self.missed.get(key))]
        if (ahead := _reached(table) - now) > AHEAD:
            notes.append(_AHEAD_OF_CLOCK.format(duration(ahead)))
        if key in self.held_up:
            notes.append(self.held_up[key][1])
        due = None if state in _AT_REST else self._next_due(key, now)
        aim = self.plan.aims[key]
        note = "; ".join(filter(None, notes))
        return Expected(state, aim.target, is_stale(table, aim.target, aim.cron, now), note, due)

    def _state(self, key: str) -> TableState:
        own = self.tables[key].state
        is_held_up = own is TableState.ACTIVE and key in self.held_up
        return self.held_up[key][0] if is_held_up else own

    def _next_due(self, key: str, now: float) -> datetime | None:
        """When `run` comes to it: by its own schedule, or with a consumer."""
        unit = self.plan.graph.unit_of[key]
        due = inf
        for other in {unit, *self.below[unit]}:
            rhythm = self.plan.rhythms[other]
            if not rhythm.is_own:
                continue
            last = rhythm.last(now)
            reached = min(_reached(self.tables[k]) for k in other.members)
            # What lies far ahead was set by a wrong clock, and keeps nobody waiting.
            reached = min(reached, now) if reached > now + AHEAD else reached
            due = min(due, last if reached < last else rhythm.next(reached))
        for other in {unit, *self.plan.graph.above[unit]}:
            due = max([due, *(self.tables[k].retry_at or due for k in other.members)])
        return instant(due) if isfinite(due) else None


def _reached(table: TableView) -> float:
    return -inf if table.timestamp is None else table.timestamp


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
