"""A small change of a Delta table read, and netted, without Spark: it takes a tenth of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from runnel.lake.changes import CHANGE_TYPE, COMING, FileChange, Way, net_files, way_of
from runnel.lake.log import DeltaLog
from runnel.lake.reading import has_char, schema_of
from runnel.model.columns import Column

# More is not held here, however few rows it is.
_MOST_BYTES = 16 * 2**20
# What equality means the same for here as in Spark.
_TYPES = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(),
    "bigint": pa.int64(), "string": pa.string(), "date": pa.date32(),
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_WEIGHT = "__w"
# Days of the Julian calendar: how a file means them, Spark reads from its footer.
_FIRST_DAY = date(1582, 10, 15)


def netted_change(
    spark: SparkSession, log: DeltaLog, window: tuple[int, int], names: Sequence[str],
    columns: Sequence[Column],
) -> tuple[DataFrame, int] | None:  # fmt: skip
    """The change over (after, upto] summed by some columns, under other names; how many rows.

    None where Spark has to do it: what the files hold is not the columns as they are, or much.
    """
    found = changed_rows(log, window, names, columns)
    if found is None:
        return None
    rows = _summed(found, [column.name for column in columns]).cast(found.schema)
    ddl = ", ".join(f"{column.name} {column.type}" for column in columns)
    return spark.createDataFrame(rows, schema=f"{ddl}, {_WEIGHT} bigint"), rows.num_rows


def changed_rows(
    log: DeltaLog, window: tuple[int, int], names: Sequence[str], columns: Sequence[Column]
) -> pa.Table | None:
    """The same, every changed row for itself with its weight."""
    types = [_arrow_type(column.type) for column in columns]
    after, upto = window
    commits = log.commits(after, upto)
    if not names or None in types or way_of(log, after, upto, commits) is not Way.FILES:
        return None
    end = log.snapshot(upto)
    # What the files do not hold as it is, or need not hold at all.
    others = {field.name for field in schema_of(end) if has_char(field)} | {*end.partition_columns}
    change = net_files(commits)
    actions = [*change.cdc, *(action for _, action in change.weighted)]
    if others.intersection(names) or sum(action.size for action in actions) > _MOST_BYTES:
        return None
    called = [column.name for column in columns]
    schema = pa.schema([*zip(called, types, strict=True), (_WEIGHT, pa.int64())])
    try:
        parts = [_part(table, weights, names, schema) for table, weights in _read(change, names)]
    except (OSError, pa.ArrowInvalid):
        # A file that lacks a column, or cannot be read: Spark knows what to do, or to say.
        return None
    if any(part is None for part in parts):
        return None
    return pa.concat_tables([schema.empty_table(), *parts])


def _read(change: FileChange, names: Sequence[str]) -> Iterator[tuple[pa.Table, pa.Array]]:
    """Each file's rows and their weights."""
    for weight, action in change.weighted:
        table = pq.read_table(action.path, columns=list(names), partitioning=None)
        yield table, pa.array([weight], pa.int64()).take(pa.array([0] * table.num_rows, pa.int32()))
    for action in change.cdc:
        table = pq.read_table(action.path, columns=[*names, CHANGE_TYPE], partitioning=None)
        comes = pc.is_in(table[CHANGE_TYPE].cast(pa.string()), pa.array(COMING))
        yield table, pc.if_else(comes, 1, -1).combine_chunks().cast(pa.int64())


def _part(
    table: pa.Table, weights: pa.Array, names: Sequence[str], schema: pa.Schema
) -> pa.Table | None:
    """A file's rows under the names and types that are asked for, if they are of these types."""
    found = []
    for name, field in zip(names, schema, strict=False):
        if name not in table.column_names or not _is_same(
            table.schema.field(name).type, field.type
        ):
            return None
        values = table[name].cast(field.type)
        if field.type == pa.date32() and pc.any(pc.less(values, _FIRST_DAY)).as_py():
            return None
        found.append(values)
    return pa.table([*found, weights], schema=schema)


def _is_same(stored: pa.DataType, wanted: pa.DataType) -> bool:
    texts = (pa.string(), pa.large_string(), pa.string_view())
    return stored == wanted or (wanted == pa.string() and stored in texts)


def _summed(table: pa.Table, names: list[str]) -> pa.Table:
    """Equal rows once, with the sum of their weights; those that come to nothing go."""
    sums = table.group_by(names, use_threads=False).aggregate([(_WEIGHT, "sum")])
    sums = sums.select([*names, f"{_WEIGHT}_sum"]).rename_columns([*names, _WEIGHT])
    return sums.filter(pc.not_equal(sums[_WEIGHT], 0))


def _arrow_type(type_: str) -> pa.DataType | None:
    if match := _DECIMAL.fullmatch(type_):
        return pa.decimal128(int(match[1]), int(match[2]))
    return _TYPES.get(type_)
