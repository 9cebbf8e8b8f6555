"""Small tables read without Spark: the same rows, and none of those that only Spark can read."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from runnel.lake import local_files
from runnel.lake.local_files import local_rows
from runnel.lake.log import DeltaLog
from runnel.lake.reading import read_version

pytestmark = pytest.mark.spark

_COLUMNS = (
    "a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f STRING, g DATE, h DECIMAL(12,2), "
    "i DECIMAL(38,10), j DOUBLE, k FLOAT, `odd ``name` INT"
)
_ROWS = (
    "(TRUE, 1, -2, 3, 4, 'x', DATE'2026-01-02', 5.25, 12345678901234567890.5, -0.0, 1.5, 7), "
    "(FALSE, 127, 9, -3, 1L << 62, '', DATE'9999-12-31', -0.01, -1, DOUBLE('NaN'), "
    "FLOAT('Infinity'), 8), "
    "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
)


def made(spark: SparkSession, path: Path, columns: str, *rows: str) -> DeltaLog:
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta")
    for values in rows:
        spark.sql(f"INSERT INTO delta.`{path}` VALUES {values}")
    return DeltaLog(str(path))


def here(spark: SparkSession, log: DeltaLog, *names: str) -> DataFrame | None:
    snapshot = log.snapshot(log.latest_version())
    return local_rows(spark, snapshot, snapshot.files, names or None)


def seen(frame: DataFrame) -> list[str]:
    """Rows by their texts: NaN and -0.0 are told apart."""
    return sorted(map(str, frame.collect()))


def test_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    log = made(spark, tmp_path / "t", _COLUMNS, _ROWS, _ROWS)
    local = here(spark, log)
    assert local is not None
    scanned = read_version(spark, log, log.latest_version())
    assert local.dtypes == scanned.dtypes
    assert seen(local) == seen(scanned)


@pytest.mark.parametrize(
    "type_", ["TIMESTAMP", "ARRAY<INT>", "CHAR(3)", "BINARY", "STRUCT<x: INT>"]
)
def test_other_types_are_left_to_spark(spark: SparkSession, tmp_path: Path, type_: str) -> None:
    log = made(spark, tmp_path / "t", f"a INT, b {type_}", "(1, NULL)")
    assert here(spark, log) is None
    assert here(spark, log, "a") is not None


def test_what_files_lack_or_hold_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    log = made(spark, tmp_path / "t", "a INT, b DATE", "(1, DATE'1500-01-01')")
    assert here(spark, log, "b") is None
    spark.sql(f"ALTER TABLE delta.`{log.path}` ADD COLUMN c INT")
    assert here(spark, log, "a") is not None
    assert here(spark, log, "a", "c") is None


def test_much_is_left_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = made(spark, tmp_path / "t", "a INT", "(1), (2)", "(3)")
    assert here(spark, log) is not None
    for limit, most in (("_MOST_ROWS", 2), ("_MOST_FILES", 1), ("_MOST_BYTES", 10)):
        with monkeypatch.context() as patch:
            patch.setattr(local_files, limit, most)
            assert here(spark, log) is None
