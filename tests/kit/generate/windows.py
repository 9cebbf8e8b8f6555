"""Random window functions for select lists, and random ORDER BY ... LIMIT around queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kit.generate.aggregates import Value
from kit.generate.dice import pick
from kit.generate.scalars import DOUBLE, INT, Visible
from kit.generate.writer import Query, Writer

_FRAMES = (
    "",
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
)
_RANGES = (
    "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
)


def window_value(writer: Writer, columns: Sequence[Visible]) -> Value:
    """A window function over some of the columns."""
    chosen = pick(writer.dice, columns)
    partition = f"PARTITION BY {pick(writer.dice, columns).text} " if writer.chance(75) else ""
    keys = ", ".join(_key(writer, columns) for _ in range(writer.dice.number(1, 2)))
    over = f"OVER ({partition}ORDER BY {keys})"
    match writer.pick("number", "rank", "move", "first", "last", "extreme", "sum", "count"):
        case "number":
            return Value(f"ROW_NUMBER() {over}", INT, 0)
        case "rank":
            return Value(f"{writer.pick('RANK', 'DENSE_RANK')}() {over}", INT, 0)
        case "move":
            function = writer.pick("LAG", "LEAD")
            return Value(f"{function}({chosen.text}) {over}", chosen.family, chosen.scale)
        case "first":
            return Value(f"FIRST_VALUE({chosen.text}) {over}", chosen.family, chosen.scale)
        case "last":
            one = f"OVER ({partition}ORDER BY {_key(writer, columns)})"
            function = writer.pick(
                "LAST_VALUE({})", "LAST_VALUE({}) IGNORE NULLS", "NTH_VALUE({}, 2)"
            )
            return Value(f"{function.format(chosen.text)} {one}", chosen.family, chosen.scale)
        case "count":
            over = _framed(writer, over, partition, columns)
            return Value(f"COUNT({chosen.text}) {over}", INT, 0)
        case "sum" if whole := [c for c in columns if c.family == INT]:
            text = pick(writer.dice, whole).text
            over = _framed(writer, over, partition, columns)
            return Value(f"SUM(CAST({text} AS BIGINT)) {over}", INT, 0)
    over = _framed(writer, over, partition, columns)
    text = f"{writer.pick('MIN', 'MAX')}({chosen.text}) {over}"
    return Value(text, chosen.family, chosen.scale)


def _framed(writer: Writer, over: str, partition: str, columns: Sequence[Visible]) -> str:
    if writer.chance(30):
        return f"OVER ({partition})"
    whole = [c for c in columns if c.family == INT]
    if whole and writer.chance(20):
        key = f"{pick(writer.dice, whole).text}{writer.pick('', ' DESC')}"
        return f"OVER ({partition}ORDER BY {key} {writer.pick(*_RANGES)})"
    return f"{over[:-1]} {writer.pick(*_FRAMES)})"


def named_window(writer: Writer, value: Value) -> tuple[Value, str]:
    """The function over a window that has a name, and the clause that gives it."""
    function, _, spec = value.text.partition(" OVER ")
    name = writer.fresh("o")
    return replace(value, text=f"{function} OVER {name}"), f" WINDOW {name} AS {spec}"


def row_place(writer: Writer, columns: Sequence[Visible]) -> str:
    """Where a row stands among those of its partition."""
    partition = f"PARTITION BY {pick(writer.dice, columns).text} " if writer.chance(75) else ""
    function = writer.pick("ROW_NUMBER()", "RANK()")
    return f"{function} OVER ({partition}ORDER BY {_key(writer, columns)})"


def limited(writer: Writer, query: Query, *, is_root: bool) -> Query:
    """The first rows of a query."""
    outputs = [Visible(o.name, o.family, o.scale) for o in query.outputs]
    keys = ", ".join(_key(writer, outputs) for _ in range(writer.dice.number(1, 2)))
    skipped = f" OFFSET {writer.dice.number(1, 2)}" if writer.chance(25) else ""
    text = f"{query.text} ORDER BY {keys} LIMIT {writer.dice.number(1, 4)}{skipped}"
    if is_root and writer.chance(70):
        return replace(query, text=text)
    return replace(query, text=f"SELECT * FROM ({text}) AS {writer.fresh('l')}")


def _key(writer: Writer, columns: Sequence[Visible]) -> str:
    exact = [c for c in columns if c.family != DOUBLE] or columns
    nulls = writer.pick("", "", " NULLS FIRST", " NULLS LAST")
    return f"{pick(writer.dice, exact).text}{writer.pick('', ' DESC')}{nulls}"
