"""The verbs that define: create, alter, suspend, drop."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from runnel.api.opened import OpenLake, interruptible, name_of
from runnel.catalog import StreamTable
from runnel.catalog.records import TableFields, with_options
from runnel.errors import UserError
from runnel.lake.functions import described
from runnel.lake.session import query_settings
from runnel.model.alerts import AlertKind
from runnel.model.diamonds import DiamondConsistency
from runnel.model.names import TableName
from runnel.model.refresh import RefreshMode, TableState
from runnel.model.results import TableStatus
from runnel.model.schedule import Schedule
from runnel.model.tabular import Rows
from runnel.refresh.definition import Definition, define, plain_layout
from runnel.refresh.dialects import worded
from runnel.refresh.explain import warn_of_cost
from runnel.refresh.functions import adopt_function
from runnel.refresh.lifecycle import drop_tables
from runnel.refresh.modes import check_mode, check_query
from runnel.refresh.parts import family_of
from runnel.refresh.storage import fresh_incarnation
from runnel.schedule.cycles import (
    RESUMED,
    define_together,
    goes_round,
    resume_hidden,
    resumed,
    set_mode,
    suspend_parts,
    to_drop,
)
from runnel.schedule.families import put_in_place
from runnel.schedule.order import check_no_cycle

_UNSET: Any = object()
_DIAMONDS = "diamond_consistency"


class Defining(OpenLake):
    """What a lake can be asked to keep."""

    @interruptible
    def create_stream_table(
        self,
        name: str | TableName,
        query: str,
        *,
        schedule: str | None = None,
        refresh_mode: str | RefreshMode = RefreshMode.AUTO,
        comment: str | None = None,
        initialize: bool = True,
        or_replace: bool = False,
        if_not_exists: bool = False,
        dialect: str = "spark",
        diamond_consistency: str | None = None,
    ) -> TableStatus:
        """Define a stream table and fill it."""
        target = name_of(name)
        existing = self._workspace.catalog.find(target.key)
        if existing is not None and if_not_exists:
            return self._status(target)
        mode = RefreshMode.parse(refresh_mode)
        asked = _asked_of_diamonds(diamond_consistency)
        self._keeper.ready()
        table = self._draft(target, query, mode, schedule, dialect, comment)
        table = replace(table, options={**table.options, **asked})
        if existing is not None and or_replace:
            table = replace(table, id=existing.id, created_at=existing.created_at)
        if (existing is None or or_replace) and self._goes_round(table):
            return self._together([table], initialize)[0]
        definition = self._define(target, table.query, mode, table.settings)
        table = definition.put_into(table)
        old = existing if or_replace else None
        self._put_in_place(table, definition, old, initialize)
        if old is not None:
            self._tell_redefined(target)
        # Now, not with the next call: the name is for queries of the session itself too.
        self._keeper.sync()
        return self._status(target)

    @interruptible
    def create_stream_tables(
        self,
        queries: Mapping[str, str],
        *,
        schedule: str | None = None,
        refresh_mode: str | RefreshMode = RefreshMode.AUTO,
        initialize: bool = True,
        dialect: str = "spark",
        diamond_consistency: str | None = None,
    ) -> Rows[TableStatus]:
        """Define several stream tables, all or none of them; they may read each other.

        In a cycle only with the setting `allow_circular`. What is asked is asked of each of them.
        """
        if not queries:
            raise UserError("create_stream_tables needs at least one name and query")
        mode = RefreshMode.parse(refresh_mode)
        asked = _asked_of_diamonds(diamond_consistency)
        self._keeper.ready()
        drafts = [
            self._draft(name_of(name), query, mode, schedule, dialect)
            for name, query in queries.items()
        ]
        drafts = [replace(draft, options={**draft.options, **asked}) for draft in drafts]
        return self._together(drafts, initialize)

    @interruptible
    def alter_stream_table(
        self,
        name: str | TableName,
        *,
        schedule: str | None = _UNSET,
        refresh_mode: str | RefreshMode | None = None,
        comment: str | None = _UNSET,
        status: str | TableState | None = None,
        query: str | None = None,
        dialect: str | None = None,
        diamond_consistency: str | None = _UNSET,
    ) -> TableStatus:
        """Change a definition; only a new query recomputes anything.

        `dialect` is the new query's; without it, that of the old one.
        """
        table = self._find(name)
        changes: dict[str, Any] = {}
        if schedule is not _UNSET:
            changes["schedule"] = self._schedule(schedule)
        if comment is not _UNSET:
            changes["comment"] = comment
        if diamond_consistency is not _UNSET:
            # Only what is asked for: someone else may change another one at the same time.
            changes["options"] = {_DIAMONDS: None, **_asked_of_diamonds(diamond_consistency)}
        if status is not None:
            changes |= _with_status(status, table)
        mode = RefreshMode.parse(refresh_mode) if refresh_mode is not None else table.mode
        check_mode(mode, changes.get("schedule", table.schedule))
        if query is not None:
            self._keeper.ready()
            spoken = dialect or table.options.get("dialect", "spark")
            options = with_options(table.options, changes.get("options", {}))
            wanted = replace(table, **{**changes, "mode": mode, "options": options})
            self._alter_query(wanted, table, query, spoken)
            self._keeper.sync()
            self._tell_state(table, changes)
            return self._status(table.name)
        if refresh_mode is not None:
            check_query(mode, table)
            set_mode(self._workspace, table, mode)
        self._workspace.catalog.update_table(table.id, **changes)
        if changes.get("state", TableState.SUSPENDED) is not TableState.SUSPENDED:
            resume_hidden(self._workspace, table)
        elif "state" in changes:
            suspend_parts(self._workspace, table)
        self._tell_state(table, changes)
        return self._status(table.name)

    def suspend(self, name: str | TableName) -> TableStatus:
        """Leave a table out of refreshes; it keeps serving its last contents."""
        return self.alter_stream_table(name, status=TableState.SUSPENDED)

    def resume(self, name: str | TableName) -> TableStatus:
        """End a suspension; earlier errors are forgotten, and with them the wait they caused."""
        return self.alter_stream_table(name, status=TableState.ACTIVE)

    @interruptible
    def drop_stream_table(
        self, name: str | TableName, *, cascade: bool = False, if_exists: bool = False
    ) -> tuple[str, ...]:
        """Remove a stream table and what it stored; with `cascade` also all that read it."""
        target = name_of(name)
        if if_exists and self._workspace.catalog.find(target.key) is None:
            return ()
        table = self._find(target)
        doomed = to_drop(self._workspace.catalog.tables(), table, cascade)
        drop_tables(self._workspace, doomed)
        seen = [t.name for t in doomed if not t.is_hidden]
        self._keeper.retract(seen)
        return tuple(map(str, seen))

    def register_function(
        self, name: str, function: Callable[..., Any] | None = None, returns: str | None = None,
        *, deterministic: bool = False, aggregate: bool | None = None,
    ) -> None:  # fmt: skip
        """Let queries call a Python function, a pyspark UDF, or one that Spark has by this name.

        `deterministic`: it gives the same whenever it is asked with the same arguments, so that
        tables which call it can be kept differentially. An `aggregate` takes a group's values.
        When it does something else than it last did, the tables that call it start over.
        """
        own = described(name, function, returns, deterministic, aggregate)
        adopt_function(self._workspace, own)

    # -- inside ---------------------------------------------------------------------------------

    def _draft(
        self, name: TableName, query: str, mode: RefreshMode, schedule: str | None, dialect: str,
        comment: str | None = None,
    ) -> StreamTable:  # fmt: skip
        """A table as it is asked for; what its query gives is not known yet."""
        when = self._schedule(schedule)
        check_mode(mode, when)
        wording = worded(self._workspace, query, dialect, query_settings(self._workspace.spark))
        now = datetime.now(UTC)
        return StreamTable(
            id=uuid.uuid4().hex, name=name, query=wording.query, mode=mode, schedule=when,
            state=TableState.ACTIVE, comment=comment, incarnation=uuid.uuid4().hex,
            layout=plain_layout(()), settings=wording.settings, not_differential=None, sources=(),
            frontier=None, epoch=0, since=0, trace_version=-1, reinitialize=None,
            consecutive_errors=0, last_error=None, options=wording.options,
            created_at=now, altered_at=now,
        )  # fmt: skip

    def _goes_round(self, table: StreamTable) -> bool:
        self._workspace.note_views(table)
        return goes_round(self._workspace, table)

    def _together(self, drafts: Sequence[StreamTable], fill: bool) -> Rows[TableStatus]:
        for draft in drafts:
            self._workspace.note_views(draft)
        define_together(self._workspace, drafts, fill)
        self._keeper.sync()
        return Rows([self._status(d.name) for d in drafts], TableStatus.COLUMNS)

    def _define(
        self, name: TableName, query: str, mode: RefreshMode, settings: dict[str, str]
    ) -> Definition:
        with self._workspace.worker(settings, adaptive=True) as spark:
            definition = define(self._workspace, spark, query)
        if mode.is_strict and definition.refusal is not None:
            raise definition.refusal
        check_no_cycle(self._workspace.catalog.tables(), name.key, definition.sources)
        if mode is not RefreshMode.FULL:
            warn_of_cost(name, definition)
        return definition

    def _schedule(self, text: str | None) -> Schedule | None:
        return None if text is None else Schedule.parse(text, self.settings.min_schedule)

    def _put_in_place(
        self, table: StreamTable, definition: Definition, old: StreamTable | None, fill: bool
    ) -> None:
        self._workspace.note_views(table)
        with self._workspace.worker(table.settings, adaptive=True) as spark:
            family = family_of(self._workspace, spark, table, definition)
        put_in_place(self._workspace, family, old, fill)

    def _alter_query(self, wanted: StreamTable, old: StreamTable, query: str, dialect: str) -> None:
        wording = worded(self._workspace, query, dialect, query_settings(self._workspace.spark))
        new = replace(
            fresh_incarnation(wanted), query=wording.query, settings=wording.settings,
            options={**wording.options, **_kept(wanted.options)}, resolution=None,
            altered_at=datetime.now(UTC),
        )  # fmt: skip
        if self._goes_round(new):
            self._together([new], old.epoch > 0)
            self._tell_redefined(old.name)
            return
        definition = self._define(old.name, wording.query, wanted.mode, wording.settings)
        self._put_in_place(definition.put_into(new), definition, old, old.epoch > 0)
        self._tell_redefined(old.name)

    def _tell_redefined(self, name: TableName) -> None:
        self._book.emit(AlertKind.REINITIALIZED, name, "was defined anew")

    def _tell_state(self, table: StreamTable, changes: dict[str, Any]) -> None:
        if changes.get("state", table.state) == table.state:
            return
        if changes["state"] is TableState.SUSPENDED:
            self._book.emit(AlertKind.SUSPENDED, table.name, "was suspended by hand")
        else:
            self._book.emit(AlertKind.RESUMED, table.name, RESUMED)


def _asked_of_diamonds(consistency: str | None) -> dict[str, str]:
    """The option of a table; without one the setting decides."""
    if consistency is None:
        return {}
    return {_DIAMONDS: DiamondConsistency.parse(consistency).value}


def _kept(options: dict[str, str]) -> dict[str, str]:
    """The options that a new query does not touch."""
    return {name: value for name, value in options.items() if name == _DIAMONDS}


def _with_status(status: str | TableState, table: StreamTable) -> TableFields:
    wanted = status.upper()
    if wanted == "SUSPENDED":
        return {"state": TableState.SUSPENDED}
    if wanted == "ACTIVE":
        return resumed(table)
    raise UserError(f"{status!r} is not a status", detail="expected ACTIVE or SUSPENDED")
