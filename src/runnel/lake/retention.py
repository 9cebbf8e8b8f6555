"""How long a Delta table keeps what an older version of it needs, read from its log."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from runnel.lake.changes import ChangeKind, inspect
from runnel.lake.log import Commit, DeltaLog, FileAction
from runnel.model.frontier import Pin

_UNITS = {
    "microsecond": timedelta(microseconds=1), "millisecond": timedelta(milliseconds=1),
    "second": timedelta(seconds=1), "minute": timedelta(minutes=1), "hour": timedelta(hours=1),
    "day": timedelta(days=1), "week": timedelta(weeks=1),
}  # fmt: skip
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?\b")
_LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class Retention:
    """What the properties of a table promise: for removed files, and for the log."""

    files: timedelta
    log: timedelta


def retention_of(log: DeltaLog) -> Retention:
    """The promise in force now."""
    settings = log.snapshot(log.latest_version()).configuration
    return Retention(
        parse_interval(settings.get("delta.deletedFileRetentionDuration"), timedelta(weeks=1)),
        parse_interval(settings.get("delta.logRetentionDuration"), timedelta(days=30)),
    )


def parse_interval(text: str | None, default: timedelta) -> timedelta:
    """`interval 1 week`, `interval 2 days 12 hours`; what is not understood is the default."""
    parts = _PART.findall((text or "").lower())
    if not parts or any(unit not in _UNITS for _, unit in parts):
        return default
    return sum((float(number) * _UNITS[unit] for number, unit in parts), timedelta())


def needed_since(log: DeltaLog, version: int) -> datetime | None:
    """When the oldest thing was put aside that a reader at this version still needs.

    None: the version is the newest, so that nothing was. HistoryLost when it is gone already.
    """
    newest = log.latest_version()
    if version >= newest:
        return None
    commits = log.commits(version, min(newest, version + _LOOKED_AT))
    return datetime.fromtimestamp(min(map(_put_aside, commits)), UTC)


def lost_since(log: DeltaLog, identity: str, version: int) -> str | None:
    """Why the change since a version cannot be read any more; None when it can.

    Not looked at when it is long: each time all of its commits would be read.
    """
    newest = log.latest_version()
    if newest - version > _LOOKED_AT:
        return None
    info = inspect(log, Pin("delta", identity, version), newest, ())
    return info.reason if info.kind is ChangeKind.LOST else None


def _put_aside(commit: Commit) -> float:
    """A commit's own time, or an earlier one at which a long statement marked its files."""
    removed = (action.deleted_ms for action in commit.removes if action.deleted_ms)
    moments = [ms / 1000 for ms in (commit.timestamp_ms, *removed)]
    return min([*moments, *_written(commit.cdc)])


def _written(files: Iterable[FileAction]) -> list[float]:
    """VACUUM goes by the age of change files themselves."""
    return [os.stat(file.path).st_mtime for file in files if os.path.exists(file.path)]
