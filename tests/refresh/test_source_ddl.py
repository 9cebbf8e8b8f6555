"""Sources that change their shape: harmless, started over, or stopped with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import runnel
from refresh.helpers import ORDERS, SALES, Source, check, orders
from runnel.api import Lake
from runnel.errors import InUse, SourceError, UserError

pytestmark = pytest.mark.spark

MAPPED = "ALTER TABLE orders SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
WIDENING = "ALTER TABLE orders SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"


def rows(frame: Any) -> list[tuple[str, ...]]:
    return sorted(tuple(map(str, row)) for row in frame.collect())


def lasting(lake: Lake) -> list[str]:
    """Who has to start over, and has not."""
    found = lake.alerts(kind="reinitialize_needed", lasting=True)
    return [f"{alert.table}: {alert.message}" for alert in found]


def reopened(lake: Lake, **settings: Any) -> Lake:
    """The same lake as another process finds it: nothing compiled yet."""
    return runnel.connect(lake._workspace.path, spark=lake.spark, **settings)


@pytest.mark.parametrize("mode", ["DIFFERENTIAL", pytest.param("FULL", marks=pytest.mark.slow)])
def test_a_star_does_not_show_a_column_that_is_added(lake: Lake, tmp_path: Path, mode: str) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("copy", "SELECT * FROM orders", refresh_mode=mode)
    lake.sql("ALTER TABLE orders ADD COLUMNS (note STRING)")
    source.columns = {**source.columns, "note": "string"}
    source.append((4, 12, "2.00", "new"))
    with reopened(lake) as again:
        check(again, "copy", mode)
        assert again.table("copy").columns == ["id", "cust", "amount"]
        assert rows(again.table("copy").where("id = 4")) == [("4", "12", "2.00")]
        again.sql("ALTER STREAM TABLE copy AS SELECT * FROM orders")
        assert again.table("copy").columns == ["id", "cust", "amount", "note"]


def test_starting_over_does_not_show_it_either(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.create_stream_table("copy", "SELECT * FROM orders", refresh_mode="DIFFERENTIAL")
    lake.sql(
        f"CREATE OR REPLACE TABLE orders USING delta LOCATION '{tmp_path}/orders' AS SELECT "
        "'x' AS note, 7L AS id, CAST(1 AS INT) AS cust, CAST(2 AS DECIMAL(12,2)) AS amount"
    )
    check(lake, "copy", "REINITIALIZE", "created again")
    assert lake.table("copy").columns == ["id", "cust", "amount"]
    assert rows(lake.table("copy")) == [("7", "1", "2.00")]


def test_an_added_column_makes_no_name_ambiguous(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    Source(lake, tmp_path, "people", {"who": "int", "name": "string"}, [(10, "a"), (11, "b")])
    query = "SELECT id, name FROM orders JOIN people ON cust = who"
    lake.create_stream_table("named", query, refresh_mode="DIFFERENTIAL")
    lake.sql("ALTER TABLE orders ADD COLUMNS (name STRING)")
    source.columns = {**source.columns, "name": "string"}
    source.append((4, 11, "2.00", "z"))
    with reopened(lake) as again:
        check(again, "named", "DIFFERENTIAL")
        assert ("4", "b") in rows(again.table("named"))


def test_only_users_of_a_dropped_column_are_concerned(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.sql(MAPPED)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("ids", "SELECT id FROM orders", refresh_mode="DIFFERENTIAL")
    before = rows(lake.table("sales"))
    lake.sql("ALTER TABLE orders DROP COLUMN amount")
    lake.sql("INSERT INTO orders VALUES (4, 12)")
    check(lake, "ids", "DIFFERENTIAL")
    with pytest.raises(SourceError, match="no longer fits") as caught:
        lake.refresh("sales")
    assert "amount" in str(caught.value)
    assert rows(lake.table("sales")) == before
    assert "no longer fits" in (lake.status("sales").last_error or "")
    lake.sql("ALTER TABLE orders ADD COLUMNS (amount DECIMAL(12,2))")
    check(lake, "sales", "REINITIALIZE", "amount")


def test_a_renamed_column(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.sql(MAPPED)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.sql("ALTER TABLE orders RENAME COLUMN id TO number")
    check(lake, "sales", "NO_DATA")
    lake.sql("ALTER TABLE orders RENAME COLUMN amount TO price")
    with pytest.raises(SourceError, match="no longer fits"):
        lake.refresh("sales")


def test_a_retyped_column(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.sql(WIDENING)
    lake.create_stream_table("shown", "SELECT cust FROM orders", refresh_mode="DIFFERENTIAL")
    lake.create_stream_table(
        "counted", "SELECT COUNT(DISTINCT cust) AS n FROM orders", refresh_mode="DIFFERENTIAL"
    )
    lake.create_stream_table("ids", "SELECT id FROM orders", refresh_mode="DIFFERENTIAL")
    lake.sql("ALTER TABLE orders ALTER COLUMN cust TYPE BIGINT")
    lake.sql("INSERT INTO orders VALUES (4, 5000000000, 1.00)")
    check(lake, "ids", "DIFFERENTIAL")
    with pytest.raises(SourceError, match="no longer gives the stored columns"):
        lake.refresh("shown")
    lake.sql("ALTER STREAM TABLE shown AS SELECT cust FROM orders")
    check(lake, "shown", "NO_DATA")
    assert ("5000000000",) in rows(lake.table("shown"))
    check(lake, "counted", "REINITIALIZE", "cust")
    assert rows(lake.table("counted")) == [("3",)]


def test_a_retyped_column_that_is_kept_and_not_shown(lake: Lake, tmp_path: Path) -> None:
    """Groups are stored under their key: the columns are the same, what is kept for them is not."""
    orders(lake, tmp_path)
    lake.sql(WIDENING)
    query = "SELECT COUNT(*) AS n FROM orders GROUP BY cust"
    lake.create_stream_table("sizes", query, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("below", "SELECT n + 1 AS m FROM sizes", refresh_mode="DIFFERENTIAL")
    before = lake.status("sizes")
    lake.sql("ALTER TABLE orders ALTER COLUMN cust TYPE BIGINT")
    lake.sql("INSERT INTO orders VALUES (4, 5000000000, 1.00)")
    check(lake, "sizes", "REINITIALIZE", "cust")
    assert rows(lake.table("sizes")) == rows(lake.sql("SELECT * FROM sizes")) == [
        ("1",), ("1",), ("2",),
    ]  # fmt: skip
    assert lake.status("sizes").epoch == before.epoch + 1
    assert lake.alerts("sizes", kind="reinitialized")
    with pytest.raises(UserError, match="sizes has no contents of"):
        lake.snapshot(["sizes"], at=before.data_timestamp)
    check(lake, "below", "REINITIALIZE", "sizes")
    lake.sql("INSERT INTO orders VALUES (5, 10, 1.00), (6, 6000000000, 1.00)")
    check(lake, "below", "DIFFERENTIAL")
    assert rows(lake.table("below")) == [("2",), ("2",), ("2",), ("4",)]
    workspace = lake._workspace
    folders = {path.name for path in workspace.traces_path.iterdir()}
    assert folders == {table.incarnation for table in workspace.catalog.tables()}


def test_a_name_that_stands_for_another_table(lake: Lake, tmp_path: Path) -> None:
    """The old table is still at its old place: going on with it would be wrong and unseen."""
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "2.00"))
    assert lasting(lake) == []
    lake.sql("DROP TABLE orders")
    assert lasting(lake) == ["sales: orders was dropped, or stands for another table now"]
    with pytest.raises(SourceError, match="no longer fits"):
        lake.refresh("sales")
    assert len(lasting(lake)) == 1, "it is needed as long as it cannot be done"
    other = tmp_path / "elsewhere"
    Source(lake, other, "orders", ORDERS, [(1, 77, "9.00")])
    assert len(lasting(lake)) == 1
    check(lake, "sales", "REINITIALIZE", "orders")
    assert lasting(lake) == []
    assert [a.kind for a in lake.alerts("sales", kind="reinitialized")] == ["reinitialized"]
    assert rows(lake.table("sales")) == [("77", "9.00", "1")]
    source.append((5, 12, "2.00"))
    check(lake, "sales", "NO_DATA")


def test_tables_that_exchange_their_names(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    Source(lake, tmp_path, "fresh", ORDERS, [(1, 77, "9.00")])
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("newer", "SELECT cust FROM fresh", refresh_mode="DIFFERENTIAL")
    lake.sql("ALTER TABLE orders RENAME TO old")
    with pytest.raises(SourceError, match="no longer fits") as caught:
        lake.refresh("sales")
    assert "table orders does not exist" in str(caught.value)
    lake.sql("ALTER TABLE fresh RENAME TO orders")
    lake.sql("ALTER TABLE old RENAME TO fresh")
    noted = {str(base.name): base.location for base in lake._workspace.catalog.base_tables()}
    places = {"orders": f"file:{tmp_path}/fresh", "fresh": f"file:{tmp_path}/orders"}
    assert noted == places
    with reopened(lake) as again:
        check(again, "sales", "REINITIALIZE", "orders")
        assert rows(again.table("sales")) == [("77", "9.00", "1")]
        check(again, "newer", "REINITIALIZE", "fresh")
        assert rows(again.table("newer")) == [("10",), ("10",), ("11",)]
        check(again, "sales", "NO_DATA")


def test_a_function_that_is_redefined(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.sql("CREATE FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN 2 * x")
    try:
        lake.create_stream_table("doubled", "SELECT id, twice(id) AS d FROM orders")
        lake.create_stream_table("ids", "SELECT id FROM orders")
        lake.sql("CREATE OR REPLACE FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN 20 * x")
        check(lake, "doubled", "REINITIALIZE", "twice")
        assert rows(lake.table("doubled")) == [("1", "20"), ("2", "40"), ("3", "60")]
        check(lake, "ids", "NO_DATA")
        check(lake, "doubled", "NO_DATA")
    finally:
        lake.sql("DROP FUNCTION IF EXISTS twice")


def test_a_function_that_is_redefined_past_the_lake(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    make = "CREATE OR REPLACE FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN {} * x"
    lake.spark.sql(make.format(2))
    try:
        lake.create_stream_table("doubled", "SELECT id, TWICE(id) AS d FROM orders")
        lake.create_stream_table("ids", "SELECT id FROM orders")
        lake.spark.sql(make.format(2))
        check(lake, "doubled", "NO_DATA")
        lake.spark.sql(make.format(20))
        check(lake, "doubled", "REINITIALIZE", "function twice was redefined")
        assert rows(lake.table("doubled")) == [("1", "20"), ("2", "40"), ("3", "60")]
        check(lake, "ids", "NO_DATA")
        check(lake, "doubled", "NO_DATA")
    finally:
        lake.sql("DROP FUNCTION IF EXISTS twice")


def test_blocked_ddl_changes_nothing(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.sql(MAPPED)
    lake.sql("CREATE VIEW few AS SELECT id, cust FROM orders WHERE id < 3")
    lake.create_stream_table("sales", SALES)
    lake.create_stream_table("fewer", "SELECT id FROM few")
    with reopened(lake, block_source_ddl=True) as strict:
        for statement in (
            "DROP TABLE orders",
            "ALTER TABLE orders DROP COLUMN amount",
            f"CREATE OR REPLACE TABLE orders (id INT) USING delta LOCATION '{tmp_path}/orders'",
            "DROP VIEW few",
        ):
            with pytest.raises(InUse, match=r"sales|fewer"):
                strict.sql(statement)
        strict.sql("ALTER TABLE orders ADD COLUMNS (note STRING)")
        strict.sql("ALTER TABLE orders DROP COLUMN note")
        assert strict.sql("SELECT COUNT(amount) AS n FROM orders").collect()[0].n == 3
        check(strict, "sales", "NO_DATA")
        check(strict, "fewer", "NO_DATA")
