"""Canonical periods: 48 s times a power of two, so that tables that read each other meet."""

from __future__ import annotations

import math

BASE = 48.0
SHORTEST = BASE / 2**7
# Aligned instants are compared after a division: what is this close to one is one.
_NEARLY = 1e-9


def canonical(limit: float) -> float:
    """The longest canonical period that is not longer than `limit`."""
    steps = math.floor(math.log2(limit / BASE) + _NEARLY)
    return max(SHORTEST, BASE * 2.0**steps)


def period_for(target: float) -> float:
    """How often to refresh for a target lag.

    At most half of it: then `p + w + d < target` as long as waiting and refreshing together take
    less than the other half; and when they take more, refreshing more often does not help.
    """
    return canonical(target / 2)


def aligned(now: float, period: float) -> float:
    """The last multiple of a period; those of a longer period are among those of a shorter one."""
    return math.floor(now / period + _NEARLY) * period


def peak_lag(period: float, wait: float, work: float) -> float:
    """How far behind a table is just before its next refresh shows, when all goes as measured."""
    busy = wait + work
    return max(period, busy) + busy
