"""Measurements that follow what is measured, but not every single value of it."""

from __future__ import annotations

_SHARE = 0.2


def averaged(known: float | None, value: float) -> float:
    """An average in which the newest values count most; without any, nothing was there before."""
    before = known or 0.0
    return before + _SHARE * (value - before)
