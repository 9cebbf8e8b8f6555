"""The book of one simulated process: the scheduler's questions, answered by a lake of numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from runnel.errors import NotFound
from runnel.model.frontier import Pin
from runnel.model.refresh import TableState
from runnel.model.smoothing import averaged
from runnel.schedule.views import Failure, TableView
from schedule.sim_world import Broken, SimSnapshot, SimTable, World


@dataclass
class SimBook:
    """Reads and writes a world as the catalog is read and written."""

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
        return SimSnapshot(timestamp, pins, self.world.now)

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
        view, waited = table.view, averaged(table.view.waited, 0.0)
        self.world.move(key, snapshot, dict(view.pins), view.epoch, waited)

    def failures(self, table: TableView) -> list[Failure]:
        return self._stored(table).failures[: table.errors]

    def note_wait(self, table: TableView) -> None:
        stored = self.world.tables.get(table.key)
        if stored is not None:
            stored.view = replace(stored.view, waited=table.waited)

    def skip(self, table: TableView, reason: str) -> None:
        self.world.say(f"{table.key} skipped")

    def hold_off(self, table: TableView, until: float) -> None:
        stored = self._stored(table)
        stored.view = replace(stored.view, errors=table.errors, retry_at=until)

    def suspend(self, table: TableView, reason: str) -> None:
        stored = self._stored(table)
        stored.view = replace(stored.view, errors=table.errors)
        stored.mark(TableState.SUSPENDED, self.world.now)
        self.world.revision += 1
        self.world.say(f"{table.key} suspended")

    def _stored(self, table: TableView) -> SimTable:
        stored = self.world.tables.get(table.key)
        if stored is None:
            raise NotFound(f"{table.key} was dropped")
        return stored
