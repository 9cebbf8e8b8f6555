"""The verbs: connect, create, alter, drop, refresh, verify ... Each delegates to its room."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from threading import Event
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from runnel import sql as statements
from runnel.catalog import Definitions, Leases, Owner, StreamTable, open_catalog
from runnel.compile.reads import Mention
from runnel.errors import RunnelError, SystemFault, UserError
from runnel.lake.frames import DataFrame, SparkSession
from runnel.lake.functions import described
from runnel.lake.interrupts import cancelling
from runnel.lake.session import query_settings
from runnel.model.alerts import Alert, AlertKind
from runnel.model.closing import Closing
from runnel.model.diamonds import DiamondConsistency, DiamondMember
from runnel.model.functions import OwnFunction
from runnel.model.graph import Graph
from runnel.model.names import TableName
from runnel.model.refresh import RefreshMode, TableState
from runnel.model.results import (
    CompactResult,
    CycleStatus,
    Explanation,
    HistoryEntry,
    RefreshResult,
    TableStatus,
    VerifyResult,
)
from runnel.model.schedule import Schedule
from runnel.model.settings import Settings
from runnel.model.startup import run_startup
from runnel.model.stats import TableStats
from runnel.model.tabular import Rows
from runnel.refresh.compaction import compact_table
from runnel.refresh.definition import Definition, define, plain_layout
from runnel.refresh.dialects import worded
from runnel.refresh.explain import explain_query, explain_table
from runnel.refresh.keeper import SessionKeeper
from runnel.refresh.lifecycle import (
    create_table,
    drop_tables,
    fresh_incarnation,
    redefine_table,
)
from runnel.refresh.modes import check_mode, check_query
from runnel.refresh.recovery import catch_up
from runnel.refresh.snapshot import Snapshot, open_snapshot
from runnel.refresh.verify import verify_table
from runnel.refresh.workspace import Workspace
from runnel.schedule import diamonds, seeing
from runnel.schedule.alerting import AlertBook, C
from runnel.schedule.cycles import define_together, goes_round, set_mode, to_drop
from runnel.schedule.loop import Onlooker
from runnel.schedule.order import check_no_cycle, refresh_order
from runnel.schedule.passes import Notice, bring_up, refresh_pass
from runnel.schedule.run import run_lake
from runnel.schedule.running import freshen, run_statement, write_table

_UNSET: Any = object()

Window = str | float | timedelta | None

P = ParamSpec("P")
R = TypeVar("R")


def connect(
    path: str | Path | None = None,
    *,
    spark: SparkSession | None = None,
    catalog: str | None = None,
    spark_conf: dict[str, str] | None = None,
    **settings: Any,
) -> Lake:
    """Open a lake folder, creating it when it is new.

    `spark` is a session of your own (else one is started when needed); `catalog` a database URL
    (else SQLite inside the folder); every other keyword is a setting.
    """
    if path is None:
        raise UserError(
            "connect needs a folder", hint='runnel.connect("my_lake"), or path= beside spark='
        )
    folder = Path(path).expanduser().resolve()
    _make_folder(folder / "_runnel")
    chosen = Settings.load(folder, settings)
    url = catalog or f"sqlite:///{folder / '_runnel' / 'catalog.db'}"
    writer = open_catalog(url)
    writer.copy_definitions(Definitions(folder / "_runnel" / "definitions"))
    leases = Leases(writer.engine, Owner.current(), ttl=chosen.lease_seconds)
    writer.close_interrupted(leases.is_alive)
    functions: dict[str, OwnFunction] = {}
    keeper = SessionKeeper(folder, writer, spark, spark_conf, functions)
    book = AlertBook(writer, chosen, str(folder))
    workspace = Workspace(
        folder, writer, leases, chosen, keeper.open, lambda: keeper.present,
        alerts=book, renew_names=keeper.sync_if_open, functions=functions,
    )  # fmt: skip
    lake = Lake(workspace, keeper, book)
    if chosen.startup:
        run_startup(chosen.startup, lake)
    return lake


def _interruptible(verb: Callable[Concatenate[Lake, P], R]) -> Callable[Concatenate[Lake, P], R]:
    """After Ctrl-C nothing that the verb began goes on, and the session can be used again."""

    @wraps(verb)
    def run(lake: Lake, /, *arguments: P.args, **options: P.kwargs) -> R:
        with cancelling(lambda: lake._keeper.opened):
            return verb(lake, *arguments, **options)

    return run


class Lake(Closing):
    """A folder of Delta tables and the stream tables over them."""

    def __init__(self, workspace: Workspace, keeper: SessionKeeper, book: AlertBook) -> None:
        self._workspace = workspace
        self._keeper = keeper
        self._book = book

    def close(self) -> None:
        """Stop the embedded Spark session, if this lake started one."""
        self._workspace.forget_sessions()
        self._keeper.close()
        self._book.close()
        self._workspace.catalog.close()

    @property
    def spark(self) -> SparkSession:
        """The SparkSession."""
        return self._workspace.spark

    @property
    def settings(self) -> Settings:
        return self._workspace.settings

    # -- defining -------------------------------------------------------------------------------

    @_interruptible
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
        target = _name(name)
        existing = self._workspace.catalog.find(target.key)
        if existing is not None and if_not_exists:
            return self.status(target)
        mode = RefreshMode.parse(refresh_mode)
        asked = _asked_of_diamonds(diamond_consistency)
        self._keeper.sync()
        table = self._draft(target, query, mode, schedule, dialect, comment)
        table = replace(table, options={**table.options, **asked})
        if existing is not None and or_replace:
            table = replace(table, id=existing.id, created_at=existing.created_at)
        if (existing is None or or_replace) and self._goes_round(table):
            return self._together([table], initialize)[0]
        definition = self._define(target, table.query, mode, table.settings)
        table = definition.put_into(table)
        self._workspace.note_views(table)
        if existing is None or not or_replace:
            lag = table.schedule.seconds if table.schedule is not None else None
            create_table(self._workspace, table, self._pins(definition, initialize, lag))
        else:
            redefine_table(self._workspace, existing, table, self._pins(definition, initialize))
            self._tell_redefined(target)
        # Now, not with the next call: the name is for queries of the session itself too.
        self._keeper.sync()
        return self.status(target)

    @_interruptible
    def create_stream_tables(
        self,
        queries: Mapping[str, str],
        *,
        schedule: str | None = None,
        refresh_mode: str | RefreshMode = RefreshMode.AUTO,
        initialize: bool = True,
        dialect: str = "spark",
    ) -> Rows[TableStatus]:
        """Define several stream tables, all or none of them; they may read each other.

        In a cycle only with the setting `allow_circular`.
        """
        if not queries:
            raise UserError("create_stream_tables needs at least one name and query")
        mode = RefreshMode.parse(refresh_mode)
        self._keeper.sync()
        drafts = [
            self._draft(_name(name), query, mode, schedule, dialect)
            for name, query in queries.items()
        ]
        return self._together(drafts, initialize)

    @_interruptible
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
            others = {k: v for k, v in table.options.items() if k != "diamond_consistency"}
            changes["options"] = {**others, **_asked_of_diamonds(diamond_consistency)}
        if status is not None:
            changes["state"] = _state(status, table)
            if changes["state"] is not TableState.SUSPENDED:
                changes |= {"consecutive_errors": 0, "last_error": None, "retry_at": None}
        mode = RefreshMode.parse(refresh_mode) if refresh_mode is not None else table.mode
        check_mode(mode, changes.get("schedule", table.schedule))
        if query is not None:
            self._keeper.sync()
            spoken = dialect or table.options.get("dialect", "spark")
            self._alter_query(replace(table, **changes, mode=mode), table, query, spoken)
            self._keeper.sync()
            self._tell_state(table, changes)
            return self.status(table.name)
        if refresh_mode is not None:
            check_query(mode, table)
            set_mode(self._workspace, table, mode)
        self._workspace.catalog.update_table(table.id, **changes)
        self._tell_state(table, changes)
        return self.status(table.name)

    def suspend(self, name: str | TableName) -> TableStatus:
        """Leave a table out of refreshes; it keeps serving its last contents."""
        return self.alter_stream_table(name, status=TableState.SUSPENDED)

    def resume(self, name: str | TableName) -> TableStatus:
        """End a suspension; earlier errors are forgotten, and with them the wait they caused."""
        return self.alter_stream_table(name, status=TableState.ACTIVE)

    @_interruptible
    def drop_stream_table(
        self, name: str | TableName, *, cascade: bool = False, if_exists: bool = False
    ) -> tuple[str, ...]:
        """Remove a stream table and what it stored; with `cascade` also all that read it."""
        target = _name(name)
        if if_exists and self._workspace.catalog.find(target.key) is None:
            return ()
        table = self._find(target)
        doomed = to_drop(self._workspace.catalog.tables(), table, cascade)
        drop_tables(self._workspace, doomed)
        seen = [t.name for t in doomed if not t.keeps_cycle]
        self._keeper.retract(seen)
        return tuple(map(str, seen))

    def register_function(
        self, name: str, function: Callable[..., Any] | None = None, returns: str | None = None,
        *, deterministic: bool = False, aggregate: bool | None = None,
    ) -> None:  # fmt: skip
        """Let queries call a Python function, a pyspark UDF, or one that Spark has by this name.

        `deterministic`: it gives the same whenever it is asked with the same arguments, so that
        tables which call it can be kept differentially. An `aggregate` takes a group's values.
        """
        own = described(name, function, returns, deterministic, aggregate)
        self._workspace.add_function(own)

    # -- refreshing -----------------------------------------------------------------------------

    @_interruptible
    def refresh(self, name: str | TableName | None = None, *, notice: Notice | None = None) -> Any:
        """Refresh a table after everything above it; without a name, everything in order.

        Returns a RefreshResult, or Rows of them without a name. `notice` is called with each.
        """
        target = self._find(name) if name is not None else None
        keys = {target.name.key} if target else None
        results = refresh_pass(self._workspace, keys, notice or (lambda result: None))
        self._keeper.sync_if_open()
        if target is not None:
            return results[target.name.key]
        return Rows(results.values(), RefreshResult.COLUMNS)

    def refresh_order(self, name: str | TableName | None = None) -> tuple[str, ...]:
        """The tables that `refresh` with the same argument goes through, in that order."""
        keys = {self._find(name).name.key} if name is not None else None
        tables = {t.name.key: t for t in self._workspace.catalog.tables()}
        default = self._workspace.settings.diamond_consistency
        order = [tables[k] for k in refresh_order(tables.values(), keys, default)]
        return tuple(str(t.name) for t in order if not t.keeps_cycle)

    def run(
        self,
        *,
        once: bool = False,
        workers: int | None = None,
        stop: Event | None = None,
        onlooker: Onlooker | None = None,
    ) -> Rows[RefreshResult]:
        """Keep every table within its schedule, until `stop` is set or Ctrl-C is pressed.

        With `once` refresh what is due now and return what was done. `workers` tables are refreshed
        side by side, by default `max_concurrent_refreshes`.
        """
        return run_lake(
            self._workspace, once=once, workers=workers, stop=stop, onlooker=onlooker,
            notice_names=self._keeper.sync_if_open,
        )  # fmt: skip

    @_interruptible
    def verify(self, name: str | TableName) -> VerifyResult:
        """Compare a table's contents with its query at the pinned source versions."""
        return verify_table(self._workspace, self._find(name))

    @_interruptible
    def compact(self, name: str | TableName) -> CompactResult:
        """Rewrite a table's history that no consumer needs any more into one sorted run."""
        wait = self._workspace.settings.busy_wait_seconds
        return compact_table(self._workspace, self._find(name), wait)

    @_interruptible
    def write(
        self, frame: DataFrame, table: str | TableName, *, mode: str = "append",
        options: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Write a frame to a base table; the IMMEDIATE tables below it follow before it returns."""
        write_table(self._workspace, self._keeper, frame, _name(table), mode, options or {})

    # -- reading --------------------------------------------------------------------------------

    def table(self, name: str | TableName, *, epoch: int | None = None) -> DataFrame:
        """A stream table's contents (or a base table's), at the newest or an older epoch."""
        target = _name(name)
        if epoch is None:
            freshen(self._workspace, self._keeper, [Mention(target, is_free=False)])
        table = self._workspace.catalog.find(target.key)
        if table is None:
            self._keeper.sync()
            return self.spark.table(target.sql)
        table = catch_up(self._workspace, table)
        if table.epoch == 0:
            raise UserError(
                f"{table.name} was never filled", hint=f"REFRESH STREAM TABLE {table.name} first"
            )
        chosen = table.epoch if epoch is None else epoch
        if chosen > table.epoch:
            raise UserError(f"{table.name} has no epoch {chosen} yet; its newest is {table.epoch}")
        return self._workspace.trace(table).readout(self.spark, chosen)

    @_interruptible
    def snapshot(
        self, names: Sequence[str | TableName], *, at: datetime | str | None = None
    ) -> Snapshot:
        """Several tables at one data timestamp, the newest common one or an older one.

        Use it in a `with` block: as long as it is open, what it reads is not compacted.
        """
        return open_snapshot(self._workspace, [_name(name) for name in names], at)

    @_interruptible
    def sql(self, text: str) -> Any:
        """Run a statement: STREAM TABLE statements here, everything else by Spark."""
        statement = statements.parse_statement(text)
        if isinstance(statement, statements.SparkStatement):
            return run_statement(
                self._workspace, self._keeper, statement.text, statement.verb, statement.target
            )
        return self._run(statement)

    @overload
    def status(self, name: str | TableName) -> TableStatus: ...
    @overload
    def status(self, name: None = None) -> Rows[TableStatus]: ...
    def status(self, name: str | TableName | None = None) -> TableStatus | Rows[TableStatus]:
        """How every table stands, or one."""
        if name is None:
            return seeing.status(self._workspace.catalog)
        return seeing.status(self._workspace.catalog, self._find(name).name.key)[0]

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
        if name is None:
            return seeing.stats(self._workspace.catalog, None, window)
        return seeing.stats(self._workspace.catalog, self._find(name).name.key, window)[0]

    def alerts(
        self,
        name: str | TableName | None = None,
        kind: str | AlertKind | None = None,
        limit: int = 50,
        *,
        lasting: bool = False,
    ) -> Rows[Alert]:
        """Alerts, newest first; with `lasting` only those whose condition is not over."""
        wanted = _name(name) if name is not None else None
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

    @_interruptible
    def explain(
        self, name: str | TableName | None = None, *, query: str | None = None,
        refresh_mode: str | RefreshMode = RefreshMode.AUTO, dialect: str = "spark",
    ) -> Explanation:  # fmt: skip
        """How a table is, or a query would be, kept up to date."""
        self._keeper.sync()
        if name is not None:
            table = self._find(name)
            found = explain_table(self._workspace, table)
            return replace(found, translation=table.query if "dialect" in table.options else "")
        if query is None:
            raise UserError("explain needs a table's name or query=")
        mode = RefreshMode.parse(refresh_mode)
        wording = worded(self._workspace, query, dialect, query_settings(self.spark))
        found = explain_query(self._workspace, wording.settings, wording.query, mode)
        return replace(found, translation=wording.translation)

    # -- inside ---------------------------------------------------------------------------------

    def _draft(
        self, name: TableName, query: str, mode: RefreshMode, schedule: str | None, dialect: str,
        comment: str | None = None,
    ) -> StreamTable:  # fmt: skip
        """A table as it is asked for; what its query gives is not known yet."""
        when = self._schedule(schedule)
        check_mode(mode, when)
        wording = worded(self._workspace, query, dialect, query_settings(self.spark))
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
        return goes_round(self._workspace, table.name.key, table.query)

    def _together(self, drafts: Sequence[StreamTable], fill: bool) -> Rows[TableStatus]:
        for draft in drafts:
            self._workspace.note_views(draft)
        define_together(self._workspace, drafts, fill)
        self._keeper.sync()
        return Rows([self.status(d.name) for d in drafts], TableStatus.COLUMNS)

    def _define(
        self, name: TableName, query: str, mode: RefreshMode, settings: dict[str, str]
    ) -> Definition:
        with self._workspace.worker(settings, adaptive=True) as spark:
            definition = define(self._workspace, spark, query)
        if mode.is_strict and definition.refusal is not None:
            raise definition.refusal
        check_no_cycle(self._workspace.catalog.tables(), name.key, definition.sources)
        return definition

    def _schedule(self, text: str | None) -> Schedule | None:
        return None if text is None else Schedule.parse(text, self.settings.min_schedule)

    def _pins(self, definition: Definition, initialize: bool, target: float | None = None) -> Any:
        return bring_up(self._workspace, definition.sources, target) if initialize else None

    def _alter_query(self, wanted: StreamTable, old: StreamTable, query: str, dialect: str) -> None:
        wording = worded(self._workspace, query, dialect, query_settings(self.spark))
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
        new = definition.put_into(new)
        self._workspace.note_views(new)
        redefine_table(self._workspace, old, new, self._pins(definition, old.epoch > 0))
        self._tell_redefined(old.name)

    def _tell_redefined(self, name: TableName) -> None:
        self._book.emit(AlertKind.REINITIALIZED, name, "was defined anew")

    def _tell_state(self, table: StreamTable, changes: dict[str, Any]) -> None:
        if changes.get("state", table.state) == table.state:
            return
        if changes["state"] is TableState.SUSPENDED:
            self._book.emit(AlertKind.SUSPENDED, table.name, "was suspended by hand")
        else:
            self._book.emit(AlertKind.RESUMED, table.name, "takes part in refreshes again")

    def _run(self, statement: statements.Statement) -> Any:
        match statement:
            case statements.CreateStreamTable():
                return self._create(statement)
            case statements.AlterStreamTable():
                return self._alter(statement)
            case statements.DropStreamTable():
                return self.drop_stream_table(
                    statement.name, cascade=statement.cascade, if_exists=statement.if_exists
                )
            case statements.RefreshStreamTable():
                return self.refresh(statement.name) if statement.name else self.refresh()
            case statements.VerifyStreamTable():
                return self.verify(statement.name)
            case statements.CompactStreamTable():
                return self.compact(statement.name)
            case statements.ExplainStreamTable():
                return self.explain(
                    statement.name, query=statement.query, dialect=statement.dialect
                )
            case statements.ShowStreamTables():
                return self.status()
            case statements.ShowStreamTableStats():
                key = self._find(statement.name).name.key if statement.name else None
                return seeing.stats(self._workspace.catalog, key, statement.window)
            case statements.ShowAlerts():
                return self.alerts(statement.name, limit=statement.limit)
            case statements.ShowRefreshHistory():
                return self.history(statement.name, statement.limit)
            case _:
                raise RunnelError(f"no verb for {statement}")

    def _create(self, statement: statements.CreateStreamTable) -> TableStatus:
        options = dict(statement.options)
        given: dict[str, Any] = {
            "schedule": statement.schedule or options.pop("schedule", None),
            "comment": statement.comment or options.pop("comment", None),
            "refresh_mode": statement.refresh_mode or options.pop("refresh_mode", "AUTO"),
            "initialize": _boolean("initialize", options.pop("initialize", "true")),
            "dialect": options.pop("dialect", "spark"),
            "diamond_consistency": options.pop("diamond_consistency", None),
        }
        if options:
            raise UserError(
                f"{next(iter(options))!r} is not an option of a stream table",
                detail="expected schedule, refresh_mode, comment, initialize, dialect or "
                "diamond_consistency",
            )
        return self.create_stream_table(
            statement.name, statement.query, or_replace=statement.or_replace,
            if_not_exists=statement.if_not_exists, **given,
        )  # fmt: skip

    def _alter(self, statement: statements.AlterStreamTable) -> TableStatus:
        given = {
            name: value
            for name in (
                "schedule",
                "refresh_mode",
                "comment",
                "status",
                "query",
                "diamond_consistency",
            )
            if (value := getattr(statement, name)) is not None
        }
        return self.alter_stream_table(statement.name, **given)

    def _find(self, name: str | TableName) -> StreamTable:
        return seeing.find_table(self._workspace.catalog, _name(name))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SystemFault(
            f"the folder {folder} cannot be made",
            detail=error.strerror or str(error),
            hint="check the path, its permissions, and that the disk is not full",
        ) from error


def _name(name: str | TableName) -> TableName:
    return name if isinstance(name, TableName) else TableName.parse(name)


def _asked_of_diamonds(consistency: str | None) -> dict[str, str]:
    """The option of a table; without one the setting decides."""
    if consistency is None:
        return {}
    return {"diamond_consistency": DiamondConsistency.parse(consistency).value}


def _kept(options: dict[str, str]) -> dict[str, str]:
    """The options that a new query does not touch."""
    return {name: value for name, value in options.items() if name == "diamond_consistency"}


def _state(status: str | TableState, table: StreamTable) -> TableState:
    wanted = status.upper()
    if wanted == "SUSPENDED":
        return TableState.SUSPENDED
    if wanted == "ACTIVE":
        return TableState.ACTIVE if table.epoch else TableState.UNINITIALIZED
    raise UserError(f"{status!r} is not a status", detail="expected ACTIVE or SUSPENDED")


def _boolean(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UserError(f"{name} = {text!r} is not valid", detail="expected true or false")
    return text.lower() == "true"
