"""generate_series and unnest: arrays that are taken apart into rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.compile.postgres.casts import coerce
from runnel.compile.postgres.literals import moment_day
from runnel.compile.postgres.types import (
    TIMESTAMP,
    TIMESTAMPTZ,
    Type,
    array_of,
    common,
)
from runnel.compile.postgres.values import Value, cast, refused

if TYPE_CHECKING:
    from runnel.compile.postgres.expressions import Expressions

_NAMES = ("generate_series", "unnest")


def is_series(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in _NAMES


def series_item(x: Expressions, node: exp.Expr) -> Value | None:
    """A set-returning function as an item of the select list: a row for each element."""
    if not is_series(node):
        return None
    array = series_array(x, node)
    assert array.type.element is not None
    return Value(f"EXPLODE({array.sql})", array.type.element)


def series_array(x: Expressions, node: exp.Expr) -> Value:
    """The array whose elements the function returns."""
    arguments = x.all(node.expressions)
    if node.name.lower() == "unnest":
        if len(arguments) != 1 or arguments[0].type.kind != "array":
            raise refused("unnest() of something else than one array")
        return arguments[0]
    if len(arguments) not in (2, 3):
        raise refused(f"generate_series() with {len(arguments)} arguments")
    if len(arguments) == 3 and (
        arguments[2].interval is not None or arguments[2].type.kind == "unknown"
    ):
        return _moments(*arguments)
    return _integers(arguments)


def _integers(arguments: list[Value]) -> Value:
    type_ = common([a.type for a in arguments], "generate_series()")
    if not type_.is_integer:
        raise refused(f"generate_series() of {type_}", hint="integers, or moments by an interval")
    first, last, *rest = (coerce(a, type_) for a in arguments)
    step = rest[0].integer() if rest else 1
    if not step:
        raise refused("generate_series() by a step that is not a constant other than 0")
    return _unless_empty(first.sql, last.sql, str(step), step > 0, type_)


def _unless_empty(first: str, last: str, step: str, is_rising: bool, type_: Type) -> Value:
    """Spark would count down, or fail, where PostgreSQL returns nothing."""
    steps = f"SEQUENCE({first}, {last}, {step})"
    empty = f"CAST(ARRAY() AS {array_of(type_).spark})"
    sign = "<=" if is_rising else ">="
    return Value(f"CASE WHEN {first} {sign} {last} THEN {steps} ELSE {empty} END", array_of(type_))


def _moments(first: Value, last: Value, step: Value) -> Value:
    step = coerce(step, Type("interval"))
    interval = step.interval
    assert interval is not None
    kinds = {first.type.kind, last.type.kind}
    type_ = TIMESTAMP if "timestamp" in kinds and "timestamptz" not in kinds else TIMESTAMPTZ
    parts = [interval.months, interval.days, interval.seconds]
    if sum(p != "0" for p in parts) != 1 or any("(" in p for p in parts):
        raise refused("generate_series() by this interval", hint="months, days or a time alone")
    day = moment_day(first.sql)
    if interval.months != "0" and (day is None or day > 28):
        raise refused(
            "generate_series() by months",
            detail="PostgreSQL adds month by month: after February a series from the 31st is on "
            "the 28th",
            hint="begin at a constant day up to the 28th",
        )
    start, end = (cast(coerce(v, type_).sql, type_) for v in (first, last))
    return _unless_empty(start, end, _step(parts), True, type_)


def _step(parts: list[str]) -> str:
    unit = next(u for u, p in zip(("MONTH", "DAY", "SECOND"), parts, strict=True) if p != "0")
    amount = next(p for p in parts if p != "0")
    return f"INTERVAL '{amount}' {unit}"
