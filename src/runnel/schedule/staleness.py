"""Whether a table is later than its schedule allows: one answer for `status` and for alerts."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from runnel.model.schedule import Cron
from runnel.model.tabular import duration
from runnel.schedule.views import TableView, instant

# A table with a cron line is late when it was not there this long after the line fired.
_GRACE = 60.0
FRESH = "is within its schedule again"


def is_stale(table: TableView, target: float | None, cron: Cron | None, now: float) -> bool | None:
    """None when nothing is asked of it; who was never filled has had time since it was defined."""
    reached = table.since if table.timestamp is None else table.timestamp
    if target is not None:
        return now - reached > target
    if cron is None:
        return None
    return reached < _wanted(table, cron, now).timestamp()


def said_of(table: TableView, target: float | None, cron: Cron | None, now: float) -> str:
    """What to say of a table that is stale."""
    if table.timestamp is None:
        return "was never filled"
    if target is not None:
        return f"is {duration(now - table.timestamp)} behind, its target is {duration(target)}"
    assert cron is not None
    fired = _wanted(table, cron, now)
    return f"was to be refreshed at {fired:%Y-%m-%d %H:%M} UTC, and shows an earlier state"


def _wanted(table: TableView, cron: Cron, now: float) -> datetime:
    """The last instant that the table should have reached by now."""
    return _fired(cron, int((now - _GRACE - 2 * (table.seconds or 0.0)) // 60))


@lru_cache(maxsize=4096)
def _fired(cron: Cron, minute: int) -> datetime:
    """Kept, because cron lines are slow to work out, and fire at whole minutes alone."""
    return cron.until(instant(60.0 * minute))
