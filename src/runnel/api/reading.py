"""The verbs that read: tables, snapshots, and how everything stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import overload

from runnel.api.opened import OpenLake, interruptible, name_of
from runnel.compile.reads import Mention
from runnel.errors import UserError, never_filled
from runnel.lake.frames import DataFrame
from runnel.lake.session import query_settings
from runnel.model.alerts import Alert, AlertKind
from runnel.model.diamonds import DiamondMember
from runnel.model.graph import Graph
from runnel.model.names import TableName
from runnel.model.refresh import RefreshMode
from runnel.model.results import CycleStatus, Explanation, HistoryEntry, TableStatus
from runnel.model.stats import TableStats
from runnel.model.tabular import Rows
from runnel.refresh.dialects import worded
from runnel.refresh.explain import explain_query, explain_table
from runnel.refresh.newest import newest_rows
from runnel.refresh.recovery import catch_up
from runnel.refresh.snapshot import Snapshot, open_snapshot
from runnel.schedule import diamonds, seeing
from runnel.schedule.alerting import C
from runnel.schedule.running import freshen

Window = str | float | timedelta | None


class Reading(OpenLake):
    """What a lake can be asked."""

    def table(self, name: str | TableName, *, epoch: int | None = None) -> DataFrame:
        """A stream table's contents (or a base table's), at the newest or an older epoch."""
        target = name_of(name)
        if epoch is None:
            freshen(self._workspace, self._keeper, [Mention(target, is_free=False)])
        table = self._workspace.catalog.find(target.key)
        if table is None:
            self._keeper.sync()
            return self._workspace.spark.table(target.sql)
        table = catch_up(self._workspace, table)
        if table.epoch == 0:
            raise never_filled(str(table.name))
        if epoch is None:
            return newest_rows(self._workspace, table)
        if epoch > table.epoch:
            raise UserError(f"{table.name} has no epoch {epoch} yet; its newest is {table.epoch}")
        return self._workspace.trace(table).readout(self._workspace.spark, epoch)

    @interruptible
    def snapshot(
        self, names: Sequence[str | TableName], *, at: datetime | str | None = None
    ) -> Snapshot:
        """Several tables at one data timestamp, the newest common one or an older one.

        Use it in a `with` block: as long as it is open, what it reads is not compacted.
        """
        wanted = [name_of(name) for name in names]
        if at is None:
            mentions = [Mention(name, is_free=False) for name in wanted]
            freshen(self._workspace, self._keeper, mentions)
        return open_snapshot(self._workspace, wanted, at)

    @overload
    def status(self, name: str | TableName) -> TableStatus: ...
    @overload
    def status(self, name: None = None) -> Rows[TableStatus]: ...
    def status(self, name: str | TableName | None = None) -> TableStatus | Rows[TableStatus]:
        """How every table stands, or one."""
        if name is None:
            return seeing.status(self._workspace.catalog, self.settings)
        return self._status(self._find(name).name)

    def history(self, name: str | TableName | None = None, limit: int = 20) -> Rows[HistoryEntry]:
        """Refresh attempts, newest first."""
        key = self._find(name).name.key if name is not None else None
        return seeing.history(self._workspace.catalog, key, limit)

    @overload
    def stats(self, name: str | TableName, *, window: Window = "1d") -> TableStats: ...
    @overload
    def stats(self, name: None = None, *, window: Window = "1d") -> Rows[TableStats]: ...
    def stats(
        self, name: str | TableName | None = None, *, window: Window = "1d"
    ) -> TableStats | Rows[TableStats]:
        """Totals, durations, errors and lag over the last `window` (None: all that is known)."""
        catalog, settings = self._workspace.catalog, self._workspace.settings
        if name is None:
            return seeing.stats(catalog, settings, None, window)
        return seeing.stats(catalog, settings, self._find(name).name.key, window)[0]

    def alerts(
        self,
        name: str | TableName | None = None,
        kind: str | AlertKind | None = None,
        limit: int = 50,
        *,
        lasting: bool = False,
    ) -> Rows[Alert]:
        """Alerts, newest first; with `lasting` only those whose condition is not over."""
        wanted = name_of(name) if name is not None else None
        chosen = AlertKind.parse(kind) if kind is not None else None
        return seeing.alerts(self._workspace.catalog, wanted, chosen, limit, lasting=lasting)

    def on_alert(self, callback: C) -> C:
        """Have a function called with each alert of this process; can be used as a decorator."""
        return self._book.subscribe(callback)

    def graph(self) -> Graph:
        """Who reads whom."""
        return seeing.graph(self._workspace.catalog)

    def diamond_groups(self) -> Rows[DiamondMember]:
        """Tables that meet again further down: who is in which group, and which are atomic."""
        return diamonds.diamond_groups(self._workspace.catalog, self._workspace.settings)

    def scc_status(self) -> Rows[CycleStatus]:
        """Tables that read each other in a cycle, and how finding their rows ended."""
        return seeing.cycles(self._workspace.catalog)

    @interruptible
    def explain(
        self, name: str | TableName | None = None, *, query: str | None = None,
        refresh_mode: str | RefreshMode = RefreshMode.AUTO, dialect: str = "spark",
    ) -> Explanation:  # fmt: skip
        """How a table is, or a query would be, kept up to date."""
        if name is not None:
            self._keeper.sync()
            table = self._find(name)
            found = explain_table(self._workspace, table)
            return replace(found, translation=table.query if "dialect" in table.options else "")
        if query is None:
            raise UserError("explain needs a table's name or query=")
        self._keeper.ready()
        mode = RefreshMode.parse(refresh_mode)
        wording = worded(self._workspace, query, dialect, query_settings(self._workspace.spark))
        found = explain_query(self._workspace, wording.settings, wording.query, mode)
        return replace(found, translation=wording.translation)
