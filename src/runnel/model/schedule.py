"""Schedules: how stale a table may be, or when it is refreshed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from runnel.errors import UserError
from runnel.model.tabular import duration

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhdw])")
_WORDS = {
    "second": "s", "seconds": "s", "sec": "s", "minute": "m", "minutes": "m", "min": "m",
    "hour": "h", "hours": "h", "day": "d", "days": "d", "week": "w", "weeks": "w",
}  # fmt: skip
_NICKNAMES = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}  # fmt: skip
_PREFIX = re.compile(r"(?:using\s+)?cron\s+", re.IGNORECASE)
_CRON = re.compile(
    r"(?P<fields>@[a-z]+|[0-9*]\S*(?:\s+\S+){4})(?:\s+(?P<zone>[A-Za-z][\w+/-]*))?", re.IGNORECASE
)
_FORMS = (
    "a duration such as '30s', '5m', '1h30m', '1d'; "
    "a cron line with an optional time zone such as 'cron 0 6 * * * Europe/Berlin'; or 'DOWNSTREAM'"
)
DOWNSTREAM = "DOWNSTREAM"


@dataclass(frozen=True, slots=True)
class Cron:
    """Instants by the clock on the wall of a time zone."""

    fields: str
    zone: str = "UTC"

    def after(self, at: datetime) -> datetime:
        """The first instant later than `at`."""
        return _following(self, at, reverse=False)

    def until(self, at: datetime) -> datetime:
        """The last instant that is not later than `at`."""
        return _following(self, at.replace(microsecond=0) + timedelta(seconds=1), reverse=True)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A target lag in seconds, a cron line, or neither: as often as the consumers need."""

    text: str
    seconds: float | None = None
    cron: Cron | None = None

    @property
    def is_downstream(self) -> bool:
        return self.seconds is None and self.cron is None

    @staticmethod
    def parse(text: str, minimum: float = 0.0) -> Schedule:
        """Read `30s`, `1h30m`, `90 seconds`, `cron 0 6 * * * Europe/Berlin` or `DOWNSTREAM`."""
        plain = " ".join(text.split())
        if plain.upper() == DOWNSTREAM:
            return Schedule(DOWNSTREAM)
        if _is_cron(plain):
            return Schedule(plain, cron=parse_cron(_PREFIX.sub("", plain, count=1)))
        seconds = parse_duration(plain)
        if seconds < minimum:
            raise UserError(
                f"the schedule {text!r} is too short",
                detail=f"the shortest is {duration(minimum)}",
                hint="choose a longer one, or change the setting min_schedule",
            )
        return Schedule(plain, seconds)


def _is_cron(plain: str) -> bool:
    words = plain.lower().split()
    is_worded = len(words) > 1 and (words[1] in _WORDS or words[1] in _UNITS)
    return bool(_PREFIX.match(plain)) or plain[:1] == "@" or (len(words) >= 5 and not is_worded)


def parse_duration(text: str) -> float:
    """The seconds of `30s`, `5m`, `1h30m`, `90 seconds`."""
    compact = re.sub(r"[a-z]+", lambda m: _WORDS.get(m.group(), m.group()), text.strip().lower())
    compact = compact.replace(" ", "")
    seconds = 0.0
    position = 0
    while match := _PART.match(compact, position):
        seconds += float(match.group(1)) * _UNITS[match.group(2)]
        position = match.end()
    if position != len(compact) or not compact or seconds <= 0:
        raise UserError(
            f"{text!r} is not a schedule",
            detail=f"expected {_FORMS}",
            hint="write a number and its unit, '5m' for example",
        )
    return seconds


def parse_cron(text: str) -> Cron:
    """Read `0 6 * * *` or `@daily`, with a time zone behind it or none (then UTC)."""
    match = _CRON.fullmatch(text.strip())
    if match is None:
        raise _no_cron(text, "expected minute hour day-of-month month day-of-week [time zone]")
    fields, zone = match["fields"], match["zone"] or "UTC"
    if fields.startswith("@"):
        if fields.lower() not in _NICKNAMES:
            raise _no_cron(text, f"expected one of {', '.join(_NICKNAMES)}")
        fields = _NICKNAMES[fields.lower()]
    cron = Cron(fields, _known_zone(zone, text))
    _check(cron, text)
    return cron


def _check(cron: Cron, text: str) -> None:
    from cronsim import CronSim, CronSimError

    try:
        next(CronSim(cron.fields, datetime(2024, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise _no_cron(text, str(error)) from None
    except StopIteration:
        raise _no_cron(text, "there is no such day") from None


def _known_zone(zone: str, text: str) -> str:
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise _no_cron(text, f"{zone!r} is not a time zone, such as Europe/Berlin or UTC") from None
    return zone


def _no_cron(text: str, detail: str) -> UserError:
    return UserError(
        f"{text!r} is not a cron schedule",
        detail=detail[0].lower() + detail[1:],
        hint="write it like 'cron 0 6 * * * Europe/Berlin': every day at six in Berlin",
    )


def _following(cron: Cron, at: datetime, *, reverse: bool) -> datetime:
    from cronsim import CronSim

    local = at.astimezone(_zone(cron.zone))
    return next(CronSim(cron.fields, local, reverse=reverse)).astimezone(UTC)


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    # cronsim treats Python's own UTC, and nothing else, as a zone without daylight saving.
    return UTC if name.upper() in ("UTC", "ETC/UTC") else ZoneInfo(name)
