"""Moments: sums and differences, date_trunc, extract."""

from __future__ import annotations

import re

from runnel.compile.postgres.casts import coerce, to_timestamp
from runnel.compile.postgres.intervals import Interval
from runnel.compile.postgres.types import (
    DATE,
    INT4,
    INTERVAL,
    TIMESTAMP,
    TIMESTAMPTZ,
    inexact,
    numeric,
)
from runnel.compile.postgres.values import Value, bare, cast, refused

_EPOCH = numeric(27, 6)
_ZONE = re.compile(r"UTC|(?!Etc/)[A-Z][A-Za-z_]+(/[A-Z][A-Za-z_-]+)+")
_FIELDS = {
    "year": "EXTRACT(YEAR FROM {0})",
    "month": "EXTRACT(MONTH FROM {0})",
    "day": "EXTRACT(DAY FROM {0})",
    "quarter": "EXTRACT(QUARTER FROM {0})",
    "doy": "EXTRACT(DOY FROM {0})",
    "dow": "(DAYOFWEEK({0}) - 1)",
    "isodow": "(WEEKDAY({0}) + 1)",
    "week": "WEEKOFYEAR({0})",
    "isoyear": "EXTRACT(YEAROFWEEK FROM {0})",
    "decade": "FLOOR(YEAR({0}) / 10)",
    "century": "((YEAR({0}) + 99) DIV 100)",
    "millennium": "((YEAR({0}) + 999) DIV 1000)",
}
_TIMES = {
    "hour": "HOUR({0})",
    "minute": "MINUTE({0})",
    "milliseconds": "(EXTRACT(SECOND FROM {0}) * 1000)",
    "microseconds": "(EXTRACT(SECOND FROM {0}) * 1000000)",
}
_OF_DIFFERENCE = {
    "day": "({0} DIV 86400)",
    "hour": "(({0} DIV 3600) % 24)",
    "minute": "(({0} DIV 60) % 60)",
}
_LARGE_UNITS = ("week", "month", "quarter", "year")
_SMALL_UNITS = ("hour", "minute", "second")


def add_moments(left: Value, right: Value) -> Value:
    if left.interval is not None and right.interval is not None:
        return _combined(left.interval, right.interval)
    if not left.type.is_moment:
        left, right = right, left
    if right.interval is not None:
        return _shifted("+", left, right.interval)
    if left.type == DATE and right.type.is_integer:
        return Value(f"DATE_ADD({left.sql}, {cast(right.sql, INT4)})", DATE)
    raise refused(f"{left.type} + {right.type}", hint="add an integer or an interval '...'")


def subtract_moments(left: Value, right: Value) -> Value:
    if left.type.is_moment and right.type.kind == "unknown":
        right = coerce(right, left.type)
    if left.interval is not None and right.interval is not None:
        return _combined(left.interval, right.interval.negated())
    if right.interval is not None and left.type.is_moment:
        return _shifted("-", left, right.interval)
    if left.type == DATE and right.type == DATE:
        return Value(f"DATEDIFF({left.sql}, {right.sql})", INT4)
    if left.type == DATE and right.type.is_integer:
        return Value(f"DATE_SUB({left.sql}, {cast(right.sql, INT4)})", DATE)
    if left.type.is_moment and right.type.is_moment:
        return _difference(left, right)
    raise refused(f"{left.type} - {right.type}")


def _combined(left: Interval, right: Interval) -> Value:
    def both(a: str, b: str) -> str:
        return b if a == "0" else a if b == "0" else f"({a} + {b})"

    parts = Interval(
        both(left.months, right.months), both(left.days, right.days),
        both(left.seconds, right.seconds), left.is_difference or right.is_difference,
    )  # fmt: skip
    if parts.is_difference:
        raise refused("a sum of the difference of two timestamps", hint="compare the timestamps")
    return Value(parts.sql, INTERVAL, interval=parts)


def _shifted(sign: str, moment: Value, interval: Interval) -> Value:
    start = to_timestamp(moment)
    return Value(f"({start.sql} {sign} {interval.sql})", start.type)


def _difference(left: Value, right: Value) -> Value:
    if "timestamptz" in (left.type.kind, right.type.kind):
        a, b = (cast(v.sql, TIMESTAMPTZ) if v.type != TIMESTAMPTZ else v.sql for v in (left, right))
        micros = f"CAST(UNIX_MICROS({a}) - UNIX_MICROS({b}) AS DECIMAL(20, 0))"
        seconds = f"({micros} * 0.000001)"
    else:
        seconds = _seconds_between(to_timestamp(left).sql, to_timestamp(right).sql)
    return Value("", INTERVAL, interval=Interval("0", "0", seconds, is_difference=True))


def _seconds_between(left: str, right: str) -> str:
    between = f"({left} - {right})"
    days = f"CAST(EXTRACT(DAY FROM {between}) AS BIGINT) * 86400"
    hours = f"EXTRACT(HOUR FROM {between}) * 3600 + EXTRACT(MINUTE FROM {between}) * 60"
    return f"({days} + {hours} + EXTRACT(SECOND FROM {between}))"


