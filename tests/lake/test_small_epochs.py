"""Small epochs are written without Spark's writer; what is read is the same."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from runnel.lake import small_epochs
from runnel.lake.appending import AppendStats
from runnel.lake.trace import Trace
from runnel.model.columns import WEIGHT, Column, Layout

_TYPES = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "date",
    "timestamp", "timestamp_ntz", "decimal(5,2)", "decimal(18,4)", "decimal(38,10)",
)  # fmt: skip
_COLUMNS = tuple(Column(f"c{n}", type_) for n, type_ in enumerate(_TYPES))
_LAYOUT = Layout(_COLUMNS, tuple(c.name for c in _COLUMNS), tuple((c, c.name) for c in _COLUMNS))
_VALUES = (
    "TRUE, -128Y, -32768S, 2147483647, -9223372036854775808L, CAST('NaN' AS FLOAT), -1.5D, 'Zoë', "
    "DATE '0001-01-01', TIMESTAMP '0999-05-05 03:04:05.678901', "
    "TIMESTAMP_NTZ '1500-02-28 00:00:00', CAST(-999.99 AS DECIMAL(5,2)), "
    "CAST(12345678901234.5678 AS DECIMAL(18,4)), "
    "CAST(-1234567890123456789012345678.0123456789 AS DECIMAL(38,10))"
)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return Trace(str(tmp_path / "trace"), "life", _LAYOUT)


def rows(spark: SparkSession, *weights: int, values: str = _VALUES) -> DataFrame:
    names = ", ".join(c.name for c in _COLUMNS)
    nulls = ", ".join("NULL" for _ in _COLUMNS)
    made = " UNION ALL ".join(
        f"SELECT {items}, {weight}L" for weight in weights for items in (values, nulls)
    )
    items = ", ".join(f"CAST({c.name} AS {c.type}) AS {c.name}" for c in _COLUMNS)
    return spark.sql(
        f"SELECT {items}, {WEIGHT} FROM (SELECT * FROM ({made}) AS t({names}, {WEIGHT}))"
    )


def files(trace: Trace) -> list[dict[str, Any]]:
    snapshot = trace.log.snapshot(trace.log.latest_version())
    found = [pq.read_metadata(file.path) for file in snapshot.files]
    return [{"by": m.created_by, "rows": m.num_rows} for m in found]


def bag(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.collect()))


def test_all_types_come_back_as_they_were(spark: SparkSession, trace: Trace) -> None:
    trace.append(spark, rows(spark, 1), 1, {}, rows_hint=2)
    stats = trace.append(spark, rows(spark, 2), 2, {}, rows_hint=4)
    assert (stats.rows_inserted, stats.rows_deleted) == (4, 0)
    assert {f["by"].split()[0] for f in files(trace)} == {"parquet-cpp-arrow", "parquet-mr"}
    by_arrow = trace.window(spark, 1, 2).drop("__epoch")
    assert bag(by_arrow) == sorted(2 * bag(trace.window(spark, 0, 1).drop("__epoch")))
    gone = trace.append(spark, rows(spark, -3), 3, {}, rows_hint=4)
    assert (gone.rows_inserted, gone.rows_deleted) == (0, 6)
    assert trace.readout(spark).count() == 0


def test_view_reads_them_too(spark: SparkSession, trace: Trace) -> None:
    trace.append(spark, rows(spark, 1), 1, {}, rows_hint=2)
    once = bag(spark.sql(trace.readout_sql()))
    trace.append(spark, rows(spark, 1), 2, {}, rows_hint=4)
    assert bag(spark.sql(trace.readout_sql())) == sorted(2 * once)
    trace.compact(spark, 2)
    assert bag(trace.readout(spark)) == sorted(2 * once)


def test_no_row_leaves_no_file(spark: SparkSession, trace: Trace) -> None:
    trace.append(spark, rows(spark, 1), 1, {}, rows_hint=2)
    assert trace.append(spark, rows(spark, 1).where("FALSE"), 2, {}).is_new
    assert len(files(trace)) == 1
    assert len(list(Path(trace.path).glob("run-*"))) == 1
    last = trace.last_commit()
    assert last is not None
    assert last.epoch == 2


def test_more_than_expected_is_written_by_spark(
    spark: SparkSession, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_epochs, "_MOST", 4)
    trace.append(spark, rows(spark, 1), 1, {}, rows_hint=2)
    trace.append(spark, rows(spark, 5), 2, {}, rows_hint=4)
    assert {f["by"].split()[0] for f in files(trace)} == {"parquet-mr"}
    assert not trace._is_long
    assert trace.readout(spark).count() == 12


def test_long_texts_are_tried_once(
    spark: SparkSession, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[DataFrame] = []
    fetch = small_epochs.rows_if_few
    monkeypatch.setattr(
        small_epochs, "rows_if_few", lambda f, *more: (tried.append(f), fetch(f, *more))[1]
    )
    long = _VALUES.replace("'Zoë'", "repeat('x', 100000)")
    written = [
        trace.append(spark, rows(spark, 1, values=long), epoch, {}, rows_hint=4)
        for epoch in (1, 2, 3)
    ]
    assert [stats.is_long for stats in written] == [False, True, False]
    assert len(tried) == 1
    assert trace.readout(spark).count() == 6


def test_what_is_expected() -> None:
    def last(inserted: int, deleted: int) -> Any:
        return small_epochs.TraceCommit(3, 3, 1, {}, inserted, deleted)

    text = (Column("c0", "string"),)
    assert small_epochs.is_expected(last(1, 2), text, 100)
    assert small_epochs.is_expected(last(1, 2), text, None)
    assert not small_epochs.is_expected(None, text, 100), "the first fill"
    assert not small_epochs.is_expected(last(1, 2), text, 1_000_000)
    assert not small_epochs.is_expected(last(5_000, 5_000), text, 100)
    assert not small_epochs.is_expected(last(1, 2), (Column("c0", "map<int,int>"),), 100)


def test_dates_of_old_are_what_they_were(spark: SparkSession, trace: Trace) -> None:
    """Files of which Spark does not know who wrote them may mean another calendar."""
    trace.append(spark, rows(spark, 1), 1, {}, rows_hint=2)
    trace.append(spark, rows(spark, 1), 2, {}, rows_hint=2)
    found = trace.window(spark, 1, 2).where("c3 IS NOT NULL").first()
    assert found is not None
    assert found["c8"] == datetime.date(1, 1, 1)
    assert found["c13"] == Decimal("-1234567890123456789012345678.0123456789")


def test_stats_are_those_of_spark(spark: SparkSession, trace: Trace) -> None:
    one: AppendStats = trace.append(spark, rows(spark, 3, -1), 1, {})
    other: AppendStats = trace.append(spark, rows(spark, 3, -1), 2, {}, rows_hint=2)
    assert (one.rows_inserted, one.rows_deleted) == (other.rows_inserted, other.rows_deleted)
    assert (other.rows_inserted, other.rows_deleted) == (6, 2)
