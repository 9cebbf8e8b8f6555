"""Views as sources: inlined to any depth, stored with the table, and watched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import runnel
from kit.bags import bag
from refresh.helpers import SALES, Source, check, orders
from runnel.api import Lake
from runnel.errors import InvalidQuery, NotDifferentiable, NotFound, SourceError, UserError
from runnel.lake.views import stamp_of

pytestmark = pytest.mark.spark

_OVER_VIEW = "SELECT cust, SUM(amount) AS total FROM big GROUP BY cust"


@pytest.fixture(autouse=True)
def no_temporary_views(spark: SparkSession) -> Iterator[None]:
    """Temporary views of a test end with it."""
    yield
    for row in spark.sql("SHOW VIEWS").collect():
        if row["isTemporary"]:
            spark.catalog.dropTempView(row["viewName"])


def same_as_spark(lake: Lake, name: str, query: str) -> None:
    """The contents are what Spark itself says of the query, views and all."""
    found = bag(tuple(row) for row in lake.table(name).collect())
    assert found == bag(tuple(row) for row in lake.spark.sql(query).collect())


def lasting(lake: Lake) -> dict[str | None, str]:
    """Who has to start over, and why."""
    found = lake.alerts(kind="reinitialize_needed", lasting=True)
    return {alert.table: alert.message for alert in found}


@pytest.mark.parametrize("kind", ["VIEW", "TEMPORARY VIEW"])
def test_a_view_is_followed_to_its_tables(lake: Lake, tmp_path: Path, kind: str) -> None:
    source = orders(lake, tmp_path)
    lake.sql(f"CREATE {kind} big (id COMMENT 'the number', cust, amount) COMMENT 'all of them' AS "
             f"SELECT id, cust, amount * 2 {'' if kind[0] == 'T' else 'AS a'} FROM orders WHERE amount > 1 -- not the small ones")  # fmt: skip
    status = lake.create_stream_table("sales", _OVER_VIEW, refresh_mode="DIFFERENTIAL")
    assert status.sources == ("orders",)
    assert status.query == _OVER_VIEW
    assert [view.split()[0] for view in status.views] == ["big"]
    same_as_spark(lake, "sales", _OVER_VIEW)
    source.append((4, 12, "2.00"), (5, 10, "0.50"))
    source.delete("id = 1")
    check(lake, "sales", "DIFFERENTIAL")
    same_as_spark(lake, "sales", _OVER_VIEW)
    check(lake, "sales", "NO_DATA", "no source changed")
    assert "big" in str(lake.explain("sales"))


def test_views_of_views_with_ctes_stars_and_names_of_their_own(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    names = Source(lake, tmp_path, "names", {"cust": "int", "name": "string"}, [(10, "a")])
    lake.sql("CREATE VIEW everything AS SELECT * FROM orders")
    lake.sql(
        "CREATE VIEW totals (who, total) AS WITH names AS (SELECT cust, amount FROM everything) "
        "SELECT cust, SUM(amount) AS t FROM names GROUP BY cust"
    )
    lake.sql("CREATE TEMPORARY VIEW few AS SELECT who, total FROM totals WHERE total > 1")
    query = (
        "WITH orders AS (SELECT 11 AS who UNION ALL SELECT 10) SELECT few.who, total, n.name "
        "FROM few JOIN orders USING (who) LEFT JOIN names n ON n.cust = few.who"
    )
    lake.create_stream_table("st", query, refresh_mode="DIFFERENTIAL")
    same_as_spark(lake, "st", query)
    source.append((4, 11, "2.00"))
    names.append((11, "b"))
    check(lake, "st", "DIFFERENTIAL")
    same_as_spark(lake, "st", query)
    lake.sql("ALTER TABLE orders ADD COLUMNS (note STRING)")
    source.columns = {**source.columns, "note": "string"}
    source.append((5, 10, "2.00", "x"))
    check(lake, "st", "DIFFERENTIAL")
    same_as_spark(lake, "st", query)


def test_a_view_over_a_stream_table_reads_the_stream_table(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.sql("CREATE VIEW busy AS SELECT cust, n FROM sales WHERE n > 1")
    query = "SELECT COUNT(*) AS c FROM busy"
    status = lake.create_stream_table("st", query, refresh_mode="DIFFERENTIAL")
    assert status.sources == ("sales",)
    assert lake.refresh_order("st") == ("sales", "st")
    source.append((4, 11, "2.00"))
    check(lake, "st", "DIFFERENTIAL")
    same_as_spark(lake, "st", query)


def test_a_view_looks_for_names_in_its_own_schema(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.sql("CREATE SCHEMA IF NOT EXISTS vs")
    try:
        lake.sql(
            f"CREATE TABLE vs.orders (id BIGINT, cust INT) USING delta LOCATION '{tmp_path}/vs_orders'"
        )
        lake.sql("INSERT INTO vs.orders VALUES (7, 70)")
        lake.spark.sql("USE vs")
        lake.spark.sql("CREATE VIEW vs.mine AS SELECT orders.id, vs.orders.cust FROM orders")
        lake.spark.sql("USE default")
        query = "SELECT m.id, o.id AS other FROM vs.mine m CROSS JOIN orders o"
        status = lake.create_stream_table("st", query, refresh_mode="DIFFERENTIAL")
        assert sorted(status.sources) == ["orders", "vs.orders"]
        same_as_spark(lake, "st", query)
        lake.sql("INSERT INTO vs.orders VALUES (8, 80)")
        check(lake, "st", "DIFFERENTIAL")
    finally:
        lake.spark.sql("USE default")
        lake.spark.sql("DROP SCHEMA vs CASCADE")


def test_a_temporary_view_comes_before_a_table_of_its_name(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.sql("CREATE TEMPORARY VIEW orders AS SELECT id FROM default.orders WHERE id > 1")
    query = "SELECT COUNT(*) AS n FROM orders"
    lake.create_stream_table("st", query)
    same_as_spark(lake, "st", query)
    assert lake.verify("st").ok


def test_what_has_no_text_is_refused(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.spark.table("orders").createOrReplaceTempView("frame")
    with pytest.raises(InvalidQuery, match="no SQL text") as caught:
        lake.create_stream_table("st", "SELECT * FROM frame")
    assert "CREATE TEMPORARY VIEW" in (caught.value.hint or "")
    lake.sql("CREATE TEMPORARY VIEW above AS SELECT * FROM frame")
    with pytest.raises(InvalidQuery, match="in view above"):
        lake.create_stream_table("st", "SELECT * FROM above")
    with pytest.raises(NotFound, match="nowhere"):
        lake.create_stream_table("st", "SELECT * FROM nowhere")
    assert len(lake.status()) == 0


def test_a_view_made_with_other_settings_is_refused(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        lake.sql("CREATE VIEW lax AS SELECT CAST(amount AS INT) AS a FROM orders")
    finally:
        lake.spark.conf.set("spark.sql.ansi.enabled", "true")
    with pytest.raises(InvalidQuery, match=r"ansi\.enabled = false") as caught:
        lake.create_stream_table("st", "SELECT a FROM lax")
    assert "SET spark.sql.ansi.enabled" in (caught.value.hint or "")


def test_a_view_keeps_the_types_it_was_created_with(lake: Lake, tmp_path: Path) -> None:
    lake.sql(f"CREATE TABLE wide (a INT) USING delta LOCATION '{tmp_path}/wide'")
    lake.sql("CREATE VIEW narrow AS SELECT a FROM wide")
    lake.sql("DROP TABLE wide")
    lake.sql(f"CREATE TABLE wide (a BIGINT) USING delta LOCATION '{tmp_path}/wide2'")
    lake.sql("INSERT INTO wide VALUES (1), (2)")
    status = lake.create_stream_table("st", "SELECT a FROM narrow", refresh_mode="DIFFERENTIAL")
    assert status.columns == ("a int",)
    same_as_spark(lake, "st", "SELECT a FROM narrow")


@pytest.mark.parametrize("kind", ["VIEW", "TEMPORARY VIEW"])
def test_a_redefined_view_reinitialises_the_table(lake: Lake, tmp_path: Path, kind: str) -> None:
    source = orders(lake, tmp_path)
    lake.sql(f"CREATE {kind} big AS SELECT cust, amount FROM orders WHERE amount > 5")
    lake.create_stream_table("sales", _OVER_VIEW, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("n", "SELECT COUNT(*) AS n FROM sales", refresh_mode="DIFFERENTIAL")
    lake.sql(f"CREATE OR REPLACE {kind} big AS SELECT cust, amount FROM orders WHERE amount > 1")
    result = check(lake, "n", "DIFFERENTIAL")
    done = lake.history("sales")[0]
    assert (done.action, done.reason) == ("REINITIALIZE", "view big was redefined")
    assert (done.rows_inserted, done.rows_deleted) == (2, 1), "consumers get the difference only"
    assert result.change_rows == 3
    same_as_spark(lake, "sales", _OVER_VIEW)
    check(lake, "sales", "NO_DATA", "no source changed")
    source.append((4, 12, "2.00"))
    check(lake, "sales", "DIFFERENTIAL")
    same_as_spark(lake, "sales", _OVER_VIEW)


def test_a_redefined_view_may_read_other_tables(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    other = Source(
        lake, tmp_path, "other", {"cust": "int", "amount": "decimal(12,2)"}, [(1, "2.00")]
    )
    lake.create_stream_table("others", "SELECT cust, amount FROM other WHERE cust < 50")
    lake.sql("CREATE VIEW big AS SELECT cust, amount FROM orders")
    lake.create_stream_table("sales", _OVER_VIEW, refresh_mode="DIFFERENTIAL")
    lake.sql("ALTER VIEW big AS SELECT cust, amount FROM others")
    other.append((2, "3.00"))
    check(lake, "sales", "REINITIALIZE", "view big was redefined")
    assert lake.status("sales").sources == ("others",)
    same_as_spark(lake, "sales", _OVER_VIEW)
    other.append((2, "4.00"))
    check(lake, "sales", "DIFFERENTIAL")
    same_as_spark(lake, "sales", _OVER_VIEW)


def test_a_view_is_redefined_for_every_process(
    lake: Lake, tmp_path: Path, spark: SparkSession
) -> None:
    """The catalog of a Spark in memory is the process's own: others do not know the view."""
    orders(lake, tmp_path)
    lake.sql("CREATE VIEW chosen AS SELECT * FROM orders WHERE amount > 5")
    lake.sql("CREATE VIEW big AS SELECT cust, amount FROM chosen")
    lake.create_stream_table("sales", _OVER_VIEW, refresh_mode="DIFFERENTIAL")
    lake.sql("CREATE VIEW small AS SELECT * FROM orders WHERE amount < 5")
    lake.sql("CREATE OR REPLACE VIEW big AS SELECT cust, amount FROM small")
    wanted = bag(tuple(row) for row in spark.sql(_OVER_VIEW).collect())
    for name in ("big", "chosen", "small"):
        spark.sql(f"DROP VIEW {name}")
    with runnel.connect(tmp_path / "lake", spark=spark) as other:
        check(other, "sales", "REINITIALIZE", "view big was redefined")
        assert bag(tuple(row) for row in other.table("sales").collect()) == wanted


