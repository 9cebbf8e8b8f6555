"""Intervals: never stored, but added to moments, subtracted from them and compared.

PostgreSQL keeps months, days and the time apart, and adds them in this order; so does Spark's
make_interval. Compared, a month has 30 days and a day 24 hours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from runnel.compile.postgres.types import INTERVAL
from runnel.compile.postgres.values import Value, refused

_SECONDS: dict[str, Fraction] = {
    "hour": Fraction(3600), "minute": Fraction(60), "second": Fraction(1),
    "millisecond": Fraction(1, 1000), "microsecond": Fraction(1, 1000000),
}  # fmt: skip
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}
_SHORT = {
    "y": "year", "yr": "year", "yrs": "year", "mon": "month", "mons": "month", "w": "week",
    "d": "day", "h": "hour", "hr": "hour", "hrs": "hour", "m": "minute", "min": "minute",
    "mins": "minute", "s": "second", "sec": "second", "secs": "second", "ms": "millisecond",
    "us": "microsecond", "centuries": "century",
}  # fmt: skip
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-z]+)|\s*([+-]?)(\d+):(\d+)(?::(\d+(?:\.\d+)?))?")


@dataclass(frozen=True, slots=True)
class Interval:
    """Its parts as Spark numbers; of the difference of two moments, only the seconds."""

    months: str
    days: str
    seconds: str
    is_difference: bool = False

    @property
    def sql(self) -> str:
        if self.is_difference:
            raise refused(
                "adding the difference of two timestamps", hint="compare it, or extract its epoch"
            )
        return f"MAKE_INTERVAL(0, {self.months}, 0, {self.days}, 0, 0, {self.seconds})"

    @property
    def total(self) -> str:
        """All of it in seconds, as PostgreSQL compares intervals."""
        if self.is_difference:
            return self.seconds
        parts = (self.months, self.days, self.seconds)
        if all(p.strip("()-").isdigit() for p in parts):
            months, days, seconds = (int(p.strip("()")) for p in parts)
            return _number(months * 2592000 + days * 86400 + seconds)
        whole = f"CAST({self.months} AS BIGINT) * 2592000 + CAST({self.days} AS BIGINT) * 86400"
        return f"({whole} + {self.seconds})"

    def times(self, number: str) -> Interval:
        if self.is_difference or "." in self.seconds.rstrip("0").rstrip("."):
            raise refused("a multiple of this interval")
        parts = (self.months, self.days, self.seconds)
        months, days, seconds = ("0" if p == "0" else f"({p} * {number})" for p in parts)
        return Interval(months, days, seconds)

    def negated(self) -> Interval:
        parts = (self.months, self.days, self.seconds)
        months, days, seconds = ("0" if p == "0" else f"(-{p})" for p in parts)
        return Interval(months, days, seconds, self.is_difference)


def parse_interval(text: str, unit: str = "") -> Value:
    """An interval written in PostgreSQL's way: '1 year 2 mons 3 days 04:05:06'."""
    whole = f"{text} {unit}".strip().lower()
    months, days, seconds = 0, 0, Fraction(0)
    position = 0
    while position < len(whole):
        match = _PART.match(whole, position)
        if match is None:
            raise refused(f"the interval '{whole}'", hint="write it like '1 month 2 days 03:00'")
        position = match.end()
        if match[4]:
            sign = -1 if match[3] == "-" else 1
            seconds += sign * (int(match[4]) * 3600 + int(match[5]) * 60 + Fraction(match[6] or 0))
            continue
        more = _part(whole, Fraction(match[1]), match[2])
        months, days, seconds = months + more[0], days + more[1], seconds + more[2]
    parts = Interval(_number(months), _number(days), _decimal(seconds))
    return Value(parts.sql, INTERVAL, interval=parts)


def _part(whole: str, number: Fraction, name: str) -> tuple[int, int, Fraction]:
    unit = _SHORT.get(name, name.removesuffix("s") if name.endswith("s") else name)
    if unit in _SECONDS:
        return 0, 0, number * _SECONDS[unit]
    if number.denominator != 1:
        raise refused(f"the interval '{whole}'", hint="only hours and less can have a fraction")
    if unit in _DAYS:
        return 0, int(number) * _DAYS[unit], Fraction(0)
    if unit in _MONTHS:
        return int(number) * _MONTHS[unit], 0, Fraction(0)
    raise refused(f"the unit {name} of an interval")


def _number(number: int) -> str:
    return str(number) if number >= 0 else f"({number})"


def _decimal(number: Fraction) -> str:
    micros = round(number * 1000000)
    if micros % 1000000 == 0:
        return _number(micros // 1000000)
    sign, micros = ("-" if micros < 0 else ""), abs(micros)
    text = f"{sign}{micros // 1000000}.{micros % 1000000:06d}"
    return f"({text})" if sign else text
