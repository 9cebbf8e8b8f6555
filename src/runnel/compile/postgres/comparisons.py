"""Comparisons: of values, of rows field by field, with ANY and ALL of an array."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from runnel.compile.postgres.casts import coerce, settled
from runnel.compile.postgres.types import BOOL, MOMENTS, TEXT, Type, operand
from runnel.compile.postgres.values import Value, cast, refused

SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "<=>", exp.NullSafeNEQ: "<!>",
}  # fmt: skip


def compare(sign: str, left: Value, right: Value) -> Value:
    """`left sign right`, both in one type."""
    a, b = comparable(sign, left, right)
    if sign == "<!>":
        return Value(f"(NOT {a.sql} <=> {b.sql})", BOOL)
    return Value(f"({a.sql} {sign} {b.sql})", BOOL)


def comparable(what: str, left: Value, right: Value) -> tuple[Value, Value]:
    """Both sides in the type PostgreSQL compares them in."""
    if left.interval is not None or right.interval is not None:
        return _intervals(left, right)
    if left.type.kind == right.type.kind == "unknown":
        return coerce(left, TEXT), coerce(right, TEXT)
    if left.type.kind == "unknown":
        return coerce(left, _plain(right.type)), settled(right)
    if right.type.kind == "unknown":
        return settled(left), coerce(right, _plain(left.type))
    left, right = settled(left), settled(right)
    if left.type.is_number and right.type.is_number:
        return _numbers(left, right)
    if left.type.kind == right.type.kind:
        _check_order(what, left.type)
        return left, right
    if left.type.is_moment and right.type.is_moment:
        later = Type(max(left.type.kind, right.type.kind, key=MOMENTS.index))
        return coerce(left, later), coerce(right, later)
    raise refused(
        f"{left.type} {what} {right.type}", hint="cast one side; PostgreSQL has no such operator"
    )


def _plain(type_: Type) -> Type:
    return type_ if type_.kind != "json" else TEXT


def _numbers(left: Value, right: Value) -> tuple[Value, Value]:
    common = operand(left.type, right.type)
    if not common.is_float:
        return left, right
    a, b = (v if v.type == common else Value(cast(v.sql, common), common) for v in (left, right))
    return a, b


def _intervals(left: Value, right: Value) -> tuple[Value, Value]:
    sides = [v if v.interval is not None else coerce(v, Type("interval")) for v in (left, right)]
    if not all(v.interval is not None for v in sides):
        raise refused(f"comparing {left.type} with {right.type}")
    a, b = (Value(v.interval.total, BOOL) for v in sides if v.interval is not None)
    return a, b


def _check_order(what: str, type_: Type) -> None:
    if type_.kind == "json" or (type_.kind == "array" and what not in ("=", "<>", "<=>", "<!>")):
        raise refused(f"{what} of {type_}", hint="compare parts of it, or cast it to text")


def compare_rows(sign: str, left: Sequence[Value], right: Sequence[Value]) -> Value:
    """Rows are compared field by field: Spark would take NULL fields for equal."""
    if len(left) != len(right):
        raise refused("comparing rows of different lengths")
    pairs = list(zip(left, right, strict=True))
    if sign in ("=", "<>", "<=>", "<!>"):
        word = " AND " if sign in ("=", "<=>") else " OR "
        return Value(f"({word.join(compare(sign, a, b).sql for a, b in pairs)})", BOOL)
    strict = sign.rstrip("=")
    tests = []
    for last in range(len(pairs)):
        is_end = last == len(pairs) - 1
        same = [compare("=", a, b).sql for a, b in pairs[:last]]
        tests.append(" AND ".join([*same, compare(sign if is_end else strict, *pairs[last]).sql]))
    return Value(f"({' OR '.join(f'({t})' for t in tests)})", BOOL)


def is_in(value: Value, items: Sequence[Value]) -> Value:
    """`value IN (...)`; the items in one type with it."""
    pairs = [comparable("=", value, item) for item in items]
    if len({left.sql for left, _ in pairs}) == 1:
        return Value(f"({pairs[0][0].sql} IN ({', '.join(b.sql for _, b in pairs)}))", BOOL)
    return Value(f"({' OR '.join(f'{a.sql} = {b.sql}' for a, b in pairs)})", BOOL)


def any_of(sign: str, value: Value, array: Value, is_all: bool) -> Value:
    """`value sign ANY (array)`, unknown where SQL has it so."""
    if array.type.kind == "unknown":
        array = coerce(array, Type("array", element=_plain(value.type)))
    if array.type.element is None:
        raise refused(f"ANY or ALL of {array.type}", hint="give it an array or a subquery")
    test = compare(sign, value, Value("y", array.type.element)).sql
    if sign == "=" and not is_all and test == f"({value.sql} = y)":
        return Value(f"ARRAY_CONTAINS({array.sql}, {value.sql})", BOOL)
    tests = f"TRANSFORM({array.sql}, y -> {test})"
    if is_all:
        return Value(f"(NOT ARRAY_CONTAINS({tests}, FALSE))", BOOL)
    return Value(f"ARRAY_CONTAINS({tests}, TRUE)", BOOL)
