"""Refreshes that come too late to begin: skipped, recorded as such, and covered by the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from runnel.schedule.under_way import Passes
from runnel.schedule.units import Unit
from runnel.schedule.views import Book, TableView


@dataclass(slots=True)
class Late:
    """Notes once for each unit of a pass that it was due again before it was done."""

    book: Book
    _noted: set[tuple[int, Unit]] = field(default_factory=set)

    def look(
        self, passes: Passes, last_due: Callable[[Unit], float], tables: Mapping[str, TableView]
    ) -> None:
        """`last_due` is when a unit was due last by itself."""
        told: set[Unit] = set()
        self._noted = {mark for mark in self._noted if mark[0] in passes.under_way}
        for of_pass in passes.under_way.values():
            for unit in sorted(of_pass.running | of_pass.waiting, key=lambda u: u.members):
                mark = (of_pass.number, unit)
                if mark in self._noted or of_pass.at >= last_due(unit):
                    continue
                self._noted.add(mark)
                if unit not in told:
                    told.add(unit)
                    self._skip(unit, tables, is_running=unit in of_pass.running)

    def _skip(self, unit: Unit, tables: Mapping[str, TableView], *, is_running: bool) -> None:
        doing = "is still running" if is_running else "has not started yet"
        reason = f"the refresh before this one {doing}: the next one covers it"
        for key in unit.members:
            if key in tables:
                self.book.skip(tables[key], reason)
