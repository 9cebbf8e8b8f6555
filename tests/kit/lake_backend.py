"""Step files through the real lake: Delta tables, Spark, traces and the catalog.

Sources are written by delta-rs, which takes milliseconds where a Delta statement takes up to a second,
and proves on the way that Runnel notices other writers.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from kit.bags import Bag, Row, bag, remove_one
from kit.duck import DuckSources, Moment, Table, connection, oracle, oracle_text
from kit.names import forget_names
from kit.step import Change, TableSpec
from runnel.api import Lake
from runnel.compile.parse import parse
from runnel.compile.recursion import recursive_union
from runnel.compile.rewrites.determinism import deterministic_text
from runnel.model.names import TableName

_PLAIN = {
    "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_(),
    "date": pa.date32(), "timestamp": pa.timestamp("us", tz="UTC"), "binary": pa.binary(),
    "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip


class LakeBackend:
    """One stream table, `st`, over tables of a schema of its own names."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.specs: dict[str, TableSpec] = {}
        self.rows: dict[str, list[Row]] = {}
        self.name = f"st_{uuid.uuid4().hex[:8]}"
        self.folder = lake._workspace.path / f"sources_of_{self.name}"

    def create_table(self, table: TableSpec) -> None:
        if "." in table.name:
            self.lake.sql(f"CREATE SCHEMA IF NOT EXISTS {table.name.partition('.')[0]}")
        self.specs[table.name.lower()] = table
        self.rows[table.name.lower()] = list(table.rows)
        if _odd(table):
            columns = ", ".join(f"`{c.name}` {c.type}" for c in table.columns)
            mapping = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
            self.lake.sql(f"CREATE TABLE {table.name} ({columns}) USING delta {mapping}")
            self._append(table, table.rows)
            return
        feed = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(self._path(table), _arrow(table, table.rows), configuration=feed)
        self.lake.sql(f"CREATE TABLE {table.name} USING delta LOCATION '{self._path(table)}'")

    def create_stream_table(self, query: str) -> None:
        self.query = deterministic_text(query) or query
        self.lake.create_stream_table(self.name, query, refresh_mode="DIFFERENTIAL")

    def commit(self, changes: Sequence[Change]) -> None:
        """Deletes as one rewriting commit, then inserts as one append, for each table."""
        for name in dict.fromkeys(c.table.lower() for c in changes):
            own = [c for c in changes if c.table.lower() == name]
            come = [c.new for c in own if c.new is not None]
            gone = any(c.old is not None for c in own)
            for change in own:
                if change.old is not None:
                    remove_one(self.rows[name], change.old)
                if change.new is not None:
                    self.rows[name].append(change.new)
            if gone:
                self._overwrite(self.specs[name], self.rows[name])
            else:
                self._append(self.specs[name], come)

    def refresh(self) -> str:
        return self.lake.refresh(self.name).action.value

    def contents(self) -> Bag:
        return bag(tuple(row) for row in self.lake.table(self.name).collect())

    def oracle(self) -> Bag:
        if recursive_union(parse(self.query)) is not None:
            return self._without_spark()
        return bag(tuple(row) for row in self.lake.spark.sql(self._text()).collect())

    def _text(self) -> str:
        """The query with every choice made that it leaves open, such as which of two ties is first."""
        workspace = self.lake._workspace
        table = next(t for t in workspace.catalog.tables() if t.name.name == self.name)
        _, compiled = workspace.compiled.get(table.incarnation, (None, None))
        return (compiled.text if compiled else None) or self.query

    def _without_spark(self) -> Bag:
        """The answer of DuckDB, where Spark cannot run the query."""
        tables = [Table(s.name, s.columns) for s in self.specs.values()]
        con = connection()
        sources = DuckSources(con, tables)
        for name, table in zip(self.specs, tables, strict=True):
            sources.load(table.schema.key, 0, [Moment(self.rows[name], [])])
        return oracle(con, oracle_text(self.query, tables))

    def verify(self) -> None:
        """What the product itself says about the last contents."""
        verified = self.lake.verify(self.name)
        assert verified.ok, str(verified)

    def close(self) -> None:
        self.lake.drop_stream_table(self.name, if_exists=True)
        for name in self.specs:
            if "." in name:
                self.lake.sql(f"DROP TABLE IF EXISTS {name}")
            else:
                self.lake._workspace.catalog.forget_base_table(TableName.parse(name))
        forget_names(self.lake.spark)

    def _append(self, table: TableSpec, rows: Sequence[Row]) -> None:
        self._write(table, rows, "append")

    def _overwrite(self, table: TableSpec, rows: Sequence[Row]) -> None:
        self._write(table, rows, "overwrite")

    def _write(
        self, table: TableSpec, rows: Sequence[Row], mode: Literal["append", "overwrite"]
    ) -> None:
        if not _odd(table):
            write_deltalake(DeltaTable(self._path(table)), _arrow(table, rows), mode=mode)
            return
        frame = self.lake.spark.createDataFrame(_arrow(table, rows))
        frame.write.format("delta").mode(mode).saveAsTable(table.name)

    def _path(self, table: TableSpec) -> str:
        return str(self.folder / table.name.lower())


def _odd(table: TableSpec) -> bool:
    """Whether Delta has to map the columns' names, which delta-rs does not write."""
    return any(set(c.name) & set(" ,;{}()\n\t=") for c in table.columns)


def _arrow(table: TableSpec, rows: Sequence[Row]) -> pa.Table:
    return arrow_rows({c.name: c.type for c in table.columns}, rows)


def arrow_rows(columns: Mapping[str, str], rows: Sequence[Row]) -> pa.Table:
    """Rows as an Arrow table with columns of Spark types; decimals may be given as text."""
    fields = [pa.field(name, arrow_type(type_)) for name, type_ in columns.items()]
    return pa.Table.from_pylist(
        [{f.name: _value(v, f.type) for f, v in zip(fields, row, strict=True)} for row in rows],
        pa.schema(fields),
    )


def _value(value: Any, type_: pa.DataType) -> Any:
    if isinstance(value, datetime) and pa.types.is_timestamp(type_) and type_.tz:
        # What Spark gives back is in the zone of this machine.
        return value.astimezone()
    return Decimal(value) if pa.types.is_decimal(type_) and isinstance(value, str) else value


def arrow_type(spark_type: str) -> pa.DataType:
    """The Arrow type of a simple Spark type."""
    if spark_type.startswith("decimal("):
        precision, scale = spark_type[8:-1].split(",")
        return pa.decimal128(int(precision), int(scale))
    if spark_type.startswith("array<"):
        return pa.list_(arrow_type(spark_type[len("array<") : -1]))
    if spark_type.startswith("map<"):
        key, value = spark_type[len("map<") : -1].split(",", 1)
        return pa.map_(arrow_type(key), arrow_type(value))
    return _PLAIN[spark_type]
