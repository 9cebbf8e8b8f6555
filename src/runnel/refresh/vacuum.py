"""VACUUM through the lake: held back to what no frontier needs any more."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from runnel.compile.vacuum import Vacuum, parse_vacuum
from runnel.lake.log import DeltaLog, HistoryLost
from runnel.lake.retention import retention_of
from runnel.refresh.retention import Need, needed_versions, since_needed
from runnel.refresh.source_ddl import place_of
from runnel.refresh.workspace import Workspace

_log = logging.getLogger("runnel")
_MARGIN = timedelta(hours=1)
_HOUR = timedelta(hours=1)


def hold_back_vacuum(workspace: Workspace, text: str, now: datetime | None = None) -> str:
    """The statement as it may be run: a VACUUM keeps what frontiers need, unless FORCE is said."""
    vacuum = parse_vacuum(text)
    if vacuum is None:
        return text
    if vacuum.is_forced:
        return vacuum.text
    at = now or datetime.now(UTC)
    hours = [
        _hours(workspace, vacuum, need, at) for need in _needs_of_what_is_meant(workspace, vacuum)
    ]
    longest = max((found for found in hours if found is not None), default=None)
    return text if longest is None else vacuum.retaining(longest)


def _needs_of_what_is_meant(workspace: Workspace, vacuum: Vacuum) -> list[Need]:
    """By place: one table may have several names, and several paths lead to one folder."""
    needs = needed_versions(workspace.catalog)
    if not needs:
        return []
    place = _meant(workspace, vacuum, needs)
    return [need for need in needs if _place(workspace.log(need.location)) == place]


def _meant(workspace: Workspace, vacuum: Vacuum, needs: Iterable[Need]) -> str | None:
    """The place that a statement speaks of; Spark is asked for names that no table reads by."""
    if vacuum.name is None:
        return _place(DeltaLog(vacuum.path)) if vacuum.path else None
    key = vacuum.name.key
    known = (need.location for need in needs if key in _keys(workspace, need.location))
    location = next(known, None) or place_of(workspace, vacuum.name)
    return _place(workspace.log(location)) if location is not None else None


def _hours(workspace: Workspace, vacuum: Vacuum, need: Need, now: datetime) -> int | None:
    """How many hours have to be kept for a need; None when what the statement keeps is enough."""
    try:
        since = since_needed(workspace, need)
    except HistoryLost as error:
        names = ", ".join(need.tables)
        _log.warning("VACUUM of %s is not held back for %s: %s", need.source, names, error.primary)
        return None
    asked = vacuum.hours
    if asked is None:
        asked = retention_of(workspace.log(need.location)).files / _HOUR
    if since is None or timedelta(hours=asked) >= now - since + _MARGIN:
        return None
    hours = math.ceil((now - since + _MARGIN) / _HOUR)
    _log.warning(
        "VACUUM of %s keeps %d hours instead of %g: %s still need version %d; refresh them first, "
        "or add FORCE", need.source, hours, asked, ", ".join(need.tables), need.version,
    )  # fmt: skip
    return hours


def _place(log: DeltaLog) -> str:
    """One text for one folder, however it is written and whatever links lead to it."""
    return os.path.realpath(log.path) if log.is_local else log.path.rstrip("/")


def _keys(workspace: Workspace, location: str) -> set[str]:
    return {
        source.key
        for table in workspace.catalog.tables()
        for source in table.sources
        if source.location == location
    }
