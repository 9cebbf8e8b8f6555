"""Changes of what is defined: tables, sources, base tables. Each call is one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Unpack

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from runnel.catalog.alerts import end_alerts_of
from runnel.catalog.definitions import Definitions
from runnel.catalog.engine import writing
from runnel.catalog.lease import Lease, require
from runnel.catalog.reader import dependents_of
from runnel.catalog.recorder import Recorder, gone
from runnel.catalog.records import (
    BaseTable,
    Source,
    StreamTable,
    TableFields,
    owner_of,
    with_options,
)
from runnel.catalog.rows import (
    base_table_to_row,
    schedule_to_row,
    source_to_row,
    table_to_row,
)
from runnel.catalog.schema import (
    base_tables,
    dependencies,
    stream_tables,
)
from runnel.errors import AlreadyExists, InUse, NotFound
from runnel.model.alerts import key_of
from runnel.model.failpoints import reach
from runnel.model.names import TableName

# Notes about running, which no other process has to hear of.
_NOT_DEFINITION = frozenset(
    {
        "reinitialize",
        "consecutive_errors",
        "last_error",
        "retry_at",
        "work_seconds",
        "wait_seconds",
    }
)  # fmt: skip


# What comes of compiling a query again.
_DEFINED = ("query", "layout", "not_differential", "resolution", "options")


class Writer(Recorder):
    """Reads and changes the catalog; safe to share between threads.

    `definitions` are copied to files after each change, when there is a place for them.
    """

    definitions: Definitions | None = None

    def copy_definitions(self, definitions: Definitions) -> None:
        """Keep copies from now on; a place that is new gets those of all tables."""
        self.definitions = definitions
        if definitions.is_new:
            definitions.save(*self.tables())

    def add_table(self, table: StreamTable) -> None:
        try:
            with self.changing() as connection:
                _require_sources(connection, table.sources)
                connection.execute(stream_tables.insert(), table_to_row(table))
                _insert_sources(connection, table)
        except IntegrityError as error:
            raise _name_taken(table.name) from error
        self.copy_definition(table.id)

    def redefine_table(self, table: StreamTable, held: Sequence[Lease] = ()) -> None:
        """Replace everything about the table that has this id; Busy when a lease was lost."""
        try:
            with self.changing() as connection:
                for lease in held:
                    require(connection, lease)
                _require_sources(connection, table.sources)
                _update(connection, table.id, table_to_row(table))
                connection.execute(dependencies.delete().where(dependencies.c.table_id == table.id))
                _insert_sources(connection, table)
        except IntegrityError as error:
            raise _name_taken(table.name) from error
        self.copy_definition(table.id)

    def renew_definition(self, table: StreamTable) -> None:
        """Replace what a table's query came to; how far it has come is left alone."""
        with self.changing() as connection:
            put_definition(connection, table, "reinitialize")
        self.copy_definition(table.id)

    def replace_tables(self, gone: Sequence[str], tables: Sequence[StreamTable]) -> None:
        """Remove some tables and add or redefine others, all of it or nothing."""
        kept = [table.id for table in tables]
        removed = [table_id for table_id in gone if table_id not in kept]
        labels = _labels(self.tables(), removed)
        try:
            with self.changing() as connection:
                of_tables = dependencies.c.table_id.in_(kept)
                connection.execute(dependencies.delete().where(of_tables))
                end_alerts_of(connection, labels, datetime.now(UTC))
                connection.execute(stream_tables.delete().where(stream_tables.c.id.in_(removed)))
                for table in tables:
                    _put(connection, table, is_new=table.id not in gone)
                for table in tables:
                    _require_sources(connection, table.sources)
                if self.definitions is not None:
                    self.definitions.remove(removed)
        except IntegrityError as error:
            seen = next((t for t in tables if not t.is_hidden), tables[0])
            raise _name_taken(seen.name) from error
        for table in tables:
            self.copy_definition(table.id)

    def update_table(self, table_id: str, **fields: Unpack[TableFields]) -> None:
        """Set these fields of a table; of its options those that are given (None: removed)."""
        if not fields:
            return
        row = _fields_to_row(dict(fields))
        if _NOT_DEFINITION.issuperset(fields):
            with writing(self.engine) as connection:
                _update(connection, table_id, row)
        else:
            with self.changing() as connection:
                if "options" in row:
                    row["options"] = _options(connection, table_id, row["options"])
                _update(connection, table_id, row)
            self.copy_definition(table_id)

    def remove_tables(self, table_ids: Sequence[str]) -> None:
        """Remove these together; refused while any other stream table reads one of them."""
        if not table_ids:
            return
        ids = list(table_ids)
        labels = _labels(self.tables(), ids)
        with self.changing() as connection:
            readers = _readers_outside(connection, ids)
            if readers:
                raise InUse(
                    f"other stream tables depend on it: {', '.join(readers)}",
                    hint="drop those first, or drop with CASCADE",
                )
            doomed = stream_tables.c.id.in_(ids)
            keys = list(connection.scalars(sa.select(stream_tables.c.key).where(doomed)))
            end_alerts_of(connection, [*keys, *labels], datetime.now(UTC))
            connection.execute(stream_tables.delete().where(doomed))
            if self.definitions is not None:
                # Before the commit: a file that stays behind would be taken for a lost table.
                self.definitions.remove(ids)
                reach("definition.removed")

    def register_base_table(self, name: TableName, location: str) -> None:
        """Know an external Delta table by a name; a second time moves the name."""
        row = base_table_to_row(BaseTable(name, location))
        with self.changing() as connection:
            connection.execute(base_tables.delete().where(base_tables.c.key == name.key))
            connection.execute(base_tables.insert(), row)

    def forget_base_table(self, name: TableName) -> None:
        with self.changing() as connection:
            connection.execute(base_tables.delete().where(base_tables.c.key == name.key))

    def copy_missing(self) -> list[str]:
        """Copy the definitions that have no file, or an older one, and name them."""
        if self.definitions is None:
            return []
        there = {table.id: _defined(table) for table in self.definitions.load()[0]}
        missing = [table for table in self.tables() if there.get(table.id) != _defined(table)]
        self.definitions.save(*missing)
        return [str(table.name) for table in missing]

    def unknown_definitions(self) -> list[StreamTable]:
        """Tables that were defined in this place, but in another catalog."""
        if self.definitions is None or self.definitions.is_new:
            return []
        known = {table.id for table in self.tables()}
        return [table for table in self.definitions.load()[0] if table.id not in known]

    def copy_definition(self, table_id: str) -> None:
        """Copy what a table is now, where copies are kept."""
        reach("definition.before_copy")
        if self.definitions is not None and (table := self.get(table_id)) is not None:
            self.definitions.save(table)


