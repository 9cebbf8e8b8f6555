"""The scheduler as a state machine: the time goes in, what to start comes out; no thread, no clock.

Whoever drives it calls `decide` now and then and after each refresh that ended, and does what it
says. Everything that it knows of the lake it asks its book for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from random import Random

from runnel.model.alerts import AlertKind, Alerts
from runnel.model.refresh import TableState
from runnel.model.results import RefreshResult
from runnel.model.smoothing import averaged
from runnel.schedule.clock import AHEAD
from runnel.schedule.dues import Dues
from runnel.schedule.failures import Failures
from runnel.schedule.joining import join
from runnel.schedule.lag import LagPlan, plan_lag
from runnel.schedule.late import Late
from runnel.schedule.news import has_no_news
from runnel.schedule.retry import Tries
from runnel.schedule.under_way import Pass, Passes
from runnel.schedule.units import Condensed, Unit, condense, units_of
from runnel.schedule.views import Book, Ending, Finished, Snapshot, Start, TableView
from runnel.schedule.watch import Watch

# T grows with every pass, also when a clock was set back or another process's is ahead.
_INSTANT = 1e-6

UnitsOf = Callable[[Mapping[str, TableView]], tuple[Unit, ...]]


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings that the scheduler heeds."""

    concurrent: int = 4
    errors: int = 3
    interval: float = 1.0
    outage: float = 3600.0


