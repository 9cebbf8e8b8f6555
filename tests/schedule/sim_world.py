"""A lake made of numbers: versions, epochs, leases and contents that can be computed again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from runnel.model.frontier import Pin
from runnel.model.refresh import RefreshAction, TableState
from runnel.model.results import RefreshResult
from runnel.model.smoothing import averaged
from runnel.schedule.units import Unit
from runnel.schedule.views import Failure, TableView

Contents = tuple[object, ...]


class Broken(AssertionError):
    """A promise of the scheduler does not hold."""


@dataclass
class SimTable:
    """A stream table; it only notices every `stride`-th version of a base source."""

    view: TableView
    stride: int
    longest: float
    contents: dict[int, Contents] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    refreshes: int = 0
    reached_at: float = 0.0
    worst_lag: float = 0.0


@dataclass
class SimSnapshot:
    """One instant: base pins, and where this pass left each table that it refreshed."""

    timestamp: float
    pins: dict[str, Pin]
    epochs: dict[str, tuple[str, int]] = field(default_factory=dict)


@dataclass
class World:
    """Everything that outlives a process."""

    random: Random
    bases: dict[str, int]
    tables: dict[str, SimTable]
    units: tuple[Unit, ...]
    now: float = 0.0
    revision: int = 1
    leases: dict[str, tuple[int, float]] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    source_checks: int = 0

    def say(self, text: str) -> None:
        self.log.append(f"{self.now:.3f} {text}")

    def oracle(self, key: str, pins: Mapping[str, Pin]) -> Contents:
        """What the table's query gives over the base sources at these versions."""
        table = self.tables[key]
        return self._evaluate(key, pins, {k: self.oracle(k, pins) for k in table.view.reads})

    def _evaluate(
        self, key: str, pins: Mapping[str, Pin], above: Mapping[str, Contents]
    ) -> Contents:
        table = self.tables[key]
        seen = tuple((b, pins[b].version // table.stride) for b in table.view.bases)
        return (*seen, *((k, above[k]) for k in table.view.reads))

    # -- refreshing -----------------------------------------------------------------------------

    def begin(self, unit: Unit, snapshot: SimSnapshot, process: int) -> bool:
        """Take the leases of a unit; False when someone else has one."""
        for key in unit.members:
            owner, until = self.leases.get(key, (process, 0.0))
            if owner != process and until > self.now:
                return False
        for key in unit.members:
            if key in self.running:
                raise Broken(f"{key} is refreshed twice at once")
            self._check_order(key, unit, snapshot)
            self.running[key] = process
            self.leases[key] = (process, self.now + 1e9)
        return True

    def _check_order(self, key: str, unit: Unit, snapshot: SimSnapshot) -> None:
        for source in self.tables[key].view.reads:
            if source not in unit.members and source not in snapshot.epochs:
                raise Broken(f"{key} started before {source}, which it reads")

    def release(self, unit: Unit) -> None:
        for key in unit.members:
            self.running.pop(key, None)
            self.leases.pop(key, None)

    def fail(self, key: str, is_retryable: bool) -> None:
        self.tables[key].failures.insert(0, Failure(self.now, is_retryable))

    def commit(
        self, unit: Unit, snapshot: SimSnapshot, seconds: float = 0.0
    ) -> tuple[RefreshResult, ...] | None:
        """Bring a unit to a snapshot, all members or none; None when it has moved on already."""
        if any(self._is_ahead(self.tables[k].view, snapshot) for k in unit.members):
            return None
        done = (self._commit(key, snapshot) for key in unit.members)
        return tuple(replace(result, seconds=seconds / len(unit.members)) for result in done)

    def _is_ahead(self, view: TableView, snapshot: SimSnapshot) -> bool:
        if view.timestamp is not None and view.timestamp >= snapshot.timestamp:
            return True
        bases = ((view.pins.get(b), snapshot.pins[b]) for b in view.bases)
        return any(old is not None and old.version > new.version for old, new in bases)

    def _commit(self, key: str, snapshot: SimSnapshot) -> RefreshResult:
        table = self.tables[key]
        view = table.view
        above: dict[str, Contents] = {}
        pins = {base: snapshot.pins[base] for base in view.bases}
        for source in view.reads:
            incarnation, epoch = snapshot.epochs[source]
            pins[source] = Pin("trace", incarnation, epoch)
            above[source] = self.tables[source].contents[epoch]
        contents = self._evaluate(key, snapshot.pins, above)
        if contents != self.oracle(key, snapshot.pins):
            raise Broken(f"{key} mixes two states of a source: {contents}")
        is_same = view.epoch > 0 and table.contents[view.epoch] == contents
        epoch = view.epoch if is_same else view.epoch + 1
        table.contents[epoch] = contents
        self._move(key, snapshot, pins, epoch)
        action = RefreshAction.NO_DATA if is_same else RefreshAction.DIFFERENTIAL
        return RefreshResult(view.name, action, "simulated", epoch=epoch)

    def _move(self, key: str, snapshot: SimSnapshot, pins: dict[str, Pin], epoch: int) -> None:
        table = self.tables[key]
        view = table.view
        if view.timestamp is not None:
            if snapshot.timestamp <= view.timestamp:
                raise Broken(f"the data timestamp of {key} goes back")
            table.worst_lag = max(table.worst_lag, self.now - view.timestamp)
        for name, pin in view.pins.items():
            if pins[name].version < pin.version:
                raise Broken(f"{key} reads {name} at an older version than before")
        table.view = replace(
            view, timestamp=snapshot.timestamp, pins=pins, epoch=epoch, errors=0, retry_at=None,
            state=TableState.ACTIVE, is_restless=False,
        )  # fmt: skip
        table.failures.clear()
        table.refreshes += 1
        table.reached_at = self.now
        snapshot.epochs[key] = (view.incarnation, epoch)
        self.say(f"{key} at {snapshot.timestamp:.3f} epoch {epoch}")


@dataclass
class SimBook:
    """The book of one process."""

    world: World

    def revision(self) -> int:
        return self.world.revision

    def tables(self) -> dict[str, TableView]:
        return {key: table.view for key, table in self.world.tables.items()}

    def progress(self, known: Mapping[str, TableView]) -> dict[str, TableView]:
        return {key: self.world.tables[key].view for key in known}

    def pin(self, timestamp: float, tables: Collection[TableView]) -> SimSnapshot:
        names = sorted({base for table in tables for base in table.bases})
        self.world.source_checks += len(names)
        pins = {name: Pin("delta", name, self.world.bases[name]) for name in names}
        return SimSnapshot(timestamp, pins)

    def quiet(self, snapshot: SimSnapshot, tables: Iterable[TableView]) -> Collection[str]:
        moved = []
        for table in tables:
            stored = self.world.tables[table.key].view
            is_same = (stored.epoch, stored.timestamp) == (table.epoch, table.timestamp)
            if is_same and stored.timestamp is not None and stored.timestamp < snapshot.timestamp:
                self._quiet(table.key, snapshot)
                moved.append(table.key)
        return moved

    def _quiet(self, key: str, snapshot: SimSnapshot) -> None:
        table = self.world.tables[key]
        if table.contents[table.view.epoch] != self.world.oracle(key, snapshot.pins):
            raise Broken(f"{key} had news, and was not refreshed")
        table.view = replace(table.view, waited=averaged(table.view.waited, 0.0))
        self.world._move(key, snapshot, dict(table.view.pins), table.view.epoch)

    def note_wait(self, table: TableView) -> None:
        stored = self.world.tables[table.key]
        stored.view = replace(stored.view, waited=table.waited)

    def failures(self, table: TableView) -> list[Failure]:
        return self.world.tables[table.key].failures[: table.errors]

    def skip(self, table: TableView, reason: str) -> None:
        self.world.say(f"{table.key} skipped")

    def hold_off(self, table: TableView, until: float) -> None:
        stored = self.world.tables[table.key]
        stored.view = replace(stored.view, errors=table.errors, retry_at=until)

    def suspend(self, table: TableView, reason: str) -> None:
        stored = self.world.tables[table.key]
        stored.view = replace(stored.view, errors=table.errors, state=TableState.SUSPENDED)
        self.world.revision += 1
        self.world.say(f"{table.key} suspended")
