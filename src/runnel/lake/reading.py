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
_CHAR = re.compile(r"char\((\d+)\)")


def read_version(spark: SparkSession, log: DeltaLog, version: int) -> DataFrame:
    """The rows of one version."""
    snapshot = log.snapshot(version)
    if is_plain(snapshot):
        return scan_files(spark, snapshot, [file.path for file in snapshot.files])
    reader = spark.read.format("delta").option("versionAsOf", version)
    return _pad_char_columns(reader.load(log.path), schema_of(snapshot))


def is_plain(snapshot: Snapshot) -> bool:
    """Whether the live files, read as Parquet, are exactly the table."""
    return (
        not snapshot.partition_columns
        and snapshot.configuration.get("delta.columnMapping.mode", "none") == "none"
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
    table = schema_of(snapshot)
    schema = StructType([*_without_metadata(table), *extra])
    if not files:
        return _nothing(spark, schema)
    return _pad_char_columns(spark.read.schema(schema).parquet(*files), table)


def columns_of(snapshot: Snapshot) -> tuple[Column, ...]:
    """The table's columns with Spark's simple type strings."""
    return tuple(Column(field.name, field.dataType.simpleString()) for field in schema_of(snapshot))


def schema_of(snapshot: Snapshot) -> StructType:
    """The table's schema as Spark's type."""
    return StructType.fromJson(json.loads(snapshot.schema_json))


def union_all(frames: Sequence[DataFrame]) -> DataFrame:
    """UNION ALL by position."""
    return reduce(DataFrame.union, frames)


def _nothing(spark: SparkSession, schema: StructType) -> DataFrame:
    # createDataFrame([]) would start a Python worker; this the optimiser knows to be empty.
    nulls = [sf.lit(None).cast(field.dataType).alias(field.name) for field in schema]
    return spark.range(1).where(sf.lit(False)).select(*nulls)


def _without_metadata(schema: StructType) -> list[StructField]:
    # A column's default in its metadata would fill in for NULL where a file lacks the column.
    return [StructField(field.name, field.dataType, True) for field in schema]


def has_char(field: StructField) -> bool:
    """Whether a column is CHAR(n), which files do not hold padded."""
    return _CHAR_TYPE in field.metadata


def _pad_char_columns(frame: DataFrame, schema: StructType) -> DataFrame:
    # Spark pads CHAR(n) when it reads a table by name; files hold what was written.
    for field in schema:
        match = _CHAR.fullmatch(str(field.metadata.get(_CHAR_TYPE, "")))
        if match:
            name, width = quote(field.name), match.group(1)
            padded = sf.expr(
                f"CASE WHEN length({name}) < {width} THEN rpad({name}, {width}) ELSE {name} END"
            )
            frame = frame.withColumn(field.name, padded)
    return frame