def at_time_zone(value: Value, zone: Value) -> Value:
    """What the clocks of a zone show at a moment.

    The other way round an hour that clocks show twice would have to be chosen from, and a short
    name of a zone, or one with a sign, means something else to either engine.
    """
    if value.type != TIMESTAMPTZ:
        raise refused(
            f"AT TIME ZONE of {value.type}",
            detail="which moment is meant by an hour that clocks show twice is not the same",
            hint="store the moment as a timestamp with time zone",
        )
    if zone.constant is None or not _ZONE.fullmatch(zone.constant):
        raise refused(
            f"AT TIME ZONE {zone.constant or zone.sql}",
            hint="name the zone by its place, as in 'Europe/Paris', or write 'UTC'",
        )
    start = "CAST('1970-01-01 00:00:00' AS TIMESTAMP_NTZ)"
    seconds = f"CAST(CAST(UNIX_MICROS({value.sql}) AS DECIMAL(20, 0)) * 0.000001 AS DECIMAL(18, 6))"
    there = f"{start} + MAKE_DT_INTERVAL(0, 0, 0, {seconds})"
    return Value(f"CONVERT_TIMEZONE('UTC', '{zone.constant}', {there})", TIMESTAMP)


def extract(field: str, value: Value) -> Value:
    """extract(field FROM value): a numeric."""
    field = _known_field(field.lower())
    if value.interval is not None:
        return _extract_interval(field, value.interval)
    if not value.type.is_moment:
        raise refused(f"extract({field}) from {value.type}", hint="cast it to date or timestamp")
    if field == "epoch":
        return _epoch(value)
    if field in _FIELDS:
        return _whole(_FIELDS[field].format(bare(value.sql)))
    if value.type == DATE:
        raise refused(f"extract({field}) from a date")
    if field == "second":
        return Value(f"EXTRACT(SECOND FROM {bare(value.sql)})", numeric(8, 6))
    if field in _TIMES:
        taken = _TIMES[field].format(bare(value.sql))
        return _whole(taken) if field in ("hour", "minute") else Value(taken, numeric(16, 6, False))
    raise refused(f"extract({field})")


def _known_field(field: str) -> str:
    plural = {"years": "year", "months": "month", "days": "day", "hours": "hour",
              "minutes": "minute", "seconds": "second", "dayofweek": "dow"}  # fmt: skip
    return plural.get(field, field)


def _whole(sql: str) -> Value:
    type_ = numeric(10, 0)
    return Value(cast(sql, type_), type_)


def _epoch(value: Value) -> Value:
    if value.type == TIMESTAMPTZ:
        micros = f"CAST(UNIX_MICROS({value.sql}) AS DECIMAL(20, 0))"
        return Value(f"({micros} * 0.000001)", _EPOCH)
    if value.type == DATE:
        days = f"DATEDIFF({value.sql}, CAST('1970-01-01' AS DATE))"
        type_ = inexact(numeric(18, 0))
        return Value(f"CAST(CAST({days} AS BIGINT) * 86400 AS {type_.spark})", type_)
    start = "CAST('1970-01-01 00:00:00' AS TIMESTAMP_NTZ)"
    return Value(_seconds_between(value.sql, start), _EPOCH)


def _extract_interval(field: str, interval: Interval) -> Value:
    if field == "epoch" and (interval.is_difference or interval.months == "0"):
        return Value(cast(interval.total, _EPOCH), _EPOCH)
    if interval.is_difference and field in _OF_DIFFERENCE:
        return _whole(_OF_DIFFERENCE[field].format(interval.seconds))
    raise refused(f"extract({field}) from an interval", hint="extract its epoch")


def truncate(unit: str, value: Value) -> Value:
    """date_trunc: a date becomes a timestamp with time zone, as PostgreSQL prefers."""
    unit = unit.lower()
    if value.type.kind not in ("date", "timestamp", "timestamptz"):
        raise refused(f"date_trunc of {value.type}", hint="cast it to timestamp")
    if unit not in (*_LARGE_UNITS, "day", *_SMALL_UNITS):
        raise refused(f"date_trunc('{unit}')")
    if value.type == TIMESTAMPTZ:
        return Value(f"DATE_TRUNC('{unit.upper()}', {bare(value.sql)})", TIMESTAMPTZ)
    if value.type == TIMESTAMP and unit in _SMALL_UNITS:
        return Value(_truncated_time(unit, bare(value.sql)), TIMESTAMP)
    day = value.sql if value.type == DATE else cast(value.sql, DATE)
    if unit in _LARGE_UNITS:
        day = f"TRUNC({day}, '{unit.upper()}')"
    type_ = TIMESTAMPTZ if value.type == DATE else TIMESTAMP
    return Value(cast(day, type_), type_)


def _truncated_time(unit: str, moment: str) -> str:
    """Not by way of a time zone, in which an hour may not exist."""
    parts = [f"{part}({moment})" for part in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")]
    kept = 4 + _SMALL_UNITS.index(unit)
    return f"MAKE_TIMESTAMP_NTZ({', '.join(parts[:kept] + ['0'] * (6 - kept))})"
