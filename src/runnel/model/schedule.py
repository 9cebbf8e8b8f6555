"""Schedules: how stale a table may be."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runnel.errors import UserError

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhdw])")
_WORDS = {
    "second": "s", "seconds": "s", "sec": "s", "minute": "m", "minutes": "m", "min": "m",
    "hour": "h", "hours": "h", "day": "d", "days": "d", "week": "w", "weeks": "w",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Schedule:
    """A target lag in seconds, with the text the user wrote."""

    text: str
    seconds: float

    @staticmethod
    def parse(text: str) -> Schedule:
        """Read `30s`, `5m`, `1h30m`, `90 seconds`."""
        compact = re.sub(
            r"[a-z]+", lambda m: _WORDS.get(m.group(), m.group()), text.strip().lower()
        )
        compact = compact.replace(" ", "")
        seconds = 0.0
        position = 0
        while match := _PART.match(compact, position):
            seconds += float(match.group(1)) * _UNITS[match.group(2)]
            position = match.end()
        if position != len(compact) or not compact or seconds <= 0:
            raise UserError(
                f"{text!r} is not a schedule",
                detail="expected a duration greater than zero, such as '30s', '5m', '1h30m', '1d'",
            )
        return Schedule(text.strip(), seconds)