def _defined(table: StreamTable) -> tuple[object, ...]:
    """What a definition's file is for: all that the logs of the tables do not tell."""
    return (
        table.incarnation, table.name, table.query, table.mode, table.schedule, table.state,
        table.comment, table.options, table.settings,
    )  # fmt: skip


def _fields_to_row(fields: dict[str, Any]) -> dict[str, Any]:
    row = {name: getattr(value, "value", value) for name, value in fields.items()}
    if "schedule" in row:
        row |= schedule_to_row(row.pop("schedule"))
    if row.get("resolution") is not None:
        row["resolution"] = row["resolution"].to_json()
    if not _NOT_DEFINITION.issuperset(fields):
        row.setdefault("altered_at", datetime.now(UTC))
    return row


def _options(
    connection: sa.Connection, table_id: str, changed: Mapping[str, str | None]
) -> dict[str, str]:
    """The options of a table as they are now, with some changed."""
    query = sa.select(stream_tables.c.options).where(stream_tables.c.id == table_id)
    return with_options(connection.execute(query).scalar() or {}, changed)


def put_definition(connection: sa.Connection, table: StreamTable, *also: str) -> None:
    """Replace what a table's query came to, and what else is named, inside a transaction."""
    _require_sources(connection, table.sources)
    row = table_to_row(table)
    _update(connection, table.id, {name: row[name] for name in (*_DEFINED, *also)})
    connection.execute(dependencies.delete().where(dependencies.c.table_id == table.id))
    _insert_sources(connection, table)


def _update(connection: sa.Connection, table_id: str, row: dict[str, Any]) -> None:
    change = stream_tables.update().where(stream_tables.c.id == table_id).values(row)
    if connection.execute(change).rowcount == 0:
        raise gone(table_id)


def _put(connection: sa.Connection, table: StreamTable, *, is_new: bool) -> None:
    if is_new:
        connection.execute(stream_tables.insert(), table_to_row(table))
    else:
        _update(connection, table.id, table_to_row(table))
    _insert_sources(connection, table)


def _insert_sources(connection: sa.Connection, table: StreamTable) -> None:
    rows = [source_to_row(table.id, i, source) for i, source in enumerate(table.sources)]
    if rows:
        connection.execute(dependencies.insert(), rows)


def _require_sources(connection: sa.Connection, sources: Sequence[Source]) -> None:
    """A stream table that is read may have been dropped while the new one was being made."""
    for source in sources:
        query = sa.select(stream_tables.c.id).where(stream_tables.c.key == source.name.key)
        if source.kind == "stream" and connection.execute(query).first() is None:
            raise NotFound(
                f"stream table {source.name} does not exist",
                detail="it was dropped while a table that reads it was being defined",
            )


def _readers_outside(connection: sa.Connection, ids: list[str]) -> list[str]:
    c = stream_tables.c
    query = (
        sa.select(c.schema_name, c.name, c.options)
        .where(c.id.in_(dependents_of(ids)))
        .where(c.id.not_in(ids))
        .order_by(c.key)
    )
    rows = connection.execute(query)
    return list(dict.fromkeys(str(owner_of(options) or TableName(s, n)) for s, n, options in rows))


def _labels(tables: Sequence[StreamTable], ids: Sequence[str]) -> list[str]:
    """The names under which alerts tell of those among these tables that have none of their own."""
    return [key_of(table.label) for table in tables if table.id in ids and table.is_hidden]


def _name_taken(name: TableName) -> AlreadyExists:
    return AlreadyExists(
        f"stream table {name} already exists",
        hint="choose another name, or use IF NOT EXISTS or OR REPLACE",
    )
