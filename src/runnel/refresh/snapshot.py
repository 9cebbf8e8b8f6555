"""Several tables read at one instant, whatever is refreshed or compacted meanwhile."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime

from runnel.catalog import StreamTable, holding
from runnel.compile.sources import redirect
from runnel.errors import NotFound, SourceError, UserError
from runnel.lake.frames import DataFrame, SparkSession
from runnel.lake.log import DeltaLog
from runnel.lake.names import locate
from runnel.lake.reading import read_version
from runnel.lake.session import translate
from runnel.model.closing import Closing
from runnel.model.frontier import Pin
from runnel.model.names import TableName
from runnel.refresh.instants import Past, State, instant
from runnel.refresh.recovery import catch_up
from runnel.refresh.workspace import Workspace


@dataclass(frozen=True, slots=True)
class _BaseTable:
    log: DeltaLog
    version: int


class Snapshot(Closing):
    """Tables at one data timestamp; what it reads is kept until it is closed."""

    def __init__(
        self, workspace: Workspace, states: Mapping[str, State], base: Mapping[str, _BaseTable]
    ) -> None:
        self._workspace = workspace
        self._states = states
        self._base = base
        self._prefix = f"rn_snapshot_{uuid.uuid4().hex[:12]}"
        self._views: dict[str, str] = {}
        self._open = ExitStack()
        epochs = {key: (state.table, state.epoch) for key, state in states.items()}
        self._open.enter_context(holding(workspace.catalog, workspace.leases, epochs))

    @property
    def data_timestamp(self) -> datetime | None:
        """How old the oldest of its tables is; None when it has only base tables."""
        return min((state.at for state in self._states.values()), default=None)

    @property
    def epochs(self) -> dict[str, int]:
        """The epoch of each stream table."""
        return {str(state.table.name): state.epoch for state in self._states.values()}

    def table(self, name: str | TableName) -> DataFrame:
        """The contents of one of its tables."""
        wanted = name if isinstance(name, TableName) else TableName.parse(name)
        spark = self._spark()
        if (state := self._states.get(wanted.key)) is not None:
            trace = self._workspace.trace(state.table)
            return trace.past_readout(spark, state.epoch)
        if (base := self._base.get(wanted.key)) is not None:
            return read_version(spark, base.log, base.version)
        raise UserError(
            f"{wanted} is not in this snapshot",
            detail=f"it has {', '.join(self.epochs)}",
            hint="name every table that is to be read when opening it",
        )

    def sql(self, text: str) -> DataFrame:
        """A query that reads nothing but its tables."""
        query = redirect(text, self._view)
        try:
            return self._spark().sql(query)
        except Exception as error:
            raise translate(error) from error

    def close(self) -> None:
        """Let go of what it kept; frames that were made go on as long as the files stay."""
        views, self._views = self._views, {}
        for view in views.values():
            self._workspace.spark.catalog.dropTempView(view)
        self._open.close()
        self._states, self._base = {}, {}

    def _spark(self) -> SparkSession:
        if not self._states and not self._base:
            raise UserError("the snapshot is closed", hint="read inside of its with block")
        return self._workspace.spark

    def _view(self, name: TableName) -> str:
        if name.key not in self._views:
            view = f"{self._prefix}_{len(self._views)}"
            self.table(name).createOrReplaceTempView(view)
            self._views[name.key] = view
        return self._views[name.key]


def open_snapshot(
    workspace: Workspace, names: Sequence[TableName], at: datetime | str | None
) -> Snapshot:
    """Choose the newest common instant (up to `at`) and keep it from being compacted."""
    if not names:
        raise UserError("a snapshot needs the names of its tables")
    found = {name.key: workspace.catalog.find(name.key) for name in names}
    streams = [catch_up(workspace, table) for table in found.values() if table is not None]
    past = Past(workspace.catalog, lambda table, epoch: is_readable(workspace, table, epoch))
    moment = instant(at)
    others = [name for name in names if found[name.key] is None]
    states = past.common([table.name.key for table in streams], moment, others)
    base = {name.key: _base_table(workspace, name, states, moment) for name in others}
    return Snapshot(workspace, states, base)


def is_readable(workspace: Workspace, table: StreamTable, epoch: int) -> bool:
    return workspace.trace(table).is_readable(epoch)


def _base_table(
    workspace: Workspace, name: TableName, states: Mapping[str, State], at: datetime | None
) -> _BaseTable:
    """A base table as the stream tables saw it; as of `at`, or now, when none of them reads it."""
    location = locate(workspace.spark, name)
    if location is None:
        raise NotFound(f"there is no table {name}")
    log = workspace.log(workspace.relative(location))
    latest = log.latest_version()
    for state in states.values():
        if (pin := (state.base or {}).get(name.key)) is not None:
            if not _holds(log, pin):
                raise _replaced(name, state.table)
            return _BaseTable(log, pin.version)
    while at is not None and latest > 0 and log.timestamp(latest) > at.timestamp() * 1000:
        latest -= 1
    return _BaseTable(log, latest)


def _holds(log: DeltaLog, pin: Pin) -> bool:
    """Whether a table still has what was read of it; REPLACE TABLE leaves that in the log."""
    try:
        return log.table_id(pin.version) == pin.identity
    except SourceError:
        return False


def _replaced(name: TableName, reader: StreamTable) -> UserError:
    return UserError(
        f"{name} is not the table any more that {reader.name} has read",
        detail="it was dropped and created again, or its log was cleaned up",
        hint="refresh them in one pass, lake.refresh(), or leave one of them out",
    )
