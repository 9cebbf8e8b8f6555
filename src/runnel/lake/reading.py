"""A Delta table at a pinned version, as a DataFrame: by file list where that is exact."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from runnel.lake.log import DeltaLog, Snapshot
from runnel.model.columns import Column
from runnel.model.names import quote

# Features that leave "the rows are those in the Parquet files" true.
_HARMLESS = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
_GLOB = re.compile(r"[{}\[\]*?\\]")
_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_CHAR = re.compile(r"char\(\d+\)")


def read_version(spark: SparkSession, log: DeltaLog, version: int) -> DataFrame:
    """The rows of one version."""
    snapshot = log.snapshot(version)
    if is_plain(snapshot):
        return scan_files(spark, snapshot, [file.path for file in snapshot.files])
    return spark.read.format("delta").option("versionAsOf", version).load(log.path)


def is_plain(snapshot: Snapshot) -> bool:
    """Whether the live files, read as Parquet, are exactly the table."""
    return not snapshot.partition_columns and has_plain_files(snapshot)


def has_plain_files(snapshot: Snapshot) -> bool:
    """Whether the live files hold the table's rows, but for the columns it is partitioned by."""
    return (
        snapshot.configuration.get("delta.columnMapping.mode", "none") == "none"
        and snapshot.reader_features <= _HARMLESS
        and has_plain_paths(snapshot)
    )


def has_plain_paths(snapshot: Snapshot) -> bool:
    """Whether no path would be taken for a glob pattern, nor lies outside the local disk."""
    return not _GLOB.search(snapshot.root) and all(
        file.path.startswith("/") and not _GLOB.search(file.path) for file in snapshot.files
    )


def scan_files(
    spark: SparkSession,
    snapshot: Snapshot,
    files: Sequence[str],
    extra: Iterable[StructField] = (),
) -> DataFrame:
    """Read files of a plain table with the table's schema (and extra columns they hold)."""
    schema = StructType([*map(_as_read, schema_of(snapshot)), *extra])
    return spark.read.schema(schema).parquet(*files) if files else _nothing(spark, schema)


def columns_of(snapshot: Snapshot) -> tuple[Column, ...]:
    """The table's columns with Spark's simple type strings."""
    return tuple(Column(field.name, field.dataType.simpleString()) for field in schema_of(snapshot))


def char_names(snapshot: Snapshot) -> frozenset[str]:
    """The columns of type CHAR(n); fields that are, inside others, are like any string."""
    fields = schema_of(snapshot)
    return frozenset(f.name for f in fields if _CHAR.fullmatch(str(f.metadata.get(_CHAR_TYPE, ""))))


def as_strings(columns: Iterable[str], snapshot: Snapshot) -> list[str]:
    """The select list in which CHAR(n) columns are strings, compared as they are."""
    chars = {name.lower() for name in char_names(snapshot)}
    names = [(name.lower(), quote(name)) for name in columns]
    # Alone it would still be known as what it was.
    return [f"CAST({q} AS STRING) AS {q}" if name in chars else q for name, q in names]


def schema_of(snapshot: Snapshot) -> StructType:
    """The table's schema as Spark's type."""
    return StructType.fromJson(json.loads(snapshot.schema_json))


def union_all(frames: Sequence[DataFrame]) -> DataFrame:
    """UNION ALL by position."""
    return reduce(DataFrame.union, frames)


def _nothing(spark: SparkSession, schema: StructType) -> DataFrame:
    # createDataFrame([]) would start a Python worker; this the optimiser knows to be empty.
    nulls = [
        sf.lit(None).cast(field.dataType).alias(field.name, metadata=field.metadata)
        for field in schema
    ]
    return spark.range(1).where(sf.lit(False)).select(*nulls)


def _as_read(field: StructField) -> StructField:
    # By this Spark pads what files hold of CHAR(n) columns, and what they are compared with. But a
    # column's default in its metadata would fill in for NULL where a file lacks the column.
    kept = {key: value for key, value in field.metadata.items() if key == _CHAR_TYPE}
    return StructField(field.name, field.dataType, True, kept)


def has_char(field: StructField) -> bool:
    """Whether a column is or holds CHAR(n), which files do not hold padded."""
    return _CHAR_TYPE in field.metadata
