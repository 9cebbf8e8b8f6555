"""The Spark session of a lake and the names in it: kept in step with the catalog and the folder."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from runnel.catalog import BaseTable, StreamTable, Writer
from runnel.compile.ddl import new_name_of_table
from runnel.errors import AlreadyExists, RunnelError, UserError, never_filled
from runnel.lake.frames import DataFrame, SparkSession
from runnel.lake.functions import register
from runnel.lake.guarding import guard_writes, release_writes
from runnel.lake.names import (
    TableKind,
    check_schema,
    describe,
    find_folder,
    is_gone,
    is_same_place,
    move_folder,
    publish_view,
    register_location,
    remove_folder,
    retract_location,
    retract_view,
    sync_schemas,
    sync_tables,
)
from runnel.lake.session import (
    FEED,
    Session,
    has_lasting_names,
    open_session,
    stop_session,
    translate,
)
from runnel.lake.trace import Trace
from runnel.lake.translate import missing_table
from runnel.lake.writing import WriteMode, write_frame
from runnel.model.functions import OwnFunction
from runnel.model.names import TableName
from runnel.refresh.answers import Answers, Question

_T = TypeVar("_T")
_QUERY = re.compile(r"\s*(SELECT|WITH|FROM|TABLE|VALUES)\b|\s*\(", re.IGNORECASE)
_Shown = tuple[str, int, int | None]


class SessionKeeper:
    """Opens Spark when it is first needed; knows which names this session has already seen."""

    def __init__(
        self,
        folder: Path,
        catalog: Writer,
        spark: SparkSession | None,
        conf: Mapping[str, str] | None,
        functions: Mapping[str, OwnFunction],
        patience: float = 10.0,
    ) -> None:
        self._folder = folder
        self._catalog = catalog
        self._given = spark
        self._conf = conf
        self._functions = functions
        self._patience = patience
        self._answers = Answers()
        self._session: Session | None = None
        self._lock = threading.RLock()
        self._is_named = False
        self._revision = -1
        self._base: dict[str, TableName] = {}
        self._schemas: set[str] = set()
        self._external: dict[str, BaseTable] = {}
        self._views: dict[str, tuple[TableName, _Shown]] = {}

    def open(self) -> SparkSession:
        """Spark, with the names of all tables."""
        with self._lock:
            spark = self.begin()
            if not self._is_named:
                self.sync()
            return spark

    def begin(self) -> SparkSession:
        """Spark for refreshes, which read by place: giving names takes longer than the start.

        Names that others see too, in a catalog that outlives this process, are not put off.
        """
        with self._lock:
            if self._session is None:
                self._session = self._start()
                register(self._session.spark, self._functions.values())
                guard_writes(self, self._session.spark)
                if self._session.is_foreign or has_lasting_names(self._session.spark):
                    self.sync()
            return self._session.spark

    @property
    def _warehouse(self) -> Path:
        return self._folder / "warehouse"

    @property
    def _is_foreign(self) -> bool:
        return self._session is not None and self._session.is_foreign

    @property
    def opened(self) -> SparkSession | None:
        """The session, if something needed one."""
        return self._session.spark if self._session is not None else None

    @property
    def present(self) -> SparkSession | None:
        """The session if there is one already, needed so far or not."""
        return self.opened or self._given

    def close(self) -> None:
        release_writes(self)
        with self._lock:
            if self._session is not None and self._session.is_owned:
                stop_session(self._session.spark)
            self._session = None
            self._is_named = False

    def sync(self) -> None:
        """Bring this session's names in step with what any process did meanwhile."""
        with self._lock:
            spark = self.begin()
            self._is_named = True
            revision = self._catalog.revision()
            is_changed = revision != self._revision
            if is_changed:
                # First of all: a name that one table gave up may be another one's by now.
                self._let_go(spark)
            sync_tables(spark, self._warehouse, self._base, is_borrowed=self._is_foreign)
            if not self._is_foreign:
                sync_schemas(spark, self._warehouse, self._schemas)
            if is_changed:
                is_all = self._take_up(spark)
                self._revision = revision if is_all else -1

    def ready(self) -> SparkSession:
        """Spark for a statement: with the names of all tables, which mean what they mean here."""
        spark = self.begin()
        check_schema(spark)
        self.sync()
        return spark

    def retract(self, names: Sequence[TableName]) -> None:
        """Take dropped tables out of this session; one that was never opened has no names."""
        with self._lock:
            if self._session is not None:
                for name in names:
                    retract_view(self._session.spark, name)
                    self._views.pop(name.key, None)

    def sync_if_open(self) -> None:
        """Like sync, but only where names were asked for; starts no Spark for it."""
        with self._lock:
            if self._is_named and self._catalog.revision() != self._revision:
                self.sync()

    def run(self, text: str, verb: str | None, target: TableName | None) -> DataFrame:
        """Run a Spark statement; a stream table cannot be its target."""
        spark = self.ready()
        if target is not None:
            self._refuse_stream_table(verb or "write", target)
        renamed = new_name_of_table(text)
        if renamed is not None:
            self._refuse_taken(renamed[1])
        leaves = self._left_by_drop(spark, target) if verb == "drop" and target else None
        is_query = _QUERY.match(text) is not None
        frame = self._told(lambda: self._analysed(spark, text) if is_query else spark.sql(text))
        if target is not None and verb in ("create", "drop"):
            if leaves is not None:
                remove_folder(self._warehouse, leaves)
            self._note_external(spark, target)
        if renamed is not None:
            self._note_renamed(spark, *renamed)
        return frame

    def write(
        self, frame: DataFrame, target: TableName, mode: WriteMode, options: Mapping[str, str]
    ) -> None:
        """Write a frame to a table, which is created when it is not there."""
        spark = self.ready()
        self._refuse_stream_table("write", target)
        if self._told(lambda: write_frame(spark, frame, target, mode, options)):
            self._note_external(spark, target)

    def _told(self, work: Callable[[], _T]) -> _T:
        """Do something of Spark's, with its errors told as ours."""
        try:
            return work()
        except RunnelError:
            raise
        except Exception as error:
            self._refuse_unfilled(missing_table(error))
            raise translate(error) from error

    def _refuse_unfilled(self, missing: TableName | None) -> None:
        """A stream table has a name in Spark from its first refresh on."""
        table = self._catalog.find(missing.key) if missing is not None else None
        if table is not None and table.epoch == 0:
            raise never_filled(str(table.name))

    def _analysed(self, spark: SparkSession, text: str) -> DataFrame:
        """Names are looked up at once, so that a query never sees half of a group renewed."""
        with self._lock:
            return spark.sql(text)

    def _start(self) -> Session:
        if self._given is None:
            session = open_session(self._folder, self._conf)
        else:
            session = Session(self._given, is_owned=False, is_foreign=True)
        if session.is_foreign and session.spark.conf.get(FEED, None) is None:
            session.spark.conf.set(FEED, "true")
        return session

    def _let_go(self, spark: SparkSession) -> None:
        """Drop the names of tables that are gone, or that stand for another place."""
        external = {b.name.key: b.location for b in self._catalog.base_tables()}
        for key, base in list(self._external.items()):
            if external.get(key) != base.location:
                del self._external[key]
                # What a session of the user's own calls so may be the user's.
                if not self._is_foreign:
                    retract_location(spark, base.name, base.location)
        for key in self._views.keys() - {t.name.key for t in self._shown_tables()}:
            retract_view(spark, self._views.pop(key)[0])

    def _take_up(self, spark: SparkSession) -> bool:
        """Give this session the names that it does not know yet; False when a place is silent."""
        new = [b for b in self._catalog.base_tables() if b.name.key not in self._external]
        asked = {b.location: Question(b.location, partial(is_gone, b.location)) for b in new}
        answers = self._answers.ask(asked, self._patience, lambda: False)
        for base in new:
            # Given a name, a place without a table would become an empty one.
            if answers.get(base.location) is False:
                register_location(spark, base.name, base.location)
                self._external[base.name.key] = base
        for table in self._shown_tables():
            if self._views.get(table.name.key, (None, None))[1] != _state(table):
                self._publish(spark, table)
        return answers.keys() == asked.keys()

    def _shown_tables(self) -> list[StreamTable]:
        return [t for t in self._catalog.tables() if not t.is_hidden]

    def _publish(self, spark: SparkSession, table: StreamTable) -> None:
        path = str(self._folder / "_runnel" / "traces" / table.incarnation)
        trace = Trace(path, table.incarnation, table.layout)
        if trace.exists() and not (table.grouped and table.epoch == 0):
            version = table.trace_version if table.grouped else None
            publish_view(spark, table.name, trace.readout_sql(version))
            self._views[table.name.key] = (table.name, _state(table))

    def refuse_write(self, name: str) -> None:
        """Refuse to write under a stream table's name; what is no name of a table is Spark's."""
        try:
            target = TableName.parse(name)
        except UserError:
            return
        self._refuse_stream_table("write", target)

    def _refuse_stream_table(self, verb: str, target: TableName) -> None:
        if self._catalog.find(target.key) is None:
            return
        if verb == "drop":
            hint = f"use DROP STREAM TABLE {target}"
        elif verb == "alter":
            hint = f"use ALTER STREAM TABLE {target}"
        else:
            hint = "change its sources; a stream table follows them by itself"
        raise UserError(f"{target} is a stream table and cannot be changed directly", hint=hint)

    def _left_by_drop(self, spark: SparkSession, target: TableName) -> TableName | None:
        """The table whose folder in the warehouse stays behind when its name is dropped.

        In a session of the user's own the name may stand for another table.
        """
        folder = find_folder(self._warehouse, target)
        if folder is None:
            return None
        if not self._is_foreign or is_same_place(describe(spark, target).location, folder):
            return target
        return None

    def _note_external(self, spark: SparkSession, target: TableName) -> None:
        """Tables stored outside the warehouse folder are remembered for other processes."""
        info = describe(spark, target)
        if info.kind is TableKind.DELTA and info.location:
            if not is_same_place(info.location, find_folder(self._warehouse, target) or ""):
                self._catalog.register_base_table(target, info.location)
                self._external[target.key] = BaseTable(target, info.location)
        elif info.kind is TableKind.MISSING and self._is_noted(target):
            self._catalog.forget_base_table(target)
            self._external.pop(target.key, None)

    def _note_renamed(self, spark: SparkSession, old: TableName, new: TableName) -> None:
        """Others know a table by the name of its folder, or by what is noted of its place."""
        folder, place = find_folder(self._warehouse, old), describe(spark, new).location
        if folder is not None and is_same_place(place, folder):
            move_folder(spark, self._warehouse, old, new)
        # The new name first: whoever looks in between knows the table by both.
        self._note_external(spark, new)
        self._note_external(spark, old)

    def _refuse_taken(self, name: TableName) -> None:
        """One that was never filled has no view, by which Spark would see it."""
        if self._catalog.find(name.key) is not None:
            raise AlreadyExists(f"stream table {name} already exists", hint="choose another name")

    def _is_noted(self, target: TableName) -> bool:
        return any(base.name.key == target.key for base in self._catalog.base_tables())


def _state(table: StreamTable) -> _Shown:
    """What a view's text depends on."""
    return table.incarnation, table.since, table.trace_version if table.grouped else None
