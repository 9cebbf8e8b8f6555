"""Small tables read here, by Arrow, and given to Spark as relations that it knows when it plans.

Scanning a dozen rows takes Spark a job, or several; a relation that is known takes none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from runnel.lake.log import DataFile, Snapshot
from runnel.lake.reading import has_char, schema_of

_MOST_ROWS = 2_000
_MOST_FILES = 16
_MOST_BYTES = 2**20
# What equality means the same for here as in Spark.
_TYPES = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(),
    "bigint": pa.int64(), "string": pa.string(), "date": pa.date32(),
}  # fmt: skip
_UNEQUAL = {"float": pa.float32(), "double": pa.float64()}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
# Days of the Julian calendar: how a file means them, Spark reads from its footer.
_FIRST_DAY = date(1582, 10, 15)


def local_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    files: Sequence[DataFile],
    names: Collection[str] | None = None,
) -> DataFrame | None:
    """The rows of files of a plain table; None where Spark has to read them.

    Of the columns only `names`, unless that is None.
    """
    if not files or not _is_little(files):
        return None
    fields = [f for f in schema_of(snapshot) if names is None or f.name in names]
    types = [_read_type(field) for field in fields]
    if not fields or None in types:
        return None
    schema = pa.schema([(f.name, t) for f, t in zip(fields, types, strict=True)])
    try:
        parts = [
            typed(pq.read_table(file.path, columns=schema.names, partitioning=None), schema)
            for file in files
        ]
    except (OSError, pa.ArrowInvalid):
        # A file that cannot be read: Spark knows what to do, or to say.
        return None
    if any(part is None for part in parts):
        return None
    shown = StructType([StructField(f.name, f.dataType, True) for f in fields])
    return spark.createDataFrame(pa.concat_tables(parts), schema=shown)


def typed(
    table: pa.Table, schema: pa.Schema, names: Sequence[str] | None = None
) -> pa.Table | None:
    """A file's columns (`names`, or those of the schema) under the schema's names and types.

    None when they are of other types: what is converted may not be what Spark makes of it.
    """
    found = []
    for name, field in zip(names or schema.names, schema, strict=True):
        if name not in table.column_names or not _is_same(
            table.schema.field(name).type, field.type
        ):
            return None
        values = table[name].cast(field.type)
        if field.type == pa.date32() and pc.any(pc.less(values, _FIRST_DAY)).as_py():
            return None
        found.append(values)
    return pa.table(found, schema=schema)


def arrow_type(type_: str) -> pa.DataType | None:
    """The type of values that are equal here when Spark says so; None when there is none."""
    if match := _DECIMAL.fullmatch(type_):
        return pa.decimal128(int(match[1]), int(match[2]))
    return _TYPES.get(type_)


def _is_little(files: Sequence[DataFile]) -> bool:
    rows = sum(_MOST_ROWS + 1 if file.rows is None else file.rows for file in files)
    size = sum(file.size for file in files)
    return len(files) <= _MOST_FILES and rows <= _MOST_ROWS and size <= _MOST_BYTES


def _read_type(field: StructField) -> pa.DataType | None:
    if has_char(field):
        return None
    type_ = field.dataType.simpleString()
    return arrow_type(type_) or _UNEQUAL.get(type_)


def _is_same(stored: pa.DataType, wanted: pa.DataType) -> bool:
    texts = (pa.string(), pa.large_string(), pa.string_view())
    return stored == wanted or (wanted == pa.string() and stored in texts)
