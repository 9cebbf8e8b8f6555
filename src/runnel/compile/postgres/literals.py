"""A quoted constant takes the type that its place asks for."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from runnel.compile.postgres.intervals import parse_interval
from runnel.compile.postgres.numbers import exact_number, integer
from runnel.compile.postgres.types import BOOL, Type
from runnel.compile.postgres.values import Value, refused, text_literal

_TRUE = frozenset("t tr tru true y ye yes on 1".split())
_FALSE = frozenset("f fa fal fals false n no of off 0".split())
_MOMENT = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2})(?:[ T]+(\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?\s*"
    r"(Z|UTC|[+-]\d{1,2}(?::?\d{2})?)?",
    re.IGNORECASE,
)


def read_literal(text: str, type_: Type) -> Value:
    """The constant in that type."""
    kind = type_.kind
    if kind in ("text", "json"):
        return Value(text_literal(text), type_, constant=text)
    if kind == "bool":
        return _boolean(text)
    if kind == "interval":
        return parse_interval(text)
    if type_.is_moment:
        return Value(f"CAST({text_literal(_moment(text, kind))} AS {type_.spark})", type_)
    if kind == "array":
        return _array(text, type_)
    if type_.is_number:
        return _number(text, type_)
    raise refused(f"the constant '{text}' as {type_}")


def _number(text: str, type_: Type) -> Value:
    if type_.is_float:
        return Value(f"CAST({text_literal(text.strip())} AS {type_.spark})", type_)
    try:
        if type_.is_integer:
            return integer(int(text.strip()), type_)
        value = Decimal(text.strip())
    except (ValueError, InvalidOperation):
        raise refused(f"'{text}' as a {type_}", hint="it is no such number") from None
    if type_.precision:
        shown = exact_number(value)
        return Value(f"CAST({shown.sql} AS {type_.spark})", type_)
    return exact_number(value)


def _boolean(text: str) -> Value:
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise refused(f"'{text}' as a boolean")
    return Value("TRUE" if word in _TRUE else "FALSE", BOOL)


def boolean_of_text(sql: str) -> str:
    """Text read as a boolean: PostgreSQL takes the beginnings of its words too."""
    word = f"LOWER(TRIM({sql}))"

    def among(words: frozenset[str]) -> str:
        return f"{word} IN ({', '.join(text_literal(w) for w in sorted(words))})"

    known = f"WHEN {among(_TRUE)} THEN TRUE WHEN {among(_FALSE)} THEN FALSE"
    return f"CASE {known} ELSE CAST({sql} AS BOOLEAN) END"


def _moment(text: str, kind: str) -> str:
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        raise refused(f"the {kind} '{text}'", hint="write it as '2024-01-31 10:00:00'")
    day, time, zone = match.groups()
    try:
        shown = date(*(int(part) for part in day.split("-"))).isoformat()
        if time and kind != "date":
            shown += f" {_time(time)}"
    except ValueError:
        raise refused(f"the {kind} '{text}'", hint="there is no such day or time") from None
    return shown + _zone(zone) if zone and kind == "timestamptz" else shown


def _time(text: str) -> str:
    hour, _, rest = text.partition(":")
    padded = f"{int(hour):02d}:{rest}"
    datetime.fromisoformat(f"2000-01-01T{padded}")
    return padded if padded.count(":") == 2 else f"{padded}:00"


def _zone(text: str) -> str:
    if text.upper() in ("Z", "UTC"):
        return "+00:00"
    digits = text[1:].replace(":", "")
    hours, minutes = (digits[:-2], digits[-2:]) if len(digits) > 2 else (digits, "00")
    return f"{text[0]}{int(hours):02d}:{minutes}"


def _array(text: str, type_: Type) -> Value:
    inner = text.strip()
    assert type_.element is not None
    if not (inner.startswith("{") and inner.endswith("}")) or any(
        c in inner[1:-1] for c in '{}"\\'
    ):
        raise refused(f"the array '{text}'", hint="write it as ARRAY[...]")
    items = [item.strip() for item in inner[1:-1].split(",")] if inner[1:-1].strip() else []
    shown = [
        "NULL" if item.upper() == "NULL" else read_literal(item, type_.element).sql
        for item in items
    ]
    element = type_.element
    if element.kind == "numeric" and not element.precision:
        raise refused("an array of numeric without a scale", hint="name it: numeric(12, 2)[]")
    return Value(f"CAST(ARRAY({', '.join(shown)}) AS {type_.spark})", type_)


def moment_day(sql: str) -> int | None:
    """The day of the month of a constant moment."""
    match = re.match(r"(?:CAST\()*'\d{4}-\d\d-(\d\d)", sql)
    return int(match[1]) if match is not None else None
