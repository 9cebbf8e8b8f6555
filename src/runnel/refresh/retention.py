"""The contract with VACUUM: which versions of the sources are still needed, and for how long."""

from __future__ import annotations

import logging
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from runnel.catalog import Questions, StreamTable
from runnel.compile.vacuum import Vacuum, parse_vacuum
from runnel.errors import RunnelError
from runnel.lake.log import HistoryLost
from runnel.lake.retention import needed_since, retention_of
from runnel.model.tabular import duration
from runnel.refresh.workspace import Workspace

_log = logging.getLogger("runnel")
_MARGIN = timedelta(hours=1)
_NEAR = 0.75
"""The share of a retention period after which a warning is due."""


@dataclass(frozen=True, slots=True)
class Need:
    """The oldest version of a base table that frontiers still stand on, and whose they are."""

    source: str
    location: str
    identity: str
    version: int
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Risk:
    """What may soon be removed although it is needed; `left` is below zero when it may be now."""

    need: Need
    by: str
    needed_since: datetime
    retention: timedelta
    left: timedelta

    @property
    def message(self) -> str:
        who = f"{', '.join(self.need.tables)} still need version {self.need.version} of"
        when = f"in {duration(self.left.total_seconds())}" if self.left > timedelta() else "now"
        return f"{who} {self.need.source}, which {self.by} may remove {when}"

    @property
    def facts(self) -> dict[str, object]:
        return {
            "source": self.need.source,
            "version": self.need.version,
            "by": self.by,
            "retention_hours": self.retention / timedelta(hours=1),
            "left_hours": round(self.left / timedelta(hours=1), 2),
        }


def needed_versions(catalog: Questions) -> tuple[Need, ...]:
    """For each base table the oldest version a frontier stands on; from the catalog alone."""
    found: dict[tuple[str, str], list[Need]] = defaultdict(list)
    for table in catalog.tables():
        for need in needs_of(table):
            found[need.location, need.identity].append(need)
    return tuple(_oldest(needs) for _, needs in sorted(found.items()))


def needs_of(table: StreamTable) -> Iterator[Need]:
    """What one table's frontier stands on."""
    pins = table.frontier.pins if table.frontier else {}
    for source in table.sources:
        pin = pins.get(source.key)
        if source.kind == "delta" and source.location and pin is not None:
            yield Need(str(source.name), source.location, pin.identity, pin.version, (table.owner,))


def retention_risks(
    workspace: Workspace, now: datetime | None = None, needs: Iterable[Need] | None = None
) -> tuple[Risk, ...]:
    """The versions still needed that VACUUM or log clean-up may remove, soon or already."""
    at = now or datetime.now(UTC)
    risks: list[Risk] = []
    for need in needed_versions(workspace.catalog) if needs is None else needs:
        try:
            risks += _risks(workspace, need, at)
        except RunnelError:
            # It is gone or cannot be read: the next refresh tells.
            continue
    return tuple(risks)


def hold_back_vacuum(workspace: Workspace, text: str, now: datetime | None = None) -> str:
    """The statement as it may be run: a VACUUM keeps what frontiers need, unless FORCE is said."""
    vacuum = parse_vacuum(text)
    if vacuum is None:
        return text
    if vacuum.is_forced:
        return vacuum.text
    for need in needed_versions(workspace.catalog):
        if _is_meant(workspace, vacuum, need):
            held = _held_back(workspace, vacuum, need, now or datetime.now(UTC))
            if held != vacuum.text:
                return held
    return text


def _oldest(needs: list[Need]) -> Need:
    version = min(need.version for need in needs)
    names = {name for need in needs if need.version == version for name in need.tables}
    return replace(needs[0], version=version, tables=tuple(sorted(names)))


def _since(workspace: Workspace, need: Need) -> datetime | None:
    """When what is needed was first put aside; nothing is needed of a table that was replaced."""
    log = workspace.log(need.location)
    if log.table_id(log.latest_version()) != need.identity:
        return None
    return needed_since(log, need.version)


def _risks(workspace: Workspace, need: Need, now: datetime) -> Iterator[Risk]:
    since = _since(workspace, need)
    if since is None:
        return
    promise = retention_of(workspace.log(need.location))
    for by, kept in (("VACUUM", promise.files), ("log clean-up", promise.log)):
        left = since + kept - now
        if left <= (1 - _NEAR) * kept:
            yield Risk(need, by, since, kept, left)


def _held_back(workspace: Workspace, vacuum: Vacuum, need: Need, now: datetime) -> str:
    try:
        since = _since(workspace, need)
    except HistoryLost:
        return vacuum.text
    asked = vacuum.hours
    if asked is None:
        asked = retention_of(workspace.log(need.location)).files / timedelta(hours=1)
    if since is None or timedelta(hours=asked) >= now - since + _MARGIN:
        return vacuum.text
    hours = math.ceil((now - since + _MARGIN) / timedelta(hours=1))
    _log.warning(
        "VACUUM of %s keeps %d hours instead of %g: %s still need version %d; refresh them first, "
        "or add FORCE", need.source, hours, asked, ", ".join(need.tables), need.version,
    )  # fmt: skip
    return vacuum.retaining(hours)


def _is_meant(workspace: Workspace, vacuum: Vacuum, need: Need) -> bool:
    if vacuum.name is not None:
        return vacuum.name.key in _keys(workspace.catalog.tables(), need.location)
    path = (vacuum.path or "").removeprefix("file:")
    place = workspace.log(need.location).path
    return os.path.normpath(place) == os.path.normpath(path)


def _keys(tables: Iterable[StreamTable], location: str) -> set[str]:
    return {s.key for table in tables for s in table.sources if s.location == location}
