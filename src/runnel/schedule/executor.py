"""One start of the scheduler carried out on a real lake: a unit brought to the pass's pins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runnel.catalog import StreamTable
from runnel.errors import Abandoned, Busy, NotFound, RunnelError, SparkEnded
from runnel.lake.session import translate
from runnel.model.refresh import RefreshAction, TableState
from runnel.model.results import RefreshResult
from runnel.refresh.attempt import refresh_table
from runnel.refresh.compaction import tidy_when_due
from runnel.refresh.group import refresh_group
from runnel.refresh.pins import Pins
from runnel.refresh.recording import note_failure
from runnel.refresh.workspace import Workspace
from runnel.schedule.lake_book import LakeSnapshot
from runnel.schedule.renew import renew_views
from runnel.schedule.views import Ending, Finished, Start

Together = Callable[[Workspace, Sequence[StreamTable], Pins], Sequence[RefreshResult]]


class _Overtaken(Exception):
    """The table is not what it was when the pass began."""


class _Failed(Exception):
    """A table of a unit failed."""

    def __init__(self, key: str, error: RunnelError) -> None:
        super().__init__(str(error))
        self.key = key
        self.error = error


def refresh_together(
    workspace: Workspace, tables: Sequence[StreamTable], pins: Pins
) -> Sequence[RefreshResult]:
    """Refresh an atomic group: all members or none."""
    results = refresh_group(workspace, [table.id for table in tables], pins, wait=0.0)
    return [results[table.name.key] for table in tables]


@dataclass(frozen=True, slots=True)
class LakeExecutor:
    """Called from several threads at once; `together` refreshes units of several tables."""

    workspace: Workspace
    together: Together = refresh_together

    def __call__(self, start: Start) -> Finished:
        try:
            return Finished(start, Ending.DONE, self._refresh(start))
        except Busy:
            return Finished(start, Ending.BUSY)
        except Abandoned:
            return Finished(start, Ending.ABANDONED)
        except (_Overtaken, NotFound):
            return Finished(start, Ending.OVERTAKEN)
        except _Failed as failure:
            return self._failed(start, failure.error, failure.key)
        except Exception as error:
            return self._failed(start, translate(error), start.unit.members[0])

    def tidy(self, event: Finished) -> None:
        """Compact what was refreshed, where it pays: after its end is told, under its lease."""
        for key, result in zip(event.start.unit.members, event.results, strict=False):
            table = self.workspace.catalog.find(key)
            if table is not None and result.action is not RefreshAction.NO_DATA:
                tidy_when_due(self.workspace, table.id)

    def _refresh(self, start: Start) -> tuple[RefreshResult, ...]:
        snapshot = start.snapshot
        assert isinstance(snapshot, LakeSnapshot)
        tables = [self._found(key) for key in start.unit.members]
        self._require_same_definitions(tables, snapshot.shared)
        _require_same_instant(tables, snapshot.shared)
        if len(tables) == 1:
            return (self._one(tables[0], snapshot.shared),)
        try:
            results = self.together(self.workspace, tables, snapshot.shared)
        except (Busy, Abandoned, NotFound):
            raise
        except RunnelError as error:
            raise _Failed(self._blamed(tables), error) from error
        for table, result in zip(tables, results, strict=True):
            self._settle(table, result, snapshot.shared)
        return tuple(results)

    def _blamed(self, tables: Sequence[StreamTable]) -> str:
        """The member whose error was counted; its count is what suspends the unit."""
        after = [found for t in tables if (found := self.workspace.catalog.get(t.id)) is not None]
        return max(after or tables, key=lambda t: t.consecutive_errors).name.key

    def _one(self, table: StreamTable, pins: Pins) -> RefreshResult:
        key = table.name.key
        try:
            frontier = pins.frontier(table.sources)
        except RunnelError as error:
            raise _Failed(key, note_failure(self.workspace, table, error)) from error
        try:
            result = refresh_table(self.workspace, table.id, frontier, wait=0.0, near=pins.near)
        except (Busy, Abandoned, NotFound):
            raise
        except RunnelError as error:
            raise _Failed(key, error) from error
        self._settle(table, result, pins)
        return result

    def _settle(self, table: StreamTable, result: RefreshResult, pins: Pins) -> None:
        """Fix for the consumers of this pass where the table stands."""
        after = self.workspace.catalog.get(table.id)
        if result.action is RefreshAction.SKIP or after is None:
            raise _Overtaken
        if after.state is not TableState.UNINITIALIZED:
            epoch = result.epoch if result.epoch is not None else after.epoch
            pins.set_epoch(table.name.key, after.incarnation, epoch)

    def _require_same_definitions(self, tables: Sequence[StreamTable], pins: Pins) -> None:
        """What was redefined may read from other places, which belong to another pass."""
        now = {table.name.key: table for table in tables}
        for key, error in renew_views(self.workspace, now, None, pins, wait=0.0).items():
            # It has been recorded there.
            raise error if isinstance(error, Busy) else _Failed(key, error)
        if any(_places(now[table.name.key]) != _places(table) for table in tables):
            raise _Overtaken

    def _failed(self, start: Start, error: RunnelError, key: str) -> Finished:
        """No table is to blame when Spark has ended, whatever the error says."""
        end = error if isinstance(error, SparkEnded) else self.workspace.end_of_spark()
        if end is not None:
            return Finished(start, Ending.LOST, error=str(end), fault=end)
        return Finished(
            start, Ending.FAILED, error=str(error), error_class=error.error_class,
            is_retryable=error.retryable, failed=key,
        )  # fmt: skip

    def _found(self, key: str) -> StreamTable:
        table = self.workspace.catalog.find(key)
        if table is None:
            raise _Overtaken
        return table


def _require_same_instant(tables: Sequence[StreamTable], pins: Pins) -> None:
    """A table that was made to read another one since the pass was formed is of another pass."""
    unit = {table.name.key for table in tables}
    read = {s.key for table in tables for s in table.sources if s.kind == "stream"}
    if not all(pins.has_reached(key) for key in read - unit):
        raise _Overtaken


def _places(table: StreamTable) -> set[tuple[str, str | None]]:
    return {(source.key, source.location) for source in table.sources}
