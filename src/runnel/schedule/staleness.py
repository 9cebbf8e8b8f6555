"""Whether a table is later than its schedule allows: one answer for `status` and for alerts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from math import inf

from runnel.model.schedule import Cron
from runnel.model.tabular import duration
from runnel.schedule.clock import AHEAD
from runnel.schedule.views import TableView, instant

# A table with a cron line is late when it was not there this long after the line fired.
_GRACE = 60.0
FRESH = "is within its schedule again"
_UNKNOWN = "has a data timestamp ahead of the clock: how old its contents are is not known"


def reached_by(table: TableView, now: float) -> float:
    """How far a table has come by this clock; -inf when nothing tells.

    A clock that ran ahead has set a T that lies ahead: then it counts when it came there. Who was
    never filled has had time since it was defined.
    """
    reached = table.since if table.timestamp is None else table.timestamp
    if table.seen_at is not None:
        reached = min(reached, table.seen_at)
    return reached if reached <= now + AHEAD else -inf


def lag_by(table: TableView, now: float) -> float | None:
    """How many seconds a table may be behind its sources; None when nobody can tell."""
    reached = reached_by(table, now)
    # Another machine's clock may be a little ahead of this one's.
    return None if table.timestamp is None or reached == -inf else max(0.0, now - reached)


def is_stale(table: TableView, target: float | None, cron: Cron | None, now: float) -> bool | None:
    """None when nothing is asked of it; who tells nothing of itself is not said to be in time."""
    reached = reached_by(table, now)
    if target is not None:
        return now - reached > target
    if cron is None:
        return None
    return reached < _wanted(table, cron, now).timestamp()


def said_of(table: TableView, target: float | None, cron: Cron | None, now: float) -> str:
    """What to say of a table that is stale."""
    if table.timestamp is None:
        return "was never filled"
    if (lag := lag_by(table, now)) is None:
        return _UNKNOWN
    if target is not None:
        return f"is {duration(lag)} behind, its target is {duration(target)}"
    assert cron is not None
    fired = _wanted(table, cron, now)
    return f"was to be refreshed at {fired:%Y-%m-%d %H:%M} UTC, and shows an earlier state"


@dataclass(slots=True)
class Sightings:
    """Since when tables stand at a T that lay ahead: no other clock tells how old they are."""

    _first: dict[str, tuple[float, float]] = field(default_factory=dict)

    def look(self, now: float, tables: Mapping[str, TableView]) -> None:
        found: dict[str, tuple[float, float]] = {}
        for key, table in tables.items():
            at, known = table.timestamp, self._first.get(key)
            if known is not None and known[0] == at:
                # Kept when that time comes: the table has not moved on by itself.
                found[key] = known
            elif at is not None and at > now + AHEAD:
                found[key] = (at, now)
        self._first = found

    def of(self, table: TableView) -> TableView:
        """The table with when it was first seen where it stands, if that matters."""
        known = self._first.get(table.key)
        if known is None or known[0] != table.timestamp:
            return table
        return replace(table, seen_at=known[1])


def _wanted(table: TableView, cron: Cron, now: float) -> datetime:
    """The last instant that the table should have reached by now."""
    return _fired(cron, int((now - _GRACE - 2 * (table.seconds or 0.0)) // 60))


@lru_cache(maxsize=4096)
def _fired(cron: Cron, minute: int) -> datetime:
    """Kept, because cron lines are slow to work out, and fire at whole minutes alone."""
    return cron.until(instant(60.0 * minute))