@dataclass(slots=True)
class Machine:
    """Decides who is refreshed when, to which instant; `lasting` is what was told before.

    `is_ready`: whether what refreshes need is there; asked when there is something to refresh.
    """

    book: Book
    alerts: Alerts
    limits: Limits = field(default_factory=Limits)
    random: Random = field(default_factory=Random)
    units: UnitsOf = units_of
    lasting: Mapping[AlertKind, Collection[str]] = field(default_factory=dict)
    is_ready: Callable[[], bool] = lambda: True
    tables: dict[str, TableView] = field(default_factory=dict)
    passes: Passes = field(default_factory=Passes)
    _plan: LagPlan | None = None
    _revision: int | None = None
    _dues: Dues = field(default_factory=Dues)
    _brought: dict[Unit, tuple[float, float]] = field(default_factory=dict)
    _tries: Tries = field(default_factory=Tries)
    _failures: Failures = field(init=False)
    _late: Late = field(init=False)
    _watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        limits, known = self.limits, {kind: set(keys) for kind, keys in self.lasting.items()}
        self._failures = Failures(self.book, self.alerts, limits.errors, limits.outage, self.random)
        self._late = Late(self.book)
        self._watch = Watch(self.alerts, limits.errors, known)

    def decide(self, now: float) -> list[Start]:
        """What to start now; each start must be answered with `finished`."""
        self._look(now)
        if self._due(now):
            self._heed(now, self.book.progress(self.tables))
            if due := self._due(now):
                self._form_pass(now, due)
        self._late.look(self.passes, lambda unit: self._dues.last(unit, now), self.tables)
        self._watch.look(now, self.tables, self.plan)
        return self._starts()

    def continue_passes(self) -> list[Start]:
        """What can start in the passes under way, without forming another one."""
        return self._starts()

    def finished(self, now: float, event: Finished) -> None:
        """Take note of how a start ended; `decide` again after it."""
        start = event.start
        of_pass = self.passes.under_way[start.number]
        of_pass.running.discard(start.unit)
        if event.ending is Ending.DONE:
            of_pass.done.add(start.unit)
            self._advance(start.snapshot, event.results)
            self._note_brought(start.unit, of_pass)
            self._failures.forget(start.unit)
        else:
            of_pass.drop_below(start.unit)
        self.passes.close_over()
        if event.ending is not Ending.DONE:
            self._failures.take(now, event, self.tables, self.next_due(start.unit, now))
        else:
            self._note_wait(now, event)

    def next_wake(self, now: float) -> float:
        """When something falls due next, if nothing happens before."""
        busy = self.passes.waiting() | self.passes.running()
        dues = [
            self.next_due(unit, now) for unit in self._dues.own if busy.isdisjoint(unit.members)
        ]
        return min([*dues, self._failures.next_try(now, self.tables)], default=inf)

    def seen(self, table: TableView) -> TableView:
        """The table with when it was first seen where it stands, if that lay ahead."""
        return self._watch.sightings.of(table)

    @property
    def is_idle(self) -> bool:
        return not self.passes.under_way

    def forget(self) -> None:
        """Read all definitions again before anything else is decided."""
        self._revision = None

    def stop(self) -> None:
        """Start nothing more; what runs goes on."""
        for of_pass in self.passes.under_way.values():
            of_pass.waiting.clear()
        self.passes.close_over()

    # -- looking --------------------------------------------------------------------------------

    @property
    def plan(self) -> LagPlan:
        assert self._plan is not None
        return self._plan

    def _look(self, now: float) -> None:
        revision = self.book.revision()
        if revision != self._revision:
            self.tables = self.book.tables()
            self._plan = plan_lag(self.tables, self._graph())
            self._dues = Dues(self._plan.rhythms)
            self._revision = revision
            self.passes.follow(self._plan.graph)
            self._heed(now, self.tables)

    def _heed(self, now: float, tables: Mapping[str, TableView]) -> None:
        """Take over how far the tables have come, and until when they are left alone."""
        units = self.plan.graph.unit_of
        self.tables = self._tries.heed(now, tables, lambda key: self.next_due(units[key], now))

    def _graph(self) -> Condensed:
        """The graph of units; the same one as long as it has not changed."""
        graph = condense(self.tables, self.units(self.tables))
        return self._plan.graph if self._plan is not None and graph == self._plan.graph else graph

    def next_due(self, unit: Unit, now: float) -> float:
        """When a unit is due by its own schedule after now."""
        known = all(key in self.tables for key in unit.members)
        return self._dues.next(unit, now, self._reached(unit, now) if known else -inf)

    def _due(self, now: float) -> list[Unit]:
        """Units whose due instant they have not reached, and that nothing keeps from starting."""
        busy = self.passes.waiting() | self.passes.running()
        found = [
            unit
            for unit in self._dues.own
            if busy.isdisjoint(unit.members) and self._is_due(unit, now)
        ]
        blocked = self._blocked(now) if found else set()
        free = [u for u in found if blocked.isdisjoint({u, *self.plan.graph.above[u]})]
        return sorted(free, key=lambda unit: (self._deadline(unit, now), unit.members))

    def _is_due(self, unit: Unit, now: float) -> bool:
        return self._reached(unit, now) < self._dues.last(unit, now)

    def _reached(self, unit: Unit, now: float) -> float:
        """How far a unit has come by the clock of this process.

        T is no measure of it while it lies in the future: a clock that was wrong set it, and who
        waited until that time is there would refresh nothing meanwhile.
        """
        reached = self._timestamp(unit)
        if reached <= now:
            return reached
        brought, at = self._brought.get(unit, (-inf, -inf))
        return at if brought == reached or reached > now + AHEAD else reached

    def _note_brought(self, unit: Unit, of_pass: Pass) -> None:
        if all(key in self.tables for key in unit.members):
            self._brought[unit] = (self._timestamp(unit), of_pass.at)

    def _timestamp(self, unit: Unit) -> float:
        return min(-inf if (t := self.tables[k].timestamp) is None else t for k in unit.members)

    def _blocked(self, now: float) -> set[Unit]:
        """Units that must not start: suspended, failed a moment ago, or busy elsewhere."""
        return {
            unit
            for unit in self.plan.graph.units
            if any(
                self.tables[k].state is TableState.SUSPENDED
                or (self.tables[k].retry_at or -inf) > now
                for k in unit.members
            )
            or self._failures.is_busy_elsewhere(unit, now)
        }

    def _deadline(self, unit: Unit, now: float) -> float:
        """Until when the unit should have been refreshed; what is late longest comes first."""
        targets = [t for k in unit.members if (t := self.plan.aims[k].target) is not None]
        reached = self._reached(unit, now)
        if not targets or reached == -inf:
            return self._dues.last(unit, now)
        return reached + min(targets)

    # -- passes ---------------------------------------------------------------------------------

    def _form_pass(self, now: float, due: list[Unit]) -> None:
        """Bring the units that are due, and all above them, to one instant."""
        deadlines = self._members(now, [unit for unit in due if not self._join(unit, now)])
        if not deadlines:
            return
        graph = self.plan.graph
        tables = [self.tables[k] for unit in graph.in_order(deadlines) for k in unit.members]
        reached = max((t for v in tables if (t := v.timestamp) is not None), default=-inf)
        timestamp = max(now, reached + _INSTANT)
        snapshot = self.book.pin(timestamp, [*tables, *self._to_join(now)])
        of_pass = self.passes.open(now, snapshot, graph, deadlines)
        self._settle_quiet(of_pass)
        if of_pass.waiting and not self.is_ready():
            # Whoever waited here would be as late in the end as it was when it began to wait.
            of_pass.waiting.clear()
        self.passes.close_over()

    def _to_join(self, now: float) -> list[TableView]:
        """Tables that are due and busy, with all above them: they may join the pass later."""
        busy = self.passes.waiting() | self.passes.running()
        late = {
            unit
            for unit in self._dues.own
            if not busy.isdisjoint(unit.members) and self._is_due(unit, now)
        }
        units = late.union(*(self.plan.graph.above[unit] for unit in late))
        return [self.tables[k] for unit in self.plan.graph.in_order(units) for k in unit.members]

    def _join(self, unit: Unit, now: float) -> bool:
        due, deadline = self._dues.last(unit, now), self._deadline(unit, now)
        return join(unit, due, deadline, self.passes, self.plan.graph, self.tables)

    def _members(self, now: float, due: list[Unit]) -> dict[Unit, float]:
        """The units of a new pass with their deadlines.

        What runs in an older pass comes along and starts again after that. For what still waits in
        one, who needs it waits too, until it is late: then it goes before whoever is less late.
        Else a table that reads several slow ones might never find all of them free at once.
        """
        waits = self.passes.waits()
        kept: set[str] = set()
        found: dict[Unit, float] = {}
        for unit in due:
            together = {unit, *self.plan.graph.above[unit]}
            tables = {key for member in together for key in member.members}
            deadline = self._deadline(unit, now)
            taken = max(waits[key] for key in tables)
            if taken and (deadline >= now or taken > 1 or not kept.isdisjoint(tables)):
                kept |= tables if deadline < now else set()
                continue
            for member in together:
                found[member] = min(deadline, found.get(member, inf))
        return found

    def _settle_quiet(self, of_pass: Pass) -> None:
        """Units without any news below their pins are moved on in one go, without a refresh."""
        busy = self.passes.running() | {k for k, n in self.passes.waits().items() if n > 1}
        quiet: dict[Unit, None] = {}
        for unit in of_pass.graph.in_order(of_pass.waiting):
            is_settled = of_pass.graph.parents[unit] <= quiet.keys()
            if is_settled and busy.isdisjoint(unit.members) and self._is_quiet(unit, of_pass):
                quiet[unit] = None
        views = [self.tables[k] for unit in quiet for k in unit.members]
        moved = set(self.book.quiet(of_pass.snapshot, views)) if views else set()
        for unit in quiet:
            self._settle(of_pass, unit, moved)

    def _settle(self, of_pass: Pass, unit: Unit, moved: set[str]) -> None:
        if unit not in of_pass.waiting:
            return
        of_pass.waiting.discard(unit)
        if not moved.issuperset(unit.members):
            of_pass.drop_below(unit)
            return
        of_pass.done.add(unit)
        for key in unit.members:
            timestamp = of_pass.snapshot.timestamp
            self.tables[key] = replace(
                self.tables[key], timestamp=timestamp, errors=0, retry_at=None
            )
        self._note_brought(unit, of_pass)

    def _is_quiet(self, unit: Unit, of_pass: Pass) -> bool:
        tables, snapshot = self.tables, of_pass.snapshot
        return all(has_no_news(tables[key], snapshot, tables) for key in unit.members)

    def _starts(self) -> list[Start]:
        started: list[Start] = []
        for of_pass, unit in self.passes.ready():
            if self.passes.count_running() >= self.limits.concurrent:
                break
            if self.passes.running().isdisjoint(unit.members):
                of_pass.start(unit)
                started.append(Start(of_pass.number, unit, of_pass.snapshot))
        return started

    # -- afterwards -----------------------------------------------------------------------------

    def _advance(self, snapshot: Snapshot, results: tuple[RefreshResult, ...]) -> None:
        """Remember where a refresh led, so that nothing has to be read for the next decision."""
        by_name = {table.name: table for table in self.tables.values()}
        for result in results:
            table = by_name.get(result.name)
            if table is None:
                continue
            self.tables[table.key] = replace(
                table,
                timestamp=max(snapshot.timestamp, table.timestamp or -inf),
                epoch=result.epoch if result.epoch is not None else table.epoch,
                errors=0,
                retry_at=None,
            )

    def _note_wait(self, now: float, event: Finished) -> None:
        """Measure what is not its own work: the tables above, its turn."""
        work = sum(result.seconds for result in event.results)
        waited = max(0.0, now - event.start.snapshot.timestamp - work)
        for key in event.start.unit.members:
            if (table := self.tables.get(key)) is not None:
                self.tables[key] = replace(table, waited=averaged(table.waited, waited))
                self.book.note_wait(self.tables[key])
