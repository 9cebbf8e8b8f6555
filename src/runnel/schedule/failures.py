"""Refreshes that did not get there: who is tried again when, and who is suspended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import inf
from random import Random

from runnel.model.alerts import AlertKind, Alerts
from runnel.model.refresh import TableState
from runnel.model.tabular import duration
from runnel.schedule.retry import back_off, busy_pause
from runnel.schedule.units import Unit
from runnel.schedule.views import Book, Ending, Failure, Finished, TableView, instant


@dataclass(slots=True)
class Failures:
    """Keeps count where the catalog does not: of units that another process is busy with."""

    book: Book
    alerts: Alerts
    most: int
    longest: float
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
        table = replace(tables[key], errors=tables[key].errors + 1)
        known = self.book.failures(table) if table.errors >= self.most else ()
        said = (event.error or "unknown").partition("\n")[0]
        given_up = self._verdict(now, event.is_retryable, table, known)
        if given_up is not None:
            tables[key] = self._suspend(table, f"{given_up}: {said}")
            return
        tables[key] = self._hold_off(now, event.is_retryable, table, next_due)
        outage = _outage(known)
        if event.is_retryable and len(outage) >= self.most:
            self._tell_outage(tables[key], outage, said)

    def _verdict(
        self, now: float, is_retryable: bool, table: TableView, known: Sequence[Failure]
    ) -> str | None:
        return verdict(now, is_retryable, table, known, self.most, self.longest)

    def _hold_off(
        self, now: float, is_retryable: bool, table: TableView, next_due: float
    ) -> TableView:
        # What only another state of the sources can mend has no hurry.
        wait = now + back_off(table.errors, self.random)
        until = wait if is_retryable or next_due == inf else max(wait, next_due)
        self.book.hold_off(table, until)
        return replace(table, retry_at=until)

    def _suspend(self, table: TableView, reason: str) -> TableView:
        self.book.suspend(table, reason)
        self.alerts.emit(AlertKind.AUTO_SUSPENDED, table.title, reason, errors=table.errors)
        return replace(table, state=TableState.SUSPENDED)

    def _tell_outage(self, table: TableView, outage: Sequence[Failure], said: str) -> None:
        assert table.retry_at is not None
        since, next_try = instant(outage[-1].at), instant(table.retry_at)
        self.alerts.emit(
            AlertKind.OUTAGE, table.title,
            f"failed {table.errors} times in a row, next try at {next_try:%H:%M:%S} UTC: {said}",
            errors=table.errors, since=since, next_try=next_try,
            suspended_after=instant(outage[-1].at + self.longest),
        )  # fmt: skip


def verdict(
    now: float, is_retryable: bool, table: TableView, known: Sequence[Failure], most: int,
    longest: float,
) -> str | None:  # fmt: skip
    """Why a table is given up after these failures; None when it is not."""
    told = f"failed {table.errors} times in a row"
    if not is_retryable:
        return told if _faults(known) >= most else None
    outage = _outage(known)
    if len(outage) < most or now - outage[-1].at <= longest:
        return None
    return f"{told}, for {duration(now - outage[-1].at)}"


def _outage(known: Sequence[Failure]) -> list[Failure]:
    """The failures, newest first, back to one that had another reason."""
    return list(takewhile(lambda failure: failure.is_retryable, known))


def _faults(known: Sequence[Failure]) -> int:
    """How many there are that no waiting would have helped."""
    return sum(not failure.is_retryable for failure in known)


def _pause(ending: Ending, times: int) -> float:
    """What was overtaken can go on at once; when that leads nowhere, not again and again."""
    if ending is Ending.BUSY:
        return busy_pause(times, 1.0)
    return busy_pause(times - 1, 0.1) if times else 0.0
