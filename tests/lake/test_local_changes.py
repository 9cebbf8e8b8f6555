"""Where a small change is not read without Spark: what files hold is not always the column."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from lake.helpers import netted
from runnel.lake.local_changes import netted_change
from runnel.lake.log import DeltaLog
from runnel.model.columns import Column

pytestmark = pytest.mark.spark


def made(spark: SparkSession, path: Path, columns: str, *rows: str) -> DeltaLog:
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta")
    for values in rows:
        spark.sql(f"INSERT INTO delta.`{path}` VALUES {values}")
    return DeltaLog(str(path))


def test_types_whose_equality_is_another_are_left_to_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = made(spark, tmp_path / "t", "a DOUBLE, b TIMESTAMP, c ARRAY<INT>, d CHAR(3), e INT",
               "(1.0, now(), array(1), 'x', 5)")  # fmt: skip
    for name, type_ in (("a", "double"), ("b", "timestamp"), ("c", "array<int>"), ("d", "string")):
        assert netted_change(spark, log, (0, 1), [name], [Column("x", type_)]) is None
    assert netted_change(spark, log, (0, 1), [], []) is None
    local = netted_change(spark, log, (0, 1), ["e"], [Column("x", "int")])
    assert local is not None
    assert netted(local[0]) == {(5,): 1}


def test_days_before_the_gregorian_calendar_are_left_to_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = made(spark, tmp_path / "t", "a DATE", "(DATE'1582-10-15'), (NULL)", "(DATE'1582-10-04')")
    columns = [Column("x", "date")]
    assert netted_change(spark, log, (0, 1), ["a"], columns) is not None
    assert netted_change(spark, log, (0, 2), ["a"], columns) is None


def test_a_column_that_files_lack_or_hold_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    log = made(spark, tmp_path / "t", "a INT", "(1)")
    spark.sql(f"ALTER TABLE delta.`{log.path}` ADD COLUMN b INT")
    spark.sql(f"INSERT INTO delta.`{log.path}` VALUES (2, 3)")
    columns = [Column("x", "int"), Column("y", "int")]
    assert netted_change(spark, log, (0, 3), ["a", "b"], columns) is None
    assert netted_change(spark, log, (2, 3), ["a", "b"], columns) is not None
    assert netted_change(spark, log, (2, 3), ["a"], [Column("x", "bigint")]) is None


def test_other_writers_texts_and_long_decimals(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    log = made(spark, path, "a STRING, b DECIMAL(38, 2)", "('ü', 1.50)")
    types = pa.schema([("a", pa.large_string()), ("b", pa.decimal128(38, 2))])
    write_deltalake(
        path, pa.table({"a": ["ü", None], "b": [None, None]}, schema=types), mode="append"
    )
    columns = [Column("x", "string"), Column("y", "decimal(38,2)")]
    local = netted_change(spark, log, (0, 2), ["a", "b"], columns)
    assert local is not None
    assert {(a, None if b is None else str(b)): n for (a, b), n in netted(local[0]).items()} == {
        ("ü", "1.50"): 1, ("ü", None): 1, (None, None): 1
    }  # fmt: skip


def test_an_update_of_other_columns_is_no_change(spark: SparkSession, tmp_path: Path) -> None:
    log = made(spark, tmp_path / "t", "a INT, b INT", "(1, 2), (1, 2)")
    spark.sql(f"UPDATE delta.`{log.path}` SET b = 7")
    local = netted_change(spark, log, (1, 2), ["a"], [Column("x", "int")])
    assert local is not None
    assert (local[0].collect(), local[1]) == ([], 0)
