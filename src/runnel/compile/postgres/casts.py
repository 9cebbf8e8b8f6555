"""Casts, asked for or implied: numbers are rounded where Spark would cut them."""

from __future__ import annotations

from runnel.compile.postgres.literals import boolean_of_text, read_literal
from runnel.compile.postgres.types import (
    FLOAT8,
    INT4,
    JSON,
    MOMENTS,
    NUMBERS,
    TEXT,
    TIMESTAMP,
    Type,
    array_of,
    numeric,
)
from runnel.compile.postgres.values import Value, bare, cast, refused


def coerce(value: Value, type_: Type) -> Value:
    """The value in a type that PostgreSQL converts it to without being asked."""
    if value.is_null:
        return Value("NULL", type_)
    if value.type.kind == "unknown":
        assert value.constant is not None
        # Implied, a constant takes the type but neither its precision nor its scale.
        wanted = Type("numeric") if type_.kind == "numeric" else type_
        return read_literal(value.constant, wanted)
    if value.type.kind == type_.kind and type_.kind not in ("numeric", "array"):
        return value
    if value.type.kind == type_.kind == "numeric":
        # Spark widens by itself, but gives up scale first where 38 digits are not enough.
        if value.type.digits == type_.digits or type_.precision < 38:
            return value
        return Value(cast(value.sql, type_), type_)
    if value.type == type_:
        return value
    if _is_implied(value.type, type_):
        return convert(value, type_)
    raise refused(f"{value.type} where {type_} is wanted", hint=f"cast it: ...::{type_}")


def _is_implied(source: Type, wanted: Type) -> bool:
    """Whether PostgreSQL converts without being asked: to what holds more."""
    for order in (NUMBERS, MOMENTS):
        if source.kind in order and wanted.kind in order:
            return order.index(source.kind) < order.index(wanted.kind)
    if source.element is not None and wanted.element is not None:
        return source.element == wanted.element or _is_implied(source.element, wanted.element)
    return False


def as_text(value: Value) -> Value:
    """What `::text` gives."""
    return convert(value, TEXT)


def typed(value: Value) -> Value:
    """A value that can be shown: a constant of no type is text."""
    if value.is_null:
        return (
            Value("CAST(NULL AS STRING)", TEXT)
            if value.type.kind == "unknown"
            else Value(cast("NULL", value.type), value.type)
        )
    if value.type.kind == "unknown":
        return coerce(value, TEXT)
    return settled(value)


def settled(value: Value) -> Value:
    """A value that is what it says; a double brought to numeric without a scale is not yet."""
    if value.rounding is not None:
        raise refused(
            "a cast of double precision to numeric without a scale",
            detail="how many digits it has would differ from value to value",
            hint="name the scale, such as numeric(20, 4), or round it: round(x::numeric, 2)",
        )
    return value


def convert(value: Value, type_: Type) -> Value:
    """An explicit cast."""
    if value.is_null:
        return Value("NULL", type_)
    source = value.type
    if source.kind == "unknown":
        assert value.constant is not None
        return read_literal(value.constant, type_)
    if type_.kind == "numeric":
        return _to_numeric(value, type_)
    value = settled(value)
    if source.kind == type_.kind and source.kind != "array":
        return value
    if type_.kind == "text":
        return Value(_to_text(value), TEXT)
    if type_.is_integer:
        return Value(_to_integer(value, type_), type_)
    if type_.is_float and (source.is_number or source.kind in ("text", "json")):
        return Value(cast(value.sql, type_), type_)
    if type_.kind == "bool":
        return Value(_to_boolean(value), type_)
    if type_.is_moment and (source.is_moment or source.kind == "text"):
        return Value(cast(value.sql, type_), type_)
    if type_.kind == "json" and source.kind == "text":
        return Value(value.sql, JSON)
    if type_.kind == "array" and source.kind == "array":
        return _to_array(value, type_)
    raise refused(f"a cast of {source} to {type_}")


def _to_text(value: Value) -> str:
    kind = value.type.kind
    if value.type.is_integer or kind in ("bool", "date", "timestamp"):
        return cast(value.sql, TEXT)
    if kind == "numeric" and value.type.exact:
        return cast(value.sql, TEXT)
    if kind == "json":
        return value.sql
    raise refused(
        f"{value.type} as text",
        detail="Spark writes such values in another way",
        hint="round numbers to a scale first: round(x, 2)::numeric(20, 2)::text",
    )


def _to_integer(value: Value, type_: Type) -> str:
    source = value.type
    if source.kind == "numeric":
        return cast(f"ROUND({bare(value.sql)}, 0)", type_)
    if source.is_float:
        return cast(f"RINT({bare(value.sql)})", type_)
    if source.is_integer or source.kind in ("text", "bool", "json"):
        return cast(value.sql, type_)
    raise refused(f"a cast of {source} to {type_}")


def _to_boolean(value: Value) -> str:
    if value.type.kind == "text":
        return boolean_of_text(value.sql)
    if value.type.is_integer:
        return cast(value.sql, Type("bool"))
    raise refused(f"a cast of {value.type} to boolean")


def _to_numeric(value: Value, type_: Type) -> Value:
    source = value.type
    if source.is_float:
        return _from_float(value, type_)
    if not type_.precision:
        if source.is_integer:
            whole = numeric(*source.digits)
            return Value(cast(value.sql, whole), whole)
        if source.kind == "numeric":
            return value
    elif source.is_number or source.kind in ("text", "json"):
        if value.rounding is not None:
            return Value(f"CAST({value.rounding} AS {type_.spark})", type_)
        return Value(cast(value.sql, type_), type_)
    raise refused(
        f"a cast of {source} to {'numeric without a scale' if not type_.precision else type_}",
        hint="name the scale, such as numeric(20, 4)",
    )


def _from_float(value: Value, type_: Type) -> Value:
    """PostgreSQL brings a double to numeric by its first 15 digits, a real by 6."""
    digits = 14 if value.type == FLOAT8 else 5
    text = f"FORMAT_NUMBER({cast(value.sql, FLOAT8)}, '0.{'0' * digits}E0')"
    if type_.precision:
        return Value(f"CAST({text} AS {type_.spark})", type_)
    return Value(text, Type("numeric", exact=False), rounding=text)


def _to_array(value: Value, type_: Type) -> Value:
    inside, wanted = value.type.element, type_.element
    assert inside is not None
    assert wanted is not None
    if inside == wanted:
        return value
    converted = convert(Value("x", inside), wanted)
    if converted.sql == "x":
        return Value(value.sql, array_of(converted.type))
    return Value(f"TRANSFORM({value.sql}, x -> {converted.sql})", array_of(converted.type))


def to_timestamp(value: Value) -> Value:
    """A date as the timestamp of its midnight."""
    return Value(cast(value.sql, TIMESTAMP), TIMESTAMP) if value.type.kind == "date" else value


def to_int(value: Value, where: str) -> Value:
    """An argument that must be an integer."""
    if value.type.kind == "unknown" or value.is_null:
        return coerce(value, INT4)
    if not value.type.is_integer:
        raise refused(f"{where} of {value.type}", hint="cast it to integer")
    return value
