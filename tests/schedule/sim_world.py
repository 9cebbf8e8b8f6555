"""A lake made of numbers: versions, epochs, leases and contents that can be computed again."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from random import Random
from typing import Any

from runnel.model.frontier import Pin
from runnel.model.refresh import RefreshAction, TableState
from runnel.model.results import RefreshResult
from runnel.model.settings import Settings
from runnel.schedule.units import Unit
from runnel.schedule.views import Ending, Failure, TableView

Contents = tuple[object, ...]


class Broken(AssertionError):
    """A promise of the scheduler does not hold."""


@dataclass
class SimTable:
    """A stream table; it only notices every `stride`-th version of a base source."""

    view: TableView
    stride: int
    longest: float
    options: dict[str, Any] = field(default_factory=dict)
    contents: dict[int, Contents] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    refreshes: int = 0
    reached_at: float = 0.0
    worst_lag: float = 0.0
    lags: deque[float] = field(default_factory=lambda: deque(maxlen=6))
    suspended_at: float = inf
    defined_at: float = 0.0

    def mark(self, state: TableState, now: float = inf) -> None:
        """SUSPEND and RESUME; a resumed table has no errors any more."""
        if state is TableState.SUSPENDED:
            self.suspended_at = now
            self.view = replace(self.view, state=state)
            return
        self.suspended_at = inf
        self.failures.clear()
        found = state if self.view.epoch else TableState.UNINITIALIZED
        self.view = replace(self.view, state=found, errors=0, retry_at=None)


@dataclass
class SimSnapshot:
    """One instant: base pins, and where this pass left each table that it refreshed."""

    timestamp: float
    pins: dict[str, Pin]
    made_at: float = 0.0
    epochs: dict[str, tuple[str, int]] = field(default_factory=dict)


@dataclass
class World:
    """Everything that outlives a process.

    `joined` are units whose members stand at one instant, and have to stay so.
    """

    random: Random
    bases: dict[str, int]
    tables: dict[str, SimTable]
    units: tuple[Unit, ...]
    now: float = 0.0
    revision: int = 1
    settings: Settings = field(default_factory=Settings)
    leases: dict[str, tuple[int, float]] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    joined: set[Unit] = field(default_factory=set)
    log: list[str] = field(default_factory=list)
    source_checks: int = 0

    def __post_init__(self) -> None:
        self.regroup(self.units)

    def say(self, text: str) -> None:
        self.log.append(f"{self.now:.3f} {text}")

    def regroup(self, units: tuple[Unit, ...]) -> None:
        """Definitions changed: members of a new group meet when they are first refreshed."""
        self.units = units
        self.joined = {
            unit
            for unit in units
            if len(unit.members) > 1
            and len(self._instants(unit)) == 1
            and self.running.keys().isdisjoint(unit.members)
        }
        self.revision += 1

    def check_groups(self) -> None:
        for unit in self.joined:
            if len(self._instants(unit)) > 1:
                raise Broken(f"{unit} advanced in part: {self._instants(unit)}")

    def _instants(self, unit: Unit) -> set[float | None]:
        return {self.tables[key].view.timestamp for key in unit.members}

    def oracle(self, key: str, pins: Mapping[str, Pin]) -> Contents:
        """What the table's query gives over the base sources at these versions."""
        table = self.tables[key]
        return self._evaluate(key, pins, {k: self.oracle(k, pins) for k in table.view.reads})

    def _evaluate(
        self, key: str, pins: Mapping[str, Pin], above: Mapping[str, Contents]
    ) -> Contents:
        table = self.tables[key]
        seen = tuple((b, pins[b].version // table.stride) for b in table.view.bases)
        return (table.view.incarnation, *seen, *((k, above[k]) for k in table.view.reads))

    def _is_old(self, key: str, snapshot: SimSnapshot) -> bool:
        """Whether something above was redefined after the pass had read it: that is no mixture."""
        view = self.tables[key].view
        return self.tables[key].defined_at > snapshot.made_at or any(
            source not in self.tables or self._is_old(source, snapshot) for source in view.reads
        )

    # -- refreshing -----------------------------------------------------------------------------

    def begin(self, unit: Unit, snapshot: SimSnapshot, process: int) -> Ending | None:
        """Take the leases of a unit, or say why it is not refreshed."""
        if self.is_past(unit, snapshot):
            return Ending.OVERTAKEN
        for key in unit.members:
            owner, until = self.leases.get(key, (process, 0.0))
            if owner != process and until > self.now:
                return Ending.BUSY
        for key in unit.members:
            if key in self.running and self.leases[key][1] > self.now:
                raise Broken(f"{key} is refreshed twice at once")
            self._check_order(key, unit, snapshot)
            self._pin(key, snapshot)
            self.running[key] = process
            self.leases[key] = (process, inf)
        return None

    def is_past(self, unit: Unit, snapshot: SimSnapshot) -> bool:
        """Whether definitions have changed since the pass began, so that it leads nowhere."""
        known = [self.tables.get(key) for key in unit.members]
        for key, table in zip(unit.members, known, strict=True):
            if table is None:
                return True
            if table.view.state is TableState.SUSPENDED:
                if table.suspended_at < snapshot.made_at:
                    raise Broken(f"{key} is suspended, and was taken into a pass")
                return True
            if any(self._is_another(source, snapshot) for source in table.view.reads):
                return True
        return False

    def _is_another(self, source: str, snapshot: SimSnapshot) -> bool:
        found = self.tables.get(source)
        known = snapshot.epochs.get(source)
        return found is None or (known is not None and known[0] != found.view.incarnation)

    def _check_order(self, key: str, unit: Unit, snapshot: SimSnapshot) -> None:
        for source in self.tables[key].view.reads:
            if source not in unit.members and source not in snapshot.epochs:
                raise Broken(f"{key} started before {source}, which it reads")

    def _pin(self, key: str, snapshot: SimSnapshot) -> None:
        """A source that came with another query is pinned when it is first needed."""
        for base in self.tables[key].view.bases:
            snapshot.pins.setdefault(base, Pin("delta", base, self.bases[base]))

    def holds(self, unit: Unit, process: int) -> bool:
        return all(self.leases.get(key, (None,))[0] == process for key in unit.members)

    def release(self, unit: Unit) -> None:
        for key in unit.members:
            self.running.pop(key, None)
            self.leases.pop(key, None)

    def let_go(self, unit: Unit, process: int) -> None:
        """Release what a process still holds of a unit."""
        for key in unit.members:
            if self.leases.get(key, (None,))[0] == process:
                self.release(Unit((key,)))

    def forsake(self, process: int, until: float) -> None:
        """A process shows no sign of life: others may take over its tables from then on."""
        for key, (owner, _) in list(self.leases.items()):
            if owner == process:
                self.leases[key] = (owner, until)

    def fail(self, key: str, is_retryable: bool) -> None:
        self.tables[key].failures.insert(0, Failure(self.now, is_retryable))

    def commit(
        self, unit: Unit, snapshot: SimSnapshot, seconds: float = 0.0
    ) -> tuple[RefreshResult, ...] | None:
        """Bring a unit to a snapshot, all members or none; None when it has moved on already."""
        if self.is_past(unit, snapshot):
            return None
        if any(self._is_ahead(self.tables[k].view, snapshot) for k in unit.members):
            return None
        each = seconds / len(unit.members)
        done = tuple(self._commit(key, snapshot, each) for key in unit.members)
        if len(unit.members) > 1 and unit in self.units:
            self.joined.add(unit)
        return done

    def _is_ahead(self, view: TableView, snapshot: SimSnapshot) -> bool:
        if view.timestamp is not None and view.timestamp >= snapshot.timestamp:
            return True
        bases = ((view.pins.get(b), snapshot.pins[b]) for b in view.bases)
        return any(old is not None and old.version > new.version for old, new in bases)

    def _commit(self, key: str, snapshot: SimSnapshot, seconds: float) -> RefreshResult:
        table = self.tables[key]
        view = table.view
        above: dict[str, Contents] = {}
        pins = {base: snapshot.pins[base] for base in view.bases}
        for source in view.reads:
            incarnation, epoch = snapshot.epochs[source]
            pins[source] = Pin("trace", incarnation, epoch)
            above[source] = self.tables[source].contents[epoch]
        contents = self._evaluate(key, snapshot.pins, above)
        if not self._is_old(key, snapshot) and contents != self.oracle(key, snapshot.pins):
            raise Broken(f"{key} mixes two states of a source: {contents}")
        is_same = view.epoch > 0 and table.contents.get(view.epoch) == contents
        epoch = view.epoch if is_same else view.epoch + 1
        table.contents[epoch] = contents
        self.move(key, snapshot, pins, epoch, view.waited)
        action = RefreshAction.NO_DATA if is_same else RefreshAction.DIFFERENTIAL
        return RefreshResult(view.name, action, "simulated", seconds=seconds, epoch=epoch)

    def move(
        self, key: str, snapshot: SimSnapshot, pins: dict[str, Pin], epoch: int,
        waited: float | None,
    ) -> None:  # fmt: skip
        """Let a table stand at a snapshot."""
        table = self.tables[key]
        view = table.view
        if view.timestamp is not None:
            if snapshot.timestamp <= view.timestamp:
                raise Broken(f"the data timestamp of {key} goes back")
            table.lags.append(self.now - view.timestamp)
            table.worst_lag = max(table.worst_lag, table.lags[-1])
        for name, pin in view.pins.items():
            if pins[name].identity == pin.identity and pins[name].version < pin.version:
                raise Broken(f"{key} reads {name} at an older version than before")
        is_new = view.state is TableState.UNINITIALIZED
        table.view = replace(
            view, timestamp=snapshot.timestamp, pins=pins, epoch=epoch, errors=0, retry_at=None,
            state=TableState.ACTIVE if is_new else view.state, is_restless=False,
            reinitialize=None, waited=waited,
        )  # fmt: skip
        table.failures.clear()
        table.refreshes += 1
        table.reached_at = self.now
        snapshot.epochs[key] = (view.incarnation, epoch)
        self.say(f"{key} at {snapshot.timestamp:.3f} epoch {epoch}")
