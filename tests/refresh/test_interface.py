"""The names that others rely on, called one after the other on a lake: in Python, then in SQL."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import runnel
from refresh.helpers import SALES, check, orders
from runnel.api import Lake
from runnel.errors import NotFound, UserError

pytestmark = pytest.mark.spark

_TOP = "SELECT cust, MAX(amount) AS total, COUNT(*) AS n FROM orders GROUP BY cust"


def test_in_python(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    assert lake.spark.sql("SELECT 1 AS x").first()["x"] == 1
    made = lake.create_stream_table(
        "sales", SALES, schedule="1m", refresh_mode="AUTO", comment="what each one's orders bring",
        initialize=True, or_replace=False, if_not_exists=False,
    )  # fmt: skip
    assert (made.mode, made.schedule, made.comment) == (
        "AUTO", "1m", "what each one's orders bring",
    )  # fmt: skip
    source.append((4, 12, "2.00"))
    source.delete("id = 3")
    r = lake.refresh("sales")
    assert (r.action, r.rows_inserted, r.rows_deleted) == ("FULL", 2, 2)
    assert "more than the share of 15% (max_change_ratio)" in r.reason
    assert 0 < r.seconds < 60
    assert r.frontier.pins["default.orders"].version == 2
    assert (r.data_timestamp, r.data_timestamp.tzinfo) == (r.frontier.data_timestamp, UTC)
    assert [row.action for row in lake.refresh()] == ["NO_DATA"]
    assert lake.table("sales").columns == ["cust", "total", "n"]
    v = lake.verify("sales")
    assert (v.ok, v.missing, v.unexpected, v.sample) == (True, 0, 0, ())
    _check_history(lake, r)
    assert [str(edge) for edge in lake.graph().edges] == ["orders -> sales"]
    assert lake.explain("sales").now.startswith("NO_DATA")
    assert lake.explain(query=_TOP).differentiable
    assert lake.status()[0].sources == lake.status("sales").sources == ("orders",)
    _alter_in_python(lake)
    assert lake.compact("sales").name == "sales"
    assert lake.drop_stream_table("sales", cascade=False) == ("sales",)


def _check_history(lake: Lake, done: Any) -> None:
    """What a refresh says of itself is what the history keeps: times by phase, and the prediction."""
    nothing, entry, first = lake.history("sales", limit=20)
    assert (nothing.action, first.reason) == ("NO_DATA", "first fill")
    assert (entry.action, entry.reason, entry.epoch) == (done.action, done.reason, 2)
    assert (entry.frontier, entry.data_timestamp) == (done.frontier, done.data_timestamp)
    assert (entry.phases, entry.predicted) == (done.phases, done.predicted)
    assert {"planning", "compile", "commit"} <= entry.phases.keys()
    assert 0 < sum(entry.phases.values()) <= entry.seconds + 0.01
    assert {"differential", "full", "model"} == entry.predicted.keys()
    assert all(seconds > 0 for seconds in entry.predicted.values())
    assert len(lake.history("sales", limit=1)) == 1


def _alter_in_python(lake: Lake) -> None:
    alter = lake.alter_stream_table
    assert alter("sales", schedule="2h").target_seconds == 7200
    assert alter("sales", refresh_mode="FULL").mode == "FULL"
    assert alter("sales", comment="other").comment == "other"
    assert alter("sales", status="SUSPENDED").state == "SUSPENDED"
    assert alter("sales", status="ACTIVE").state == "ACTIVE"
    seen = alter("sales", query=_TOP)
    assert (seen.query, seen.mode, seen.schedule, seen.comment) == (_TOP, "FULL", "2h", "other")


def test_in_sql(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    clauses = "SCHEDULE '1m' REFRESH MODE DIFFERENTIAL COMMENT 'each one''s orders'"
    lake.sql(
        f"CREATE STREAM TABLE IF NOT EXISTS sales {clauses} WITH (initialize = true) AS {SALES}"
    )
    seen = lake.status("sales")
    assert (seen.schedule, seen.mode, seen.comment) == ("1m", "DIFFERENTIAL", "each one's orders")
    source.append((4, 12, "2.00"))
    lake.sql("ALTER STREAM TABLE sales SET REFRESH MODE FULL")
    assert lake.sql("REFRESH STREAM TABLE sales").reason == "refresh mode is FULL"
    lake.sql("ALTER STREAM TABLE sales SET REFRESH MODE differential")
    assert lake.sql("ALTER STREAM TABLE sales SET SCHEDULE '5m'").target_seconds == 300
    source.append((5, 12, "3.00"))
    assert lake.sql("REFRESH STREAM TABLE sales").action == "DIFFERENTIAL"
    told = lake.sql("EXPLAIN STREAM TABLE sales")
    assert (told.name, told.differentiable) == ("sales", True)
    assert "NO_DATA" in str(told)
    assert lake.sql(f"EXPLAIN STREAM TABLE AS {_TOP}").tree
    assert lake.sql("ALTER STREAM TABLE sales SUSPEND").state == "SUSPENDED"
    assert lake.sql("ALTER STREAM TABLE sales RESUME").state == "ACTIVE"
    lake.sql(f"CREATE OR REPLACE STREAM TABLE sales COMMENT 'the best' AS {_TOP}")
    seen = lake.sql("SHOW STREAM TABLES")[0]
    assert (seen.query, seen.mode, seen.schedule) == (_TOP, "AUTO", None)
    assert seen.comment == "the best"
    assert lake.sql("ALTER STREAM TABLE sales SET COMMENT 'again'").comment == "again"
    assert lake.sql("VERIFY STREAM TABLE sales").ok
    assert {row["cust"]: str(row["total"]) for row in lake.sql("SELECT * FROM sales").collect()} == {
        10: "7.50", 11: "1.25", 12: "3.00",
    }  # fmt: skip
    assert lake.sql("SHOW REFRESH HISTORY FOR sales")[0].reason == "first fill"
    lake.sql("CREATE STREAM TABLE below AS SELECT cust FROM sales")
    assert lake.sql("DROP STREAM TABLE sales CASCADE") == ("sales", "below")
    assert lake.sql("DROP STREAM TABLE IF EXISTS sales") == ()


def test_writers_of_sparks_own_do_not_take_its_name(lake: Lake, tmp_path: Path) -> None:
    """Spark by itself drops a view whose name a frame is saved under."""
    orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES)
    rows = sorted(map(tuple, lake.table("sales").collect()))
    frame = lake.spark.sql("SELECT 1 AS cust, 2 AS total, 3 AS n")
    other = lake.spark.createDataFrame([(1,)], "x int")
    for write in (
        lambda: frame.write.mode("overwrite").saveAsTable("sales"),
        lambda: frame.write.format("delta").mode("append").saveAsTable(name="`Sales`"),
        lambda: other.write.format("delta").mode("overwrite").saveAsTable("default.sales"),
        lambda: frame.write.insertInto("sales", overwrite=True),
        lambda: frame.writeTo("spark_catalog.default.SALES").using("delta").createOrReplace(),
        lambda: frame.writeTo("sales").append(),
    ):
        with pytest.raises(UserError, match=r"(?i)sales is a stream table") as caught:
            write()
        assert caught.value.hint
    assert sorted(map(tuple, lake.sql("SELECT * FROM sales").collect())) == rows
    assert lake.verify("sales").ok
    other.write.format("delta").saveAsTable("others")
    other.writeTo("others").append()
    other.write.format("delta").save(str(tmp_path / "a path.x"))
    assert lake.spark.table("others").count() == 2


def test_a_view_that_spark_alone_put_in_its_place_goes_when_the_lake_is_opened_again(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    """Nobody asks Spark before each statement; what Runnel itself reads it reads by place."""
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("below", "SELECT cust FROM sales", refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "2.00"))
    for statement in ("CREATE OR REPLACE VIEW sales AS SELECT 1 AS cust", "DROP VIEW sales"):
        lake.spark.sql(statement)
        check(lake, "below", "DIFFERENTIAL" if statement.startswith("CREATE") else "NO_DATA")
        rows = sorted(map(tuple, lake.table("sales").collect()))
        assert [row[0] for row in rows] == [10, 11, 12]
        with runnel.connect(lake._workspace.path, spark=spark) as again:
            found = again.sql("SELECT * FROM sales").collect()
        assert sorted(map(tuple, found)) == rows


def test_a_stream_table_cannot_be_written(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES)
    rows = sorted(map(tuple, lake.table("sales").collect()))
    for statement in (
        "INSERT INTO sales VALUES (1, 2, 3)", "INSERT INTO TABLE sales VALUES (1, 2, 3)",
        "INSERT OVERWRITE sales VALUES (1, 2, 3)", "INSERT OVERWRITE TABLE sales SELECT 1, 2, 3",
        "DELETE FROM sales", "UPDATE sales SET n = 1", "TRUNCATE TABLE sales",
        "MERGE INTO sales USING orders ON sales.cust = orders.cust WHEN MATCHED THEN DELETE",
        "ALTER TABLE sales ADD COLUMNS (x INT)", "ALTER VIEW sales AS SELECT 1 AS x",
        "RESTORE TABLE sales TO VERSION AS OF 0",
        "CREATE TABLE sales (x INT) USING delta", "CREATE OR REPLACE TABLE sales (x INT) USING delta",
        "CREATE OR REPLACE VIEW sales AS SELECT 1 AS x", "DROP TABLE sales", "DROP VIEW sales",
    ):  # fmt: skip
        with pytest.raises(UserError, match="stream table") as caught:
            lake.sql(statement)
        assert caught.value.hint, statement
    with pytest.raises(UserError, match="stream table"):
        lake.write(lake.spark.sql("SELECT 1 AS cust, 2 AS total, 3 AS n"), "sales")
    with pytest.raises(PySparkException, match=r"(?i)view"):
        lake.spark.sql("INSERT INTO sales VALUES (1, 2, 3)")
    assert sorted(map(tuple, lake.sql("SELECT * FROM sales").collect())) == rows
    with pytest.raises(NotFound):
        lake.sql("ALTER STREAM TABLE nowhere SUSPEND")
