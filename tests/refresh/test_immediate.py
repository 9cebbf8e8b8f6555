"""IMMEDIATE: a write and its effect arrive together, and no read is stale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from refresh.helpers import SALES, orders
from runnel.api import Lake
from runnel.errors import (
    AlreadyExists,
    ImmediateRefreshFailed,
    NotDifferentiable,
    QueryFailed,
    UserError,
)

pytestmark = pytest.mark.spark

BIG = "SELECT cust, total FROM sales WHERE total > 5"


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((row[0], str(row[1])) for row in frame.collect())


def last(lake: Lake, name: str) -> tuple[str | None, int]:
    """The last action, and how many attempts there were."""
    history = lake.history(name, limit=100)
    return history[0].action, len(history)


def test_a_write_through_sql_takes_everything_below_along(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES)
    lake.create_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    lake.create_stream_table("late", "SELECT id FROM orders")
    lake.sql("INSERT INTO orders VALUES (4, 11, 20.00)")
    assert last(lake, "big") == ("DIFFERENTIAL", 2)
    assert rows(lake.table("big")) == [(10, "12.50"), (11, "21.25")]
    assert last(lake, "late") == ("FULL", 1)
    lake.sql("DELETE FROM orders WHERE cust = 10")
    assert rows(lake.sql("SELECT * FROM big")) == [(11, "21.25")]
    assert last(lake, "big") == ("DIFFERENTIAL", 3)
    assert lake.verify("big").ok
    assert lake.verify("sales").ok
    assert lake.status("big").mode == "IMMEDIATE"


def test_frames_are_written_and_followed(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="IMMEDIATE")
    more = lake.spark.sql("SELECT CAST(1 AS DECIMAL(12,2)) amount, 4L id, CAST(12 AS INT) cust")
    lake.write(more, "orders")
    assert last(lake, "sales") == ("DIFFERENTIAL", 2)
    assert rows(lake.table("sales")) == [(10, "12.50"), (11, "1.25"), (12, "1.00")]
    lake.write(more, "orders", mode="overwrite")
    assert last(lake, "sales") == ("DIFFERENTIAL", 3)
    assert rows(lake.table("sales")) == [(12, "1.00")]
    lake.write(more, "fresh")
    assert lake.table("fresh").count() == 1
    lake.write(more, "fresh", mode="ignore")
    assert lake.table("fresh").count() == 1
    with pytest.raises(AlreadyExists, match="fresh"):
        lake.write(more, "fresh", mode="error")
    with pytest.raises(UserError, match="stream table"):
        lake.write(more, "sales")
    with pytest.raises(UserError, match="not a way"):
        lake.write(more, "orders", mode="upsert")


def in_snapshot(lake: Lake) -> Any:
    with lake.snapshot(["sales"]) as snapshot:
        return snapshot.table("sales")


def test_other_writers_are_noticed_at_every_kind_of_read(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="IMMEDIATE")
    lake.sql("CREATE VIEW seen AS SELECT cust, total FROM sales")
    lake.sql("CREATE VIEW seen_again AS SELECT * FROM seen")
    lake.sql("CREATE TEMPORARY VIEW mine AS SELECT * FROM seen_again")
    reads = [
        lambda: lake.table("sales"),
        lambda: lake.sql("SELECT * FROM sales"),
        lambda: lake.sql("WITH s AS (SELECT cust, total FROM seen_again) SELECT * FROM s"),
        lambda: lake.table("seen"),
        lambda: lake.sql("SELECT * FROM mine"),
        lambda: in_snapshot(lake),
    ]
    for n, read in enumerate(reads, start=1):
        source.append((10 + n, 11, "1.00"))
        assert rows(read())[1][1] == f"{n + 1}.25", n
        assert last(lake, "sales") == ("DIFFERENTIAL", n + 1)
    source.append((30, 11, "1.00"))
    lake.sql("CREATE TABLE copy USING delta AS SELECT cust, total FROM seen")
    assert rows(lake.table("copy"))[1][1] == "8.25"
    lake.sql("DROP VIEW mine")


def test_a_read_of_what_is_up_to_date_runs_no_job(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES)
    lake.create_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    status = lake.spark.sparkContext.statusTracker()
    lake.spark.sparkContext.setJobGroup("reading", "")
    lake.sql("SELECT * FROM big")
    lake.table("big")
    jobs = status.getJobIdsForGroup("reading")
    lake.spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert list(jobs) == []
    assert last(lake, "big") == ("FULL", 1)


def test_a_failing_refresh_leaves_the_write(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    query = "SELECT cust, SUM(10 DIV (amount - 2)) AS total FROM orders GROUP BY cust"
    lake.create_stream_table("sales", query, refresh_mode="IMMEDIATE")
    before = rows(lake.table("sales"))
    with pytest.raises(ImmediateRefreshFailed, match="orders was written") as caught:
        lake.sql("INSERT INTO orders VALUES (4, 11, 2.00)")
    assert isinstance(caught.value.__cause__, QueryFailed)
    assert "the write is committed" in str(caught.value)
    assert lake.sql("SELECT * FROM orders WHERE id = 4").count() == 1
    with pytest.raises(ImmediateRefreshFailed, match="before being read"):
        lake.table("sales")
    lake.sql("ALTER STREAM TABLE sales SUSPEND")
    assert rows(lake.table("sales")) == before
    lake.sql("DELETE FROM orders WHERE id = 4")
    lake.sql("ALTER STREAM TABLE sales RESUME")
    assert rows(lake.table("sales")) == before
    assert lake.verify("sales").ok


def test_what_immediate_asks_for(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    with pytest.raises(UserError, match="no schedule") as caught:
        lake.create_stream_table("sales", SALES, schedule="5m", refresh_mode="IMMEDIATE")
    assert caught.value.hint
    with pytest.raises(NotDifferentiable):
        lake.create_stream_table(
            "now", "SELECT id, current_date() AS day FROM orders", refresh_mode="IMMEDIATE"
        )
    lake.create_stream_table("sales", SALES, schedule="5m")
    with pytest.raises(UserError, match="no schedule"):
        lake.alter_stream_table("sales", refresh_mode="IMMEDIATE")
    lake.alter_stream_table("sales", refresh_mode="IMMEDIATE", schedule=None)
    with pytest.raises(UserError, match="no schedule"):
        lake.sql("ALTER STREAM TABLE sales SET SCHEDULE '5m'")
    lake.create_stream_table("now", "SELECT id, current_date() AS day FROM orders")
    with pytest.raises(UserError, match="differentially"):
        lake.alter_stream_table("now", refresh_mode="IMMEDIATE")


def test_a_redefined_view_is_noticed_at_a_read(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.sql("CREATE VIEW chosen AS SELECT * FROM orders WHERE cust = 10")
    lake.create_stream_table("sales", "SELECT cust, amount FROM chosen", refresh_mode="IMMEDIATE")
    assert rows(lake.table("sales")) == [(10, "5.00"), (10, "7.50")]
    lake.sql("CREATE OR REPLACE VIEW chosen AS SELECT * FROM orders WHERE cust = 11")
    assert rows(lake.table("sales")) == [(11, "1.25")]
    assert last(lake, "sales")[0] == "REINITIALIZE"


def test_an_unfilled_table_is_filled_by_the_first_read(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="IMMEDIATE", initialize=False)
    assert rows(lake.table("sales")) == [(10, "12.50"), (11, "1.25")]
