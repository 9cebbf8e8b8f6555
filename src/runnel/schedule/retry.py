"""When a table that failed is tried again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from random import Random

from runnel.schedule.views import TableView

_FIRST = 5.0
_LONGEST = 300.0
_SPREAD = 0.25
# Short enough that the work of a process that died is taken over within its lease.
_LONGEST_BUSY = 5.0


def back_off(errors: int, random: Random) -> float:
    """Seconds until the next try after so many errors in a row: doubling, and never in step."""
    delay = min(_LONGEST, _FIRST * 2.0 ** min(max(0, errors - 1), 10))
    return delay * random.uniform(1 - _SPREAD, 1 + _SPREAD)


def busy_pause(times: int, interval: float) -> float:
    """Seconds until a table that someone else refreshes is looked at again."""
    return min(_LONGEST_BUSY, interval * 2.0 ** min(times, 10))


def at_most(retry_at: float, now: float, next_due: float) -> float:
    """A recorded next try, not later than whoever fails now would wait."""
    longest = now + _LONGEST * (1 + _SPREAD)
    return min(retry_at, max(longest, next_due) if isfinite(next_due) else longest)


@dataclass(slots=True)
class Tries:
    """Next tries as they are heeded: that was recorded by the clock of whoever saw it fail.

    Nobody waits for one that ran ahead longer than for the longest back-off, counted from when
    the record was first seen here.
    """

    _heeded: dict[str, tuple[float, float]] = field(default_factory=dict)

    def heed(
        self, now: float, tables: Mapping[str, TableView], next_due: Callable[[str], float]
    ) -> dict[str, TableView]:
        """The tables with their next tries; to be given what is recorded, each time."""
        found = dict(tables)
        heeded: dict[str, tuple[float, float]] = {}
        for key, table in tables.items():
            if (recorded := table.retry_at) is None:
                continue
            known = self._heeded.get(key)
            if known is None or recorded not in known:
                known = (recorded, at_most(recorded, now, next_due(key)))
            heeded[key] = known
            found[key] = replace(table, retry_at=known[1])
        self._heeded = heeded
        return found
