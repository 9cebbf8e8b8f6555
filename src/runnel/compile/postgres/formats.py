"""to_char of moments, to_date and to_timestamp: the formats that both sides read alike."""

from __future__ import annotations

import re
from collections.abc import Iterator

from runnel.compile.postgres.values import Value, call, refused, text_literal

_TOKEN = re.compile(
    r'"[^"]*"|FM|TM|TH|th|SP|YYYY|IYYY|IW|IDDD|ID|DDD|DD|HH24|HH12|HH|MI|SSSSS|SS|MS|US|MM'
    r"|MONTH|Month|month|MON|Mon|mon|DAY|Day|day|DY|Dy|dy|AM|PM|am|pm|Q|D|W|[A-Za-z]+|.",
    re.DOTALL,
)
_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()
_PADDED = {
    "YYYY": ("YEAR({0})", 4), "MM": ("MONTH({0})", 2), "DD": ("DAY({0})", 2),
    "DDD": ("DAYOFYEAR({0})", 3), "HH24": ("HOUR({0})", 2), "MI": ("MINUTE({0})", 2),
    "SS": ("SECOND({0})", 2), "Q": ("QUARTER({0})", 1), "IW": ("WEEKOFYEAR({0})", 2),
    "IYYY": ("EXTRACT(YEAROFWEEK FROM {0})", 4), "D": ("DAYOFWEEK({0})", 1),
    "ID": ("(WEEKDAY({0}) + 1)", 1), "HH12": ("((HOUR({0}) + 11) % 12 + 1)", 2),
    "HH": ("((HOUR({0}) + 11) % 12 + 1)", 2),
    "MS": ("FLOOR(EXTRACT(SECOND FROM {0}) % 1 * 1000)", 3),
    "US": ("FLOOR(EXTRACT(SECOND FROM {0}) % 1 * 1000000)", 6),
}  # fmt: skip
_READ = {"YYYY": "yyyy", "MM": "MM", "DD": "dd", "HH24": "HH", "MI": "mm", "SS": "ss"}


def to_char(moment: Value, pattern: str) -> str:
    """A moment as text, put together from its parts; no time zone comes into it."""
    parts: list[str] = []
    is_filled = True
    for token in _TOKEN.findall(pattern):
        if token == "FM":
            is_filled = False
            continue
        parts.append(_part(token, _moment(moment, token), is_filled, pattern))
        is_filled = True
    return call("CONCAT", *parts) if len(parts) > 1 else parts[0] if parts else "''"


def _moment(moment: Value, token: str) -> str:
    """The moment; of a date the hours can be asked too."""
    is_time = token in ("HH24", "HH12", "HH", "MI", "SS", "MS", "US") or token.lower() in (
        "am",
        "pm",
    )
    if moment.type.kind == "date" and is_time:
        return f"CAST({moment.sql} AS TIMESTAMP_NTZ)"
    return moment.sql


def _part(token: str, moment: str, is_filled: bool, pattern: str) -> str:
    if token in _PADDED:
        sql, width = _PADDED[token]
        text = f"CAST({sql.format(moment)} AS STRING)"
        # Only a year can be longer than its place; it is not cut.
        place = f"GREATEST({width}, LENGTH({text}))" if width == 4 else str(width)
        return f"LPAD({text}, {place}, '0')" if is_filled and width > 1 else text
    if token.lower() in ("month", "mon"):
        return _name(token, _MONTHS, f"MONTH({moment})", "month", is_filled)
    if token.lower() in ("day", "dy"):
        return _name(token, _DAYS, f"DAYOFWEEK({moment})", "day", is_filled)
    if token.lower() in ("am", "pm"):
        early, late = ("am", "pm") if token.islower() else ("AM", "PM")
        return f"CASE WHEN HOUR({moment}) < 12 THEN '{early}' ELSE '{late}' END"
    if token.startswith('"'):
        return text_literal(token[1:-1])
    if token.isalpha() or token == "\\":
        raise refused(
            f"the format '{pattern}' of to_char", detail=f"{token} is not known",
            hint="put literal text in double quotes",
        )  # fmt: skip
    return text_literal(token)


def _name(token: str, names: list[str], number: str, long: str, is_filled: bool) -> str:
    is_long = token.lower() == long
    shown = [name if is_long else name[:3] for name in names]
    if token.isupper() or token.islower():
        shown = [name.upper() if token.isupper() else name.lower() for name in shown]
    if is_long and is_filled:
        shown = [name.ljust(9) for name in shown]
    cases = " ".join(f"WHEN {n} THEN {text_literal(name)}" for n, name in enumerate(shown, 1))
    return f"CASE {number} {cases} END"


def reading_pattern(pattern: str, function: str) -> str:
    """The pattern with which Spark reads text of that format."""
    tokens = list(_TOKEN.findall(pattern))
    out: list[str] = []
    for before, token, after in _neighbours(tokens):
        if token in _READ:
            # Between separators PostgreSQL takes one digit as well.
            stands_alone = before not in _READ and after not in _READ and token != "YYYY"
            out.append(_READ[token][0] if stands_alone else _READ[token])
        elif token in "-/.: ,":
            out.append(token)
        else:
            raise refused(
                f"the format '{pattern}' of {function}",
                hint="YYYY, MM, DD, HH24, MI and SS with - / . : between them",
            )
    return "".join(out)


def _neighbours(tokens: list[str]) -> Iterator[tuple[str, str, str]]:
    for position, token in enumerate(tokens):
        before = tokens[position - 1] if position else ""
        after = tokens[position + 1] if position + 1 < len(tokens) else ""
        yield before, token, after
