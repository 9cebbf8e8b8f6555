"""Which versions of the sources are still needed, and for how long they are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from runnel.catalog import Questions, StreamTable
from runnel.errors import RunnelError
from runnel.lake.log import HistoryLost
from runnel.lake.retention import lost_since, needed_since, retention_of
from runnel.model.tabular import duration
from runnel.refresh.answers import Question
from runnel.refresh.workspace import Workspace

_NEAR = 0.75
"""The share of a retention period after which a warning is due."""

_SILENT = "its log does not answer"


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


@dataclass(frozen=True, slots=True)
class Lost:
    """What is needed and gone already, or, when not `is_gone`, of which nothing can be told."""

    need: Need
    is_gone: bool
    why: str

    @property
    def left(self) -> timedelta:
        """What is gone comes before all that may go, what is not known after it."""
        return timedelta.min if self.is_gone else timedelta.max

    @property
    def message(self) -> str:
        who, what = ", ".join(self.need.tables), f"version {self.need.version} of"
        if self.is_gone:
            return (
                f"{who} needed {what} {self.need.source}, which is gone ({self.why}): "
                "the next refresh starts over"
            )
        return (
            f"whether {what} {self.need.source}, which {who} need, is kept is unknown: {self.why}"
        )

    @property
    def facts(self) -> dict[str, object]:
        return {
            "source": self.need.source,
            "version": self.need.version,
            "is_gone": self.is_gone,
            "why": self.why,
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
) -> tuple[Risk | Lost, ...]:
    """The versions still needed that VACUUM or log clean-up may remove, or that are gone."""
    at = now or datetime.now(UTC)
    wanted = tuple(needed_versions(workspace.catalog) if needs is None else needs)
    # Places of their own: that much is read for it, says nothing of where a source stands.
    asked = {
        i: Question(f"retention of {need.location}", partial(_looked_up, workspace, need, at))
        for i, need in enumerate(wanted)
    }
    answers = workspace.ask(asked)
    found = (answers.get(i, (Lost(need, False, _SILENT),)) for i, need in enumerate(wanted))
    return tuple(risk for risks in found for risk in risks)


def _looked_up(workspace: Workspace, need: Need, at: datetime) -> tuple[Risk | Lost, ...]:
    try:
        return tuple(_risks(workspace, need, at))
    except HistoryLost as error:
        return (Lost(need, workspace.log(need.location).is_local, error.primary),)
    except RunnelError as error:
        return (Lost(need, False, error.primary),)


def _oldest(needs: list[Need]) -> Need:
    version = min(need.version for need in needs)
    names = {name for need in needs if need.version == version for name in need.tables}
    return replace(needs[0], version=version, tables=tuple(sorted(names)))


def since_needed(workspace: Workspace, need: Need) -> datetime | None:
    """When what is needed was first put aside; nothing is needed of a table that was replaced."""
    log = workspace.log(need.location)
    if log.table_id(log.latest_version()) != need.identity:
        return None
    return needed_since(log, need.version)


def _risks(workspace: Workspace, need: Need, now: datetime) -> Iterator[Risk | Lost]:
    since = since_needed(workspace, need)
    if since is None:
        return
    log = workspace.log(need.location)
    if (why := lost_since(log, need.identity, need.version)) is not None:
        yield Lost(need, True, why)
        return
    promise = retention_of(log)
    for by, kept in (("VACUUM", promise.files), ("log clean-up", promise.log)):
        left = since + kept - now
        if left <= (1 - _NEAR) * kept:
            yield Risk(need, by, since, kept, left)
