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
from runnel.schedule.failures import Failures
from runnel.schedule.lag import LagPlan, Rhythm, plan_lag
from runnel.schedule.late import Late
from runnel.schedule.under_way import Pass, Passes
from runnel.schedule.units import Unit, condense, units_of
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
    """Decides who is refreshed when, to which instant; `lasting` is what was told before."""

    book: Book
    alerts: Alerts
    limits: Limits = field(default_factory=Limits)
    random: Random = field(default_factory=Random)
    units: UnitsOf = units_of
    lasting: Mapping[AlertKind, Collection[str]] = field(default_factory=dict)
    tables: dict[str, TableView] = field(default_factory=dict)
    passes: Passes = field(default_factory=Passes)
    _plan: LagPlan | None = None
    _revision: int | None = None
    _dues: dict[Unit, tuple[float, float]] = field(default_factory=dict)
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
        self._look()
        if self._due(now):
            self.tables = self.book.progress(self.tables)
            if due := self._due(now):
                self._form_pass(now, due)
        self._late.look(self.passes, lambda unit: self._last_due(unit, now), self.tables)
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
            self.next_due(unit, now)
            for unit, rhythm in self.plan.rhythms.items()
            if rhythm.is_own and busy.isdisjoint(unit.members)
        ]
        return min([*dues, self._failures.next_try(now, self.tables)], default=inf)

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

    def _look(self) -> None:
        revision = self.book.revision()
        if revision != self._revision:
            self.tables = self.book.tables()
            self._plan = plan_lag(self.tables, condense(self.tables, self.units(self.tables)))
            self._dues.clear()
            self._revision = revision
            self.passes.keep_only(self.tables)

    def _last_due(self, unit: Unit, now: float) -> float:
        return self._due_around(unit, now)[0]

    def next_due(self, unit: Unit, now: float) -> float:
        """When a unit is due by its own schedule after now."""
        last, following = self._due_around(unit, now)
        rhythm = self.plan.rhythms.get(unit)
        if rhythm is None or len(unit.members) == 1:
            return following
        return rhythm.next(max(last, self._timestamp(unit)))

    def _due_around(self, unit: Unit, now: float) -> tuple[float, float]:
        """The due instants before and after now; kept, because cron lines are slow to work out."""
        known = self._dues.get(unit)
        if known is None or not known[0] <= now < known[1]:
            rhythm = self.plan.rhythms.get(unit, Rhythm())
            last = rhythm.last(now)
            known = self._dues[unit] = (last, rhythm.next(last))
        return known

    def _due(self, now: float) -> list[Unit]:
        """Units whose due instant they have not reached, and that nothing keeps from starting."""
        busy = self.passes.waiting() | self.passes.running()
        found = [
            unit
            for unit, rhythm in self.plan.rhythms.items()
            if rhythm.is_own
            and busy.isdisjoint(unit.members)
            and self._timestamp(unit) < self._last_due(unit, now)
        ]
        blocked = self._blocked(now) if found else set()
        free = [u for u in found if blocked.isdisjoint({u, *self.plan.graph.above[u]})]
        return sorted(free, key=lambda unit: (self._deadline(unit, now), unit.members))

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
        reached = self._timestamp(unit)
        if not targets or reached == -inf:
            return self._last_due(unit, now)
        return reached + min(targets)

    # -- passes ---------------------------------------------------------------------------------

    def _form_pass(self, now: float, due: list[Unit]) -> None:
        """Bring the units that are due, and all above them, to one instant."""
        deadlines = self._members(now, due)
        if not deadlines:
            return
        graph = self.plan.graph
        tables = [self.tables[k] for unit in graph.in_order(deadlines) for k in unit.members]
        reached = max((t for v in tables if (t := v.timestamp) is not None), default=-inf)
        snapshot = self.book.pin(max(now, reached + _INSTANT), tables)
        of_pass = self.passes.open(snapshot, graph, deadlines)
        self._settle_quiet(of_pass)
        self.passes.close_over()

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

    def _is_quiet(self, unit: Unit, of_pass: Pass) -> bool:
        return all(self._has_no_news(self.tables[k], of_pass.snapshot) for k in unit.members)

    def _has_no_news(self, table: TableView, snapshot: Snapshot) -> bool:
        if table.state is not TableState.ACTIVE or table.is_restless or table.timestamp is None:
            return False
        if any(
            b not in snapshot.pins or snapshot.pins[b] != table.pins.get(b) for b in table.bases
        ):
            return False
        return all(self._is_pinned(table, self.tables[source]) for source in table.reads)

    @staticmethod
    def _is_pinned(table: TableView, source: TableView) -> bool:
        pin = table.pins.get(source.key)
        return pin is not None and (pin.identity, pin.version) == (source.incarnation, source.epoch)

    def _starts(self) -> list[Start]:
        started: list[Start] = []
        for of_pass, unit in self.passes.ready():
            if self.passes.count_running() >= self.limits.concurrent:
                break
            if self.passes.running().isdisjoint(unit.members):
                of_pass.waiting.discard(unit)
                of_pass.running.add(unit)
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
        """Measure what is not its own work: the tables above, its turn, what is tidied up."""
        work = sum(result.seconds for result in event.results)
        waited = max(0.0, now - event.start.snapshot.timestamp - work)
        for key in event.start.unit.members:
            if (table := self.tables.get(key)) is not None:
                self.tables[key] = replace(table, waited=averaged(table.waited, waited))
                self.book.note_wait(self.tables[key])
