"""Refreshes that did not get there: who is tried again when, and who is suspended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from random import Random

from runnel.model.alerts import AlertKind, Alerts
from runnel.model.refresh import TableState
from runnel.schedule.retry import back_off, busy_pause
from runnel.schedule.units import Unit
from runnel.schedule.views import Book, Ending, Finished, TableView


@dataclass(slots=True)
class Failures:
    """Keeps count where the catalog does not: of units that another process is busy with."""

    book: Book
    alerts: Alerts
    most: int
    random: Random
    _busy: dict[Unit, tuple[int, float]] = field(default_factory=dict)

    def take(
        self, now: float, event: Finished, tables: dict[str, TableView], next_due: float
    ) -> None:
        """Decide what becomes of a unit that did not reach its instant."""
        if event.ending is Ending.FAILED:
            self._failed(now, event, tables, next_due)
        elif event.ending in (Ending.BUSY, Ending.OVERTAKEN):
            times = self._busy.get(event.start.unit, (0, 0.0))[0]
            self._busy[event.start.unit] = (times + 1, now + _pause(event.ending, times))

    def forget(self, unit: Unit) -> None:
        self._busy.pop(unit, None)

    def is_busy_elsewhere(self, unit: Unit, now: float) -> bool:
        return self._busy.get(unit, (0, -inf))[1] > now

    def next_try(self, now: float, tables: Mapping[str, TableView]) -> float:
        tries = [t.retry_at for t in tables.values() if t.retry_at and t.retry_at > now]
        pauses = [until for _, until in self._busy.values() if until > now]
        return min([*tries, *pauses], default=inf)

    def _failed(
        self, now: float, event: Finished, tables: dict[str, TableView], next_due: float
    ) -> None:
        key = event.failed or event.start.unit.members[0]
        if key not in tables:
            return
        table = tables[key] = replace(tables[key], errors=tables[key].errors + 1)
        said = (event.error or "unknown").partition("\n")[0]
        if table.errors >= self.most:
            self._suspend(tables, table, said)
        else:
            # What only another state of the sources can mend has no hurry.
            wait = now + back_off(table.errors, self.random)
            until = wait if event.is_retryable or next_due == inf else max(wait, next_due)
            self.book.hold_off(table, until)
            tables[key] = replace(table, retry_at=until)

    def _suspend(self, tables: dict[str, TableView], table: TableView, said: str) -> None:
        reason = f"failed {table.errors} times in a row: {said}"
        self.book.suspend(table, reason)
        tables[table.key] = replace(table, state=TableState.SUSPENDED)
        self.alerts.emit(AlertKind.AUTO_SUSPENDED, table.title, reason, errors=table.errors)


def _pause(ending: Ending, times: int) -> float:
    """What was overtaken can go on at once; when that leads nowhere, not again and again."""
    if ending is Ending.BUSY:
        return busy_pause(times, 1.0)
    return busy_pause(times - 1, 0.1) if times else 0.0
