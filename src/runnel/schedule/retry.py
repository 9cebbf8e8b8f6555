"""When a table that failed is tried again."""

from __future__ import annotations

from random import Random

_FIRST = 5.0
_LONGEST = 300.0
# Short enough that the work of a process that died is taken over within its lease.
_LONGEST_BUSY = 5.0


def back_off(errors: int, random: Random) -> float:
    """Seconds until the next try after so many errors in a row: doubling, and never in step."""
    delay = min(_LONGEST, _FIRST * 2.0 ** min(max(0, errors - 1), 10))
    return delay * random.uniform(0.75, 1.25)


def busy_pause(times: int, interval: float) -> float:
    """Seconds until a table that someone else refreshes is looked at again."""
    return min(_LONGEST_BUSY, interval * 2.0 ** min(times, 10))
