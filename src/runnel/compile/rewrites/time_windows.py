"""window(ts, ...) becomes a column of what each row's time windows are.

    GROUP BY window(ts, '10 minutes')
      ->  LATERAL VIEW explode(array(struct(... AS start, ... AS end))) AS window GROUP BY window

Spark's own function filters and multiplies rows where it stands, so it is no expression of a row.
Which times have no zone is known to the builder only, which notes them for the text (`LocalTimes`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp

from runnel.compile.dialect import SparkSql
from runnel.compile.places import at
from runnel.errors import NotDifferentiable

_NAMES = frozenset({"window", "session_window", "window_time"})
# Built from its rows: compile/session_windows.py.
_SESSION = "session_window"
_COLUMN = "window"
_MICROS = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000,
    "hour": 3_600_000_000, "day": 86_400_000_000, "week": 604_800_000_000,
}  # fmt: skip
_CALL, _NUMBER = "time_window", "time_window_number"
_EPOCH = "CAST('1970-01-01 00:00:00' AS TIMESTAMP_NTZ)"
# A time as microseconds, and back.
_WITH_ZONE = ("UNIX_MICROS({})", "TIMESTAMP_MICROS({})")
_LOCAL = (
    f"TIMESTAMPDIFF(MICROSECOND, {_EPOCH}, {{}})",
    f"TIMESTAMPADD(MICROSECOND, {{}}, {_EPOCH})",
)
_PART = re.compile(r"\s*(-?\d+)\s+([a-z]+?)s?(?=\s|$)")


@dataclass
class LocalTimes:
    """The windows over times without a zone, by the number of their view."""

    noted: set[int] = field(default_factory=set)

    def view(self, lateral: exp.Lateral, type_of: Callable[[exp.Expr], str]) -> exp.Lateral:
        """The view as it is for the type that its time has; any other one as it is."""
        call = lateral.meta.get(_CALL)
        if call is None or type_of(call.expressions[0]) != "timestamp_ntz":
            return lateral
        self.noted.add(lateral.meta[_NUMBER])
        return _view(call, lateral.meta[_NUMBER], _LOCAL)

    def written(self, tree: exp.Query) -> exp.Query:
        """The query with each of these views as it was built."""
        views = [v for v in tree.find_all(exp.Lateral) if v.meta.get(_NUMBER) in self.noted]
        for view in views:
            view.replace(_view(view.meta[_CALL], view.meta[_NUMBER], _LOCAL))
        return tree


def expand_time_windows(tree: exp.Query) -> exp.Query:
    """A copy of the query without window(); the same object when it has none."""
    if not any(_is_call(node) for node in tree.walk()):
        return tree
    tree = tree.copy()
    for number, select in enumerate(list(tree.find_all(exp.Select))):
        calls = list(_own_calls(select))
        if any(call.name.lower() != _SESSION for call in calls):
            _expand(select, calls, number)
    return tree


def _is_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in _NAMES


def _own_calls(select: exp.Select) -> Iterator[exp.Anonymous]:
    """Those of the SELECT itself, not of its subqueries."""
    for node in select.walk(prune=lambda n: isinstance(n, exp.Query) and n is not select):
        if isinstance(node, exp.Anonymous) and _is_call(node):
            yield node


def _expand(select: exp.Select, calls: list[exp.Anonymous], number: int) -> None:
    first = calls[0]
    with at(first):
        if (other := next((c for c in calls if c.name.lower() != "window"), None)) is not None:
            raise _refusal(f"{other.name.lower()}()")
        if any(call != first for call in calls):
            raise _refusal("several windows of time in one SELECT")
        if select.args.get("group") is None:
            _check_ungrouped(select, calls)
        view = _view(first, number, _WITH_ZONE)
    for call in calls:
        call.replace(exp.column(_COLUMN))
    select.append("laterals", view)


def _check_ungrouped(select: exp.Select, calls: list[exp.Anonymous]) -> None:
    """In a select list that does nothing else, Spark multiplies the rows before all of it."""
    listed = sum(_is_call(node) for item in select.expressions for node in item.walk())
    if listed < len(calls):
        raise _refusal("window() without GROUP BY, and not in the select list")
    if any(item.find(exp.Window) for item in select.expressions):
        raise _refusal("window() beside a window function")
    if any(isinstance(item, exp.Star) or item.is_star for item in select.expressions):
        raise _refusal("window() beside *", "list the columns")


def _refusal(construct: str, hint: str = "take one window(ts, '10 minutes')") -> NotDifferentiable:
    return NotDifferentiable(
        construct,
        detail="the time windows of a row must follow from the row alone",
        hint=f"{hint}, or use refresh mode FULL or AUTO",
    )


def _view(call: exp.Anonymous, number: int, clock: tuple[str, str]) -> exp.Lateral:
    """The windows [start, start + duration) of a time, from the last one that starts before it."""
    time, *rest = call.expressions
    lengths = [found for argument in rest if (found := _micros(argument)) is not None]
    if not 1 <= len(lengths) <= 3 or len(lengths) < len(rest) or min(lengths[:2]) <= 0:
        raise _refusal("window() with these arguments")
    duration = lengths[0]
    slide = lengths[1] if len(lengths) > 1 else duration
    offset = lengths[2] if len(lengths) > 2 else 0
    micros = clock[0].format(time.sql(SparkSql))
    last = f"({micros} - PMOD({micros} - {offset}L, {slide}L)"
    windows = [
        _window(f"{last} - {back}L)", duration, clock[1]) for back in range(0, duration, slide)
    ]
    array = f"ARRAY({', '.join(windows)})"
    if duration % slide:
        array = f"FILTER({array}, w -> w.`end` > {time.sql(SparkSql)})"
    known = f"CASE WHEN {time.sql(SparkSql)} IS NOT NULL THEN {array} END"
    text = f"SELECT 1 FROM t LATERAL VIEW EXPLODE({known}) `__windows` AS {_COLUMN}"
    made: exp.Lateral = sqlglot.parse_one(text, dialect=SparkSql).args["laterals"][0]
    made.meta.update({_CALL: call.copy(), _NUMBER: number})
    return made


def _window(start: str, duration: int, stamp: str) -> str:
    end = f"{start} + {duration}L"
    return f"STRUCT({stamp.format(start)} AS start, {stamp.format(end)} AS `end`)"


def _micros(node: exp.Expr) -> int | None:
    """The length of an interval that is written out and has no months."""
    text = node.name.lower().strip() if node.is_string else ""
    text = text.removeprefix("interval ")
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip() or any(unit not in _MICROS for _, unit in parts):
        return None
    return sum(int(number) * _MICROS[unit] for number, unit in parts)
