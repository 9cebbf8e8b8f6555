"""Arrays of one dimension: subscripts count from one, and miss without an error."""

from __future__ import annotations

from collections.abc import Callable

from runnel.compile.postgres.casts import as_text, coerce, to_int, typed
from runnel.compile.postgres.text import text_of
from runnel.compile.postgres.types import BOOL, INT4, TEXT, Type, array_of, common
from runnel.compile.postgres.values import Value, refused

Function = Callable[[list[Value]], Value]


def array(items: list[Value]) -> Value:
    """ARRAY[...]."""
    if not items:
        raise refused("ARRAY[] without a type", hint="write '{}'::integer[]")
    element = common([i.type for i in items], "an array")
    if element.kind == "array":
        raise refused("an array of arrays")
    inside = ", ".join(coerce(i, element).sql for i in items)
    type_ = array_of(element)
    if all(i.is_null for i in items) or element.kind == "numeric":
        return Value(f"CAST(ARRAY({inside}) AS {type_.spark})", type_)
    return Value(f"ARRAY({inside})", type_)


def subscript(value: Value, index: Value) -> Value:
    element = _element(value, "a subscript")
    position = to_int(index, "a subscript")
    constant = position.integer()
    place = str(constant - 1) if constant is not None else f"{position.sql} - 1"
    return Value(f"GET({value.sql}, {place})", element)


def array_slice(value: Value, low: Value | None, high: Value | None) -> Value:
    _element(value, "a slice")
    first = low.integer() if low is not None else 1
    last = high.integer() if high is not None else None
    if first is None or (high is not None and last is None):
        raise refused("a slice with bounds that are not constant")
    first = max(first, 1)
    count = f"SIZE({value.sql})" if last is None else str(max(last - first + 1, 0))
    return Value(f"SLICE({value.sql}, {first}, {count})", value.type)


def _element(value: Value, where: str) -> Type:
    if value.type.element is None:
        raise refused(f"{where} of {value.type}", hint="only arrays have one")
    return value.type.element


def append(left: Value, right: Value) -> Value:
    """`||` with an array: a NULL array counts as none."""
    if left.type.kind == "array" and right.type.kind == "array":
        a, b = left.sql, right.sql
        joined = (
            f"CASE WHEN {a} IS NULL THEN {b} WHEN {b} IS NULL THEN {a} ELSE CONCAT({a}, {b}) END"
        )
        return Value(joined, left.type)
    if left.type.kind == "array":
        return _with_item(left, right, "{0}, {1}")
    return _with_item(right, left, "{1}, {0}")


def _with_item(value: Value, item: Value, order: str) -> Value:
    element = _element(value, "||")
    if item.is_null or item.type.kind == "unknown":
        raise refused("an array || a constant of no type", hint="cast the constant")
    shown = coerce(item, element).sql
    empty = f"CAST(ARRAY() AS {value.type.spark})"
    parts = order.format(f"COALESCE({value.sql}, {empty})", f"ARRAY({shown})")
    return Value(f"CONCAT({parts})", value.type)


def array_length(arguments: list[Value]) -> Value:
    """An empty array has no length: NULL."""
    _element(arguments[0], "array_length()")
    if len(arguments) != 2 or arguments[1].integer() != 1:
        raise refused("array_length() of another dimension than 1")
    return Value(f"NULLIF(SIZE({arguments[0].sql}), 0)", INT4)


def cardinality(arguments: list[Value]) -> Value:
    _element(arguments[0], "cardinality()")
    return Value(f"SIZE({arguments[0].sql})", INT4)


def array_to_string(arguments: list[Value]) -> Value:
    element = _element(arguments[0], "array_to_string()")
    inside = arguments[0].sql
    if element.kind != "text":
        inside = f"TRANSFORM({inside}, x -> {as_text(Value('x', element)).sql})"
    rest = [text_of(a, "array_to_string").sql for a in arguments[1:]]
    return Value(f"ARRAY_JOIN({', '.join([inside, *rest])})", TEXT)


def array_position(arguments: list[Value]) -> Value:
    element = _element(arguments[0], "array_position()")
    if len(arguments) != 2:
        raise refused("array_position() with a start")
    wanted = coerce(arguments[1], element)
    return Value(f"NULLIF(CAST(ARRAY_POSITION({arguments[0].sql}, {wanted.sql}) AS INT), 0)", INT4)


def array_append(arguments: list[Value]) -> Value:
    item = coerce(arguments[1], _element(arguments[0], "array_append()"))
    return append(arguments[0], item)


def array_prepend(arguments: list[Value]) -> Value:
    item = coerce(arguments[0], _element(arguments[1], "array_prepend()"))
    return append(item, arguments[1])


def contains(left: Value, right: Value) -> Value:
    """`@>`: every element of the right is in the left; NULL is in nothing."""
    left, right = _pair("@>", left, right)
    inside = f"COALESCE(ARRAY_CONTAINS({left.sql}, y), FALSE)"
    every = f"NOT ARRAY_CONTAINS(TRANSFORM({right.sql}, y -> {inside}), FALSE)"
    return Value(f"CASE WHEN {left.sql} IS NOT NULL THEN {every} END", BOOL)


def overlaps(left: Value, right: Value) -> Value:
    """`&&`: an element in common."""
    left, right = _pair("&&", left, right)
    known = f"CASE WHEN {left.sql} IS NOT NULL AND {right.sql} IS NOT NULL THEN FALSE END"
    return Value(f"COALESCE(ARRAYS_OVERLAP({left.sql}, {right.sql}), {known})", BOOL)


def _pair(sign: str, left: Value, right: Value) -> tuple[Value, Value]:
    if left.type.kind == "unknown":
        left = coerce(left, right.type)
    if right.type.kind == "unknown":
        right = coerce(right, left.type)
    if left.type.kind != "array" or left.type != right.type:
        raise refused(
            f"{left.type} {sign} {right.type}", detail="Spark has nothing like it for JSON",
            hint="compare single fields: data ->> 'key' = 'value'",
        )  # fmt: skip
    return typed(left), typed(right)


FUNCTIONS: dict[str, Function] = {
    "array_length": array_length, "cardinality": cardinality, "array_append": array_append,
    "array_prepend": array_prepend, "array_to_string": array_to_string,
    "array_position": array_position,
    "array_cat": lambda a: append(a[0], a[1]),
}  # fmt: skip
