"""GROUP BY window(ts, ...) becomes a grouping by what each row's time windows are.

    GROUP BY window(ts, '10 minutes')
      ->  LATERAL VIEW explode(array(struct(... AS start, ... AS end))) AS window GROUP BY window

Spark's own function filters and multiplies rows where it stands, so it is no expression of a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import sqlglot
from sqlglot import exp

from runnel.compile.dialect import SparkSql
from runnel.compile.places import at
from runnel.errors import NotDifferentiable

_NAMES = frozenset({"window", "session_window", "window_time"})
_COLUMN = "window"
_MICROS = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000,
    "hour": 3_600_000_000, "day": 86_400_000_000, "week": 604_800_000_000,
}  # fmt: skip
_PART = re.compile(r"\s*(-?\d+)\s+([a-z]+?)s?(?=\s|$)")


def expand_time_windows(tree: exp.Query) -> exp.Query:
    """A copy of the query without window(); the same object when it has none."""
    if not any(_is_call(node) for node in tree.walk()):
        return tree
    tree = tree.copy()
    for select in list(tree.find_all(exp.Select)):
        calls = list(_own_calls(select))
        if calls:
            _expand(select, calls)
    return tree


def _is_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in _NAMES


def _own_calls(select: exp.Select) -> Iterator[exp.Anonymous]:
    """Those of the SELECT itself, not of its subqueries."""
    for node in select.walk(prune=lambda n: isinstance(n, exp.Query) and n is not select):
        if isinstance(node, exp.Anonymous) and _is_call(node):
            yield node


def _expand(select: exp.Select, calls: list[exp.Anonymous]) -> None:
    first = calls[0]
    with at(first):
        if (other := next((c for c in calls if c.name.lower() != "window"), None)) is not None:
            raise _refusal(f"{other.name.lower()}()")
        if any(call != first for call in calls):
            raise _refusal("several windows of time in one SELECT")
        if select.args.get("group") is None:
            raise _refusal("window() without GROUP BY")
        view = _view(first)
    for call in calls:
        call.replace(exp.column(_COLUMN))
    select.append("laterals", view)


def _refusal(construct: str) -> NotDifferentiable:
    return NotDifferentiable(
        construct,
        detail="the time windows of a row must follow from the row alone",
        hint="GROUP BY one window(ts, '10 minutes'), or use refresh mode FULL or AUTO",
    )


def _view(call: exp.Anonymous) -> exp.Lateral:
    """The windows [start, start + duration) of a time, from the last one that starts before it."""
    time, *rest = call.expressions
    lengths = [found for argument in rest if (found := _micros(argument)) is not None]
    if not 1 <= len(lengths) <= 3 or len(lengths) < len(rest) or min(lengths[:2]) <= 0:
        raise _refusal("window() with these arguments")
    duration = lengths[0]
    slide = lengths[1] if len(lengths) > 1 else duration
    offset = lengths[2] if len(lengths) > 2 else 0
    micros = f"UNIX_MICROS({time.sql(SparkSql)})"
    last = f"({micros} - PMOD({micros} - {offset}L, {slide}L)"
    windows = [_window(f"{last} - {back}L)", duration) for back in range(0, duration, slide)]
    array = f"ARRAY({', '.join(windows)})"
    if duration % slide:
        array = f"FILTER({array}, w -> UNIX_MICROS(w.`end`) > {micros})"
    known = f"CASE WHEN {time.sql(SparkSql)} IS NOT NULL THEN {array} END"
    text = f"SELECT 1 FROM t LATERAL VIEW EXPLODE({known}) `__windows` AS {_COLUMN}"
    made: exp.Lateral = sqlglot.parse_one(text, dialect=SparkSql).args["laterals"][0]
    return made


def _window(start: str, duration: int) -> str:
    end = f"{start} + {duration}L"
    return f"STRUCT(TIMESTAMP_MICROS({start}) AS start, TIMESTAMP_MICROS({end}) AS `end`)"


def _micros(node: exp.Expr) -> int | None:
    """The length of an interval that is written out and has no months."""
    text = node.name.lower().strip() if node.is_string else ""
    text = text.removeprefix("interval ")
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip() or any(unit not in _MICROS for _, unit in parts):
        return None
    return sum(int(number) * _MICROS[unit] for number, unit in parts)