def test_a_view_that_does_not_fit_stops_the_table_in_every_process(
    lake: Lake, tmp_path: Path, spark: SparkSession
) -> None:
    orders(lake, tmp_path)
    lake.sql("CREATE VIEW big AS SELECT cust, amount FROM orders")
    lake.create_stream_table("sales", _OVER_VIEW, refresh_mode="DIFFERENTIAL")
    lake.sql("CREATE OR REPLACE VIEW big AS SELECT cust, CAST(id AS BIGINT) AS amount FROM orders")
    spark.sql("DROP VIEW big")
    with runnel.connect(tmp_path / "lake", spark=spark) as other:
        with pytest.raises(SourceError, match="no longer gives the stored columns"):
            other.refresh("sales")
        other.sql("CREATE VIEW big AS SELECT cust, amount FROM orders")
        check(other, "sales", "NO_DATA")


def test_a_redefined_view_that_does_not_fit_stops_the_table(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.sql("CREATE VIEW big AS SELECT cust, amount FROM orders")
    lake.create_stream_table("sales", _OVER_VIEW, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("others", "SELECT id FROM orders")
    before = bag(tuple(row) for row in lake.table("sales").collect())
    lake.sql("CREATE OR REPLACE VIEW big AS SELECT cust, CAST(id AS BIGINT) AS amount FROM orders")
    assert lasting(lake) == {"sales": "view big was redefined"}
    source.append((4, 12, "2.00"))
    with pytest.raises(SourceError, match="no longer gives the stored columns") as caught:
        lake.refresh()
    assert "ALTER STREAM TABLE sales" in (caught.value.hint or "")
    assert bag(tuple(row) for row in lake.table("sales").collect()) == before
    assert lake.history("sales")[0].outcome == "FAILED"
    assert "stored columns" in (lake.status("sales").last_error or "")
    assert lake.table("others").count() == 4, "others go on"
    assert lasting(lake) == {"sales": "view big was redefined"}
    lake.sql("CREATE OR REPLACE VIEW big AS SELECT cust, amount FROM orders")
    assert lasting(lake) == {}, "it means again what it meant"
    check(lake, "sales", "DIFFERENTIAL")
    assert lake.status("sales").last_error is None


def test_a_redefined_view_for_which_something_else_is_kept_starts_the_table_over(
    lake: Lake, tmp_path: Path
) -> None:
    source = orders(lake, tmp_path)
    lake.sql("CREATE VIEW big AS SELECT cust FROM orders")
    query = "SELECT COUNT(*) AS n FROM big GROUP BY cust"
    lake.create_stream_table("sizes", query, refresh_mode="DIFFERENTIAL")
    lake.sql("CREATE OR REPLACE VIEW big AS SELECT CAST(cust AS STRING) AS cust FROM orders")
    assert lasting(lake) == {"sizes": "view big was redefined"}
    check(lake, "sizes", "REINITIALIZE", "view big was redefined")
    assert lasting(lake) == {}
    source.append((4, 12, "2.00"))
    check(lake, "sizes", "DIFFERENTIAL")


def test_a_view_that_is_gone_stops_the_table(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.sql("CREATE VIEW big AS SELECT cust, amount FROM orders")
    lake.create_stream_table("sales", _OVER_VIEW, refresh_mode="DIFFERENTIAL")
    lake.sql("DROP VIEW big")
    with pytest.raises(SourceError, match="view big, which sales reads, is gone") as caught:
        lake.refresh("sales")
    assert "create it again" in (caught.value.hint or "")
    lake.sql("CREATE VIEW big AS SELECT cust, amount FROM orders")
    source.append((4, 12, "2.00"))
    check(lake, "sales", "DIFFERENTIAL")


def test_a_table_in_the_place_of_a_view_is_noticed(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.sql("CREATE VIEW big AS SELECT cust, amount FROM orders")
    lake.create_stream_table("sales", _OVER_VIEW, refresh_mode="DIFFERENTIAL")
    lake.sql("DROP VIEW big")
    Source(lake, tmp_path, "big", {"cust": "int", "amount": "decimal(12,2)"}, [(1, "2.00")])
    check(lake, "sales", "REINITIALIZE", "view big was redefined")
    same_as_spark(lake, "sales", _OVER_VIEW)


def test_a_temporary_view_may_end_with_its_session(
    lake: Lake, tmp_path: Path, spark: SparkSession
) -> None:
    source = orders(lake, tmp_path)
    lake.sql("CREATE TEMPORARY VIEW big AS SELECT cust, amount FROM orders WHERE amount > 5")
    lake.create_stream_table("sales", _OVER_VIEW, refresh_mode="DIFFERENTIAL")
    if not hasattr(spark, "newSession"):
        pytest.skip("a Connect client has one session")
    with runnel.connect(tmp_path / "lake", spark=spark.newSession()) as other:
        other.sql("CREATE TEMPORARY VIEW big AS SELECT 1 AS nothing_like_it")
        source.append((4, 12, "9.00"))
        check(other, "sales", "DIFFERENTIAL")
        source.delete("id = 2")
        other.alter_stream_table("sales", refresh_mode="FULL")
        check(other, "sales", "FULL")
        assert "big" in str(other.explain("sales"))
        assert other.table("sales").count() == 1
    lake.sql("DROP VIEW big")
    source.append((6, 13, "9.00"))
    check(lake, "sales", "FULL")


def test_stored_definitions_stand_in_when_a_source_is_replaced(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.sql("CREATE TEMPORARY VIEW big AS SELECT cust, amount FROM orders WHERE amount > 5")
    lake.create_stream_table("sales", _OVER_VIEW, refresh_mode="DIFFERENTIAL")
    lake.sql("DROP VIEW big")
    lake.sql("DROP TABLE orders")
    Source(
        lake,
        tmp_path / "again",
        "orders",
        {"id": "bigint", "cust": "int", "amount": "decimal(12,2)"},
        [(1, 1, "6.00")],
    )
    lake.refresh("sales")
    assert lake.verify("sales").ok


def test_a_table_cannot_come_to_read_itself_through_a_view(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.sql("CREATE VIEW big AS SELECT cust, amount FROM orders")
    lake.create_stream_table("st", "SELECT cust, amount FROM big", refresh_mode="DIFFERENTIAL")
    lake.sql("CREATE OR REPLACE VIEW big AS SELECT cust, amount FROM st")
    with pytest.raises(UserError, match="depend on itself"):
        lake.refresh("st")
    lake.sql("CREATE OR REPLACE VIEW big AS SELECT cust, amount FROM orders")
    check(lake, "st", "NO_DATA")


def test_differential_stays_differential_or_says_no(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.sql("CREATE VIEW big AS SELECT id, cust FROM orders")
    lake.create_stream_table("st", "SELECT id, cust FROM big", refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("free", "SELECT id, cust FROM big")
    lake.sql(
        "CREATE OR REPLACE VIEW big AS SELECT id, CASE WHEN now() > DATE'2020-01-01' THEN cust END AS cust FROM orders"
    )
    with pytest.raises(SourceError, match="no longer be refreshed differentially") as caught:
        lake.refresh("st")
    assert "REFRESH MODE AUTO" in (caught.value.hint or "")
    with pytest.raises(NotDifferentiable):
        lake.create_stream_table("more", "SELECT id, cust FROM big", refresh_mode="DIFFERENTIAL")


def test_nothing_to_do_starts_no_spark(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = orders(lake, tmp_path)
    lake.sql("CREATE VIEW big AS SELECT cust, amount FROM orders WHERE amount > 5")
    lake.create_stream_table("sales", _OVER_VIEW, refresh_mode="DIFFERENTIAL")
    opened: list[int] = []

    def open_spark() -> Any:
        opened.append(1)
        return lake.spark

    workspace = lake._workspace
    monkeypatch.setattr(workspace, "open_spark", open_spark)
    monkeypatch.setattr(workspace, "present_spark", lambda: None)
    assert lake.refresh("sales").action == "NO_DATA"
    assert not opened
    monkeypatch.undo()
    lake.sql("CREATE OR REPLACE VIEW big AS SELECT cust, amount FROM orders WHERE amount > 1")
    source.append((4, 12, "2.00"))
    monkeypatch.setattr(workspace, "present_spark", lambda: None)
    check(lake, "sales", "REINITIALIZE", "view big was redefined")


def test_watching_runs_no_job_and_takes_no_time(
    lake: Lake, tmp_path: Path, spark: SparkSession
) -> None:
    orders(lake, tmp_path)
    lake.sql("CREATE VIEW big AS SELECT cust, amount FROM orders WHERE amount > 5")
    lake.create_stream_table("sales", _OVER_VIEW, refresh_mode="DIFFERENTIAL")
    if not hasattr(spark, "newSession"):
        pytest.skip("jobs cannot be counted through Connect")
    view = lake._workspace.catalog.tables()[0].views[0]
    spark.sparkContext.setJobGroup("asking", "")
    assert stamp_of(spark, view) == view.stamp
    assert not spark.sparkContext.statusTracker().getJobIdsForGroup("asking")
    spark.sparkContext.setJobGroup("watching", "")
    assert lake.refresh("sales").action == "NO_DATA"
    spark.sparkContext.setJobGroup("", "")
    assert not spark.sparkContext.statusTracker().getJobIdsForGroup("watching")
