"""Results of both engines as bags of plain values; an integer is no double."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any


def bag(rows: Iterable[Sequence[Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(plain(value) for value in row) for row in rows)


def plain(value: Any) -> Any:
    """A value in a form that is equal on both sides when the answers are."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, Decimal)):
        return ("exact", str(Decimal(value).normalize() + 0))
    if isinstance(value, float):
        return ("double", _rounded(value))
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, date):
        return ("date", value.isoformat())
    return tuple(plain(item) for item in value)


def _rounded(value: float) -> str:
    """Sums and logarithms may differ in the last of their digits."""
    if not math.isfinite(value) or value == 0:
        return str(abs(value))
    return f"{value:.13g}"
