"""Bags of rows: the values tests compare."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]
Bag = Counter[Row]


def bag(rows: Iterable[Sequence[Any]]) -> Bag:
    """Rows with their multiplicity; values that SQL holds equal compare equal."""
    return Counter(tuple(map(comparable, row)) for row in rows)


def comparable(value: Any) -> Any:
    """NaN equals itself; lists and structs become hashable; booleans are no numbers."""
    if isinstance(value, float) and math.isnan(value):
        return ("nan",)
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, dict):
        return tuple(comparable(v) for v in value.values())
    if isinstance(value, list | tuple):
        return tuple(comparable(v) for v in value)
    return value


def plain(value: Any) -> Any:
    """A comparable scalar as the value it stands for."""
    if isinstance(value, tuple) and value[:1] == ("bool",):
        return value[1]
    return float("nan") if value == ("nan",) else value


def remove_one(rows: list[Row], old: Row) -> None:
    """Take one copy of a row away; NaN equals itself here."""
    place = [comparable(row) for row in rows].index(comparable(old))
    del rows[place]


def netted(weighted: Iterable[tuple[Row, int]]) -> Bag:
    """Total weight of each row, zeros left out; totals may be negative."""
    totals: Bag = Counter()
    for row, weight in weighted:
        totals[row] += weight
    return Counter({row: total for row, total in totals.items() if total})


def difference(found: Bag, expected: Bag) -> str:
    """What is missing and what is too much, for a failure message."""
    missing, extra = expected - found, found - expected
    lines = [f"  missing    {count} x {row}" for row, count in missing.items()]
    lines += [f"  unexpected {count} x {row}" for row, count in extra.items()]
    return "\n".join(lines) or "  (equal)"


def literal(value: Any) -> str:
    """The value as a SQL literal that every dialect reads."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | Decimal():
            return str(value)
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case datetime.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
        case list():
            return "[" + ", ".join(map(literal, value)) + "]"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case tuple():
            return f"[{', '.join(literal(plain(v)) for v in value)}]"
    raise TypeError(f"no literal for {value!r}")
