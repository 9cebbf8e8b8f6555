"""Files of a partitioned table: the values that they do not hold are in the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField

from runnel.lake.log import FileAction, Snapshot
from runnel.lake.reading import has_char, scan_files, schema_of

# What the log's text stands for in one way only, whoever wrote it and in which time zone.
_TYPES = re.compile(r"string|boolean|tinyint|smallint|int|bigint|date|decimal\(.*\)")
# Each is a reading of its own: with more of them Delta's reader takes less.
_MOST = 64


def can_read(snapshot: Snapshot, actions: Iterable[FileAction]) -> bool:
    """Whether the log tells what the partition columns of these files hold."""
    if not snapshot.partition_columns:
        return True
    of = {field.name: field for field in schema_of(snapshot)}
    columns = [of[name] for name in snapshot.partition_columns if name in of]
    types = [c.dataType.simpleString() for c in columns if not has_char(c)]
    if len([t for t in types if _TYPES.fullmatch(t)]) < len(snapshot.partition_columns):
        return False
    parts = {action.partition for action in actions}
    wanted = set(snapshot.partition_columns)
    told = [part is not None and {name for name, _ in part} == wanted for part in parts]
    return all(told) and len(parts) <= _MOST


def scan_actions(
    spark: SparkSession,
    snapshot: Snapshot,
    actions: Sequence[FileAction],
    extra: Sequence[StructField] = (),
) -> list[DataFrame]:
    """The rows of files of one table, in a frame for each partition."""
    if not snapshot.partition_columns:
        return [scan_files(spark, snapshot, [action.path for action in actions], extra)]
    paths: dict[tuple[tuple[str, str | None], ...], list[str]] = {}
    for action in actions:
        paths.setdefault(action.partition or (), []).append(action.path)
    return [_scan(spark, snapshot, part, files, extra) for part, files in paths.items()]


def _scan(
    spark: SparkSession,
    snapshot: Snapshot,
    part: tuple[tuple[str, str | None], ...],
    files: Sequence[str],
    extra: Sequence[StructField],
) -> DataFrame:
    frame = scan_files(spark, snapshot, files, extra)
    types = {field.name: field.dataType for field in schema_of(snapshot)}
    # An empty text is how the log says NULL.
    values = {name: sf.lit(text or None).cast(types[name]) for name, text in part}
    return frame.withColumns(values)
