"""Rows of a Delta table that have one of some values, kept in files that every session can read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from runnel.lake.changes import read_changes
from runnel.lake.local_changes import changed_rows
from runnel.lake.local_rows import can_be_fetched
from runnel.lake.log import DeltaLog
from runnel.lake.reading import columns_of, is_plain
from runnel.model.columns import Column
from runnel.model.names import quote

# Of so many files, the largest, the first rows tell how common some values are: what changed last
# is often in small files of its own.
_SAMPLED_FILES = 4
_SAMPLED_ROWS = 25_000


@dataclass(frozen=True)
class Values:
    """Distinct rows of some columns, on the driver; `schema` is what Spark calls their types."""

    rows: pa.Table
    schema: str

    def frame(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame(self.rows, schema=self.schema)

    @property
    def count(self) -> int:
        return int(self.rows.num_rows)

    @staticmethod
    def together(parts: Sequence[Values]) -> Values | None:
        """The values of all parts; None when they are not of the same types."""
        if any(part.schema != parts[0].schema for part in parts):
            return None
        return _distinct(pa.concat_tables([part.rows for part in parts]), parts[0].schema)


def changed_values(
    spark: SparkSession, log: DeltaLog, window: tuple[int, int], names: Sequence[str]
) -> Values | None:
    """What the changed rows of a window have in some columns, before and after, not netted.

    An update that leaves the columns as they are must count: only a whole row can cancel.
    """
    types = {column.name.lower(): column.type for column in columns_of(log.snapshot(window[1]))}
    columns = [Column(f"t{i}", types[name.lower()]) for i, name in enumerate(names)]
    if not can_be_fetched(columns):
        return None
    items = [f"{quote(name)} AS {column.name}" for name, column in zip(names, columns, strict=True)]
    rows = changed_rows(log, window, names, columns)
    if rows is None:
        frame = read_changes(spark, log, *window, list(dict.fromkeys(names)), "__weight_of_change")
        rows = frame.selectExpr(*items).distinct().toArrow()
    return _distinct(rows.select([column.name for column in columns]), _schema(columns))


@dataclass(frozen=True)
class KeptRows:
    """Rows of a table in a folder of files; a few of them also on the driver."""

    path: Path
    schema: StructType
    count: int
    few: pa.Table | None = None

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows, in any session."""
        if self.few is not None:
            return spark.createDataFrame(self.few, schema=self.schema)
        return spark.read.schema(self.schema).parquet(str(self.path))

    def has(self, names: Iterable[str]) -> bool:
        known = {name.lower() for name in self.schema.names}
        return all(name.lower() in known for name in names)

    def values(self, spark: SparkSession, names: Sequence[str], most: int) -> Values | None:
        """What they have in some columns; None when that is more than the driver is to hold."""
        types = {f.name.lower(): f.dataType.simpleString() for f in self.schema}
        columns = [Column(f"t{i}", types[name.lower()]) for i, name in enumerate(names)]
        if not can_be_fetched(columns):
            return None
        items = [f"{quote(name)} AS t{i}" for i, name in enumerate(names)]
        rows = self.frame(spark).selectExpr(*items).distinct().limit(most + 1).toArrow()
        return Values(rows, _schema(columns)) if rows.num_rows <= most else None


def keep_rows(frame: DataFrame, path: Path, few: int) -> KeptRows:
    """Compute a frame's rows once, into a folder; at most `few` are held here as well."""
    frame.write.parquet(str(path))
    count = sum(pq.read_metadata(file).num_rows for file in path.glob("*.parquet"))
    kept = KeptRows(path, frame.schema, count)
    columns = [Column(field.name, field.dataType.simpleString()) for field in frame.schema]
    if count > few or not can_be_fetched(columns):
        return kept
    return replace(kept, few=kept.frame(frame.sparkSession).toArrow())


def share_of(log: DeltaLog, version: int, names: Sequence[str], values: Values) -> float | None:
    """About which share of a table's rows has one of the values; None when that is not known."""
    snapshot = log.snapshot(version)
    if not is_plain(snapshot):
        return None
    files = sorted(snapshot.files, key=lambda file: file.size, reverse=True)[:_SAMPLED_FILES]
    # Not much smaller ones: each counts alike.
    paths = [file.path for file in files if file.size * 2 >= files[0].size]
    try:
        sample = pa.concat_tables([_first_rows(path, names) for path in paths])
        types = [sample.schema.field(i).type for i in range(len(names))]
        wanted = pa.schema([(f"t{i}", type_) for i, type_ in enumerate(types)])
        met = sample.join(
            values.rows.cast(wanted), list(sample.column_names), list(wanted.names), "left semi"
        )
    except (OSError, KeyError, ValueError, pa.ArrowException):
        return None
    return float(met.num_rows / max(1, sample.num_rows))


def _first_rows(path: str, names: Sequence[str]) -> pa.Table:
    with pq.ParquetFile(path) as file:
        batches = file.iter_batches(_SAMPLED_ROWS, columns=list(names))
        table = pa.Table.from_batches([next(batches)])
        found = table.select(list(names))
    return found.rename_columns([f"s{i}" for i in range(len(names))])


def _distinct(rows: pa.Table, schema: str) -> Values:
    return Values(rows.group_by(rows.column_names, use_threads=False).aggregate([]), schema)


def _schema(columns: Sequence[Column]) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in columns)
