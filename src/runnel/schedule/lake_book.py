"""The scheduler's book over a real lake: the catalog, and the logs of the base sources."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from runnel.catalog import Progress, QuietMove, Source, StreamTable
from runnel.errors import NotFound, SystemFault
from runnel.model.frontier import Frontier, Pin
from runnel.model.refresh import TableState
from runnel.refresh.near import NearRows
from runnel.refresh.pins import Pins
from runnel.refresh.workspace import Workspace
from runnel.schedule.outlook import view_of
from runnel.schedule.views import Failure, Snapshot, TableView, instant


@dataclass(frozen=True, slots=True)
class LakeSnapshot:
    """The pins of one pass, shared by all its refreshes."""

    shared: Pins
    pins: Mapping[str, Pin]

    @property
    def timestamp(self) -> float:
        return self.shared.data_timestamp.timestamp()


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A time without news: its entry in the history, how often it was prolonged, how far."""

    attempt: int | None
    times: int
    reached: float
    step: float


@dataclass
class LakeBook:
    """Reads definitions when they change, progress when something is due, sources once a pass."""

    workspace: Workspace
    _tables: dict[str, StreamTable] = field(default_factory=dict)
    _progress: dict[str, Progress] = field(default_factory=dict)
    _frontiers: dict[str, tuple[str, Frontier]] = field(default_factory=dict)
    _quiet: dict[str, _Stretch] = field(default_factory=dict)

    def revision(self) -> int:
        return self.workspace.catalog.revision()

    def tables(self) -> dict[str, TableView]:
        found = self.workspace.catalog.tables()
        self._tables = {table.name.key: table for table in found}
        return self.progress({table.name.key: view_of(table) for table in found})

    def progress(self, known: Mapping[str, TableView]) -> dict[str, TableView]:
        by_id = {progress.id: progress for progress in self.workspace.catalog.progress()}
        self._progress = {key: by_id[t.id] for key, t in known.items() if t.id in by_id}
        return {
            key: self._renewed(table, self._progress[key]) if key in self._progress else table
            for key, table in known.items()
        }

    def pin(self, timestamp: float, tables: Collection[TableView]) -> LakeSnapshot:
        shared = Pins(self.workspace, instant(timestamp))
        shared.near = NearRows(self.workspace, shared, [view.key for view in tables])
        sources: dict[str, Source] = {}
        for view in tables:
            for source in self._tables[view.key].sources:
                if source.kind != "stream":
                    sources.setdefault(source.key, source)
        return LakeSnapshot(shared, shared.check(sources.values()))

    def quiet(self, snapshot: Snapshot, tables: Iterable[TableView]) -> Collection[str]:
        assert isinstance(snapshot, LakeSnapshot)
        # Who was dropped since definitions were read has come nowhere.
        views = {table.id: table for table in tables if table.key in self._progress}
        stretches = self._stretches(views.values(), snapshot.timestamp)
        moves = [self._move(table, snapshot, stretches[table.id]) for table in views.values()]
        moved = self.workspace.catalog.record_quiet(moves, self.workspace.leases.owner)
        for table in (views[id_] for id_ in moved):
            self._quiet[table.id] = stretches[table.id]
            snapshot.shared.set_epoch(table.key, table.incarnation, table.epoch)
        return {views[id_].key for id_ in moved}

    def _stretches(self, tables: Iterable[TableView], timestamp: float) -> dict[str, _Stretch]:
        """For each table the quiet time that this move prolongs, or begins."""
        found = {table.id: self._stretch(table, timestamp) for table in tables}
        unnamed = [id_ for id_, s in found.items() if s.times > 1 and s.attempt is None]
        names = self.workspace.catalog.quiet_attempts(unnamed) if unnamed else {}
        return found | {id_: replace(found[id_], attempt=name) for id_, name in names.items()}

    def _stretch(self, table: TableView, timestamp: float) -> _Stretch:
        step = timestamp - (table.timestamp or timestamp)
        last = self._quiet.get(table.id)
        # After a longer pause the lag in between was another: that is not one quiet time.
        if last is None or last.reached != table.timestamp or step > 2 * last.step + 1:
            return _Stretch(None, 1, timestamp, step)
        return _Stretch(last.attempt, last.times + 1, timestamp, step)

    def note_wait(self, table: TableView) -> None:
        # It may have been dropped meanwhile.
        with suppress(NotFound):
            self.workspace.catalog.update_table(table.id, wait_seconds=table.waited)

    def failures(self, table: TableView) -> Sequence[Failure]:
        found = self.workspace.catalog.failures(table.id, table.errors)
        return [Failure(f.at.timestamp(), f.code == SystemFault.code) for f in found]

    def skip(self, table: TableView, reason: str) -> None:
        self.workspace.catalog.record_skip(table.id, self.workspace.leases.owner, reason)

    def hold_off(self, table: TableView, until: float) -> None:
        self.workspace.catalog.update_table(table.id, retry_at=instant(until))

    def suspend(self, table: TableView, reason: str) -> None:
        self.workspace.catalog.update_table(table.id, state=TableState.SUSPENDED, retry_at=None)

    @property
    def definitions(self) -> tuple[StreamTable, ...]:
        """All tables as they were when definitions were last read."""
        return tuple(self._tables.values())

    def _move(self, table: TableView, snapshot: LakeSnapshot, stretch: _Stretch) -> QuietMove:
        frontier = Frontier(dict(table.pins), snapshot.shared.data_timestamp)
        known = self._progress[table.key]
        return QuietMove(table.id, known, frontier, stretch.attempt, stretch.times)

    def _renewed(self, table: TableView, progress: Progress) -> TableView:
        frontier = self._frontier(table.key, progress.frontier)
        known = self._tables[table.key]
        is_restless = known.follows_time or known.new_view is not None
        return replace(
            table,
            state=progress.state,
            incarnation=progress.incarnation,
            epoch=progress.epoch,
            timestamp=frontier.data_timestamp.timestamp() if frontier else None,
            pins=frontier.pins if frontier else {},
            is_restless=frontier is None or is_restless or progress.reinitialize is not None,
            reinitialize=progress.reinitialize,
            errors=progress.consecutive_errors,
            retry_at=progress.retry_at.timestamp() if progress.retry_at else None,
            seconds=progress.work_seconds,
            waited=progress.wait_seconds,
        )

    def _frontier(self, key: str, text: str | None) -> Frontier | None:
        """Parsed only when it is another one."""
        if text is None:
            return None
        known = self._frontiers.get(key)
        if known is None or known[0] != text:
            known = self._frontiers[key] = (text, Frontier.from_json(json.loads(text)))
        return known[1]
