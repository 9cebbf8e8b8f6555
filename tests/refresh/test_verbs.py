"""Creating, altering, dropping; names; clear errors that change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from refresh.helpers import SALES, check, orders
from runnel.api import Lake
from runnel.errors import (
    AlreadyExists,
    InUse,
    InvalidQuery,
    NotDifferentiable,
    QueryFailed,
    UserError,
)

pytestmark = pytest.mark.spark


def test_statements_and_names_in_any_case(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.sql(f"create stream table `My_Sales` schedule '2m' refresh mode differential as {SALES}")
    source.append((4, 12, "2.00"))
    assert lake.sql("REFRESH STREAM TABLE `my_sales`").action == "DIFFERENTIAL"
    assert lake.sql("verify stream table `MY_SALES`").ok
    assert lake.sql("SELECT SUM(n) AS n FROM `my_SALES`").first()["n"] == 4
    assert [t.name for t in lake.sql("show stream tables")] == ["My_Sales"]
    assert lake.sql("SHOW REFRESH HISTORY FOR `My_Sales` LIMIT 1")[0].action == "DIFFERENTIAL"
    assert lake.sql("DROP STREAM TABLE `My_Sales`") == ("My_Sales",)
    with pytest.raises(InvalidQuery):
        lake.sql("SELECT * FROM `my_sales`")


def test_a_new_tables_name_is_there_for_the_session_itself(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES)
    assert sorted(row["n"] for row in lake.spark.table("sales").collect()) == [1, 2]


def test_schema_qualified_names(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("mart.sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table(
        "big", "SELECT * FROM mart.sales WHERE n > 1", refresh_mode="DIFFERENTIAL"
    )
    source.append((4, 11, "2.00"))
    check(lake, "big", "DIFFERENTIAL")
    assert lake.sql("SELECT * FROM Mart.Sales").count() == 2


def test_alter_changes_what_it_says_and_nothing_else(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, schedule="1m", refresh_mode="DIFFERENTIAL")
    assert lake.alter_stream_table("sales", schedule="1h30m").target_seconds == 5400
    assert lake.status("sales").epoch == 1
    lake.sql("ALTER STREAM TABLE sales SUSPEND")
    source.append((4, 12, "2.00"))
    assert lake.refresh("sales").action == "SKIP"
    assert lake.refresh("sales").action == "SKIP"
    entries = [(entry.action, entry.reason) for entry in lake.history("sales")]
    assert entries == [("SKIP", "the table is suspended"), ("FULL", "first fill")]
    lake.sql("ALTER STREAM TABLE sales RESUME")
    check(lake, "sales", "DIFFERENTIAL")
    lake.sql(
        "ALTER STREAM TABLE sales AS SELECT cust, MAX(amount) AS top FROM orders GROUP BY cust"
    )
    assert lake.table("sales").columns == ["cust", "top"]
    assert lake.sql("SELECT * FROM sales").columns == ["cust", "top"]
    source.append((5, 12, "9.00"))
    check(lake, "sales", "DIFFERENTIAL")


def test_a_new_table_takes_what_is_fresh_enough(lake: Lake, tmp_path: Path) -> None:
    """Created, replaced, altered or made together with others: nothing above it is refreshed."""
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES)
    lake.create_stream_table("ids", "SELECT id, cust FROM orders")
    source.append((4, 12, "2.00"))
    query = (
        "SELECT i.id, s.n, o.amount FROM ids i JOIN sales s USING (cust) JOIN orders o USING (id)"
    )
    lake.create_stream_table("a", query, schedule="1h")
    lake.create_stream_table("a", query + " WHERE s.n > 0", schedule="1h", or_replace=True)
    lake.sql(f"ALTER STREAM TABLE a AS {query} WHERE s.n > 1")
    lake.create_stream_tables({"b": query, "c": "SELECT id FROM b"}, schedule="cron 0 0 29 2 *")
    for name in ("sales", "ids"):
        assert [entry.action for entry in lake.history(name)] == ["FULL"]
    for name in ("a", "b", "c"):
        assert lake.verify(name).ok
        assert lake.status(name).data_timestamp == lake.status("sales").data_timestamp
    assert lake.table("b").count() == 3, "the order that they have not seen is not read either"
    assert lake.refresh("a").action in ("DIFFERENTIAL", "FULL")
    assert lake.verify("a").ok


def test_consumers_of_a_changed_query_start_over(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("big", "SELECT cust, n FROM sales", refresh_mode="DIFFERENTIAL")
    lake.alter_stream_table("sales", query=SALES + " HAVING COUNT(*) > 1")
    check(lake, "big", "REINITIALIZE", "sales")
    assert lake.table("big").count() == 1


def test_create_or_replace_and_if_not_exists(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES)
    with pytest.raises(AlreadyExists):
        lake.create_stream_table("SALES", SALES)
    lake.create_stream_table("sales", "SELECT 1 AS nonsense", if_not_exists=True)
    lake.create_stream_table("sales", "SELECT id FROM orders", or_replace=True)
    assert lake.table("sales").columns == ["id"]


def test_initialize_false_fills_at_the_first_refresh(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.sql(f"CREATE STREAM TABLE sales WITH (initialize = false) AS {SALES}")
    assert lake.status("sales").state == "UNINITIALIZED"
    with pytest.raises(UserError, match="never filled"):
        lake.table("sales")
    check(lake, "sales", "FULL", "first fill")
    assert lake.sql("SELECT * FROM sales").count() == 2


def test_drop_refuses_while_others_read_it(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES)
    lake.create_stream_table("big", "SELECT * FROM sales")
    with pytest.raises(InUse, match="big"):
        lake.drop_stream_table("sales")
    assert lake.drop_stream_table("sales", cascade=True) == ("sales", "big")
    assert list((tmp_path / "lake" / "_runnel" / "traces").iterdir()) == []
    assert lake.drop_stream_table("sales", if_exists=True) == ()


def test_a_failing_refresh_keeps_the_old_contents(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table(
        "inverse", "SELECT id, 10 / amount AS x FROM orders", refresh_mode="DIFFERENTIAL"
    )
    before = sorted(map(tuple, lake.table("inverse").collect()))
    source.append((4, 12, "0.00"))
    with pytest.raises(QueryFailed, match=r"(?i)zero"):
        lake.refresh("inverse")
    assert sorted(map(tuple, lake.table("inverse").collect())) == before
    entry = lake.history("inverse", limit=1)[0]
    assert (entry.outcome, entry.error_code) == ("FAILED", "QUERY_FAILED")
    source.delete("id = 4")
    check(lake, "inverse", "NO_DATA")


def test_what_is_not_differentiable_runs_full_and_says_why(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    query = "SELECT id, APPROX_PERCENTILE(id, 0.5) OVER (PARTITION BY cust) AS r FROM orders"
    lake.create_stream_table("middle", query)
    source.append((4, 10, "2.00"))
    check(lake, "middle", "FULL", "percentile() OVER")
    check(lake, "middle", "NO_DATA")


def test_what_only_spark_computes_runs_full(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    query = "SELECT cust, hll_sketch_estimate(hll_sketch_agg(id)) AS n FROM orders GROUP BY cust"
    with pytest.raises(NotDifferentiable, match="hll_sketch_agg"):
        lake.create_stream_table("sketched", query, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("sketched", query)
    source.append((4, 10, "2.00"))
    check(lake, "sketched", "FULL", "hll_sketch_agg")


def test_what_a_function_gives_is_named_beside_it(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    query = "SELECT id, explode(array(cust, 1)) AS e, e + 1 AS next FROM orders"
    lake.create_stream_table("elements", query, refresh_mode="DIFFERENTIAL")
    source.append((4, 10, "2.00"))
    check(lake, "elements", "DIFFERENTIAL")


def test_functions_of_the_users_own_run_full(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.sql("CREATE OR REPLACE FUNCTION doubled(x INT) RETURNS INT RETURN x * 2")
    query = "SELECT id, doubled(cust) AS d, pmod(xxhash64(id), 7) AS m FROM orders"
    try:
        with pytest.raises(NotDifferentiable, match="doubled"):
            lake.create_stream_table("twice", query, refresh_mode="DIFFERENTIAL")
        lake.create_stream_table("twice", query)
        source.append((4, 10, "2.00"))
        check(lake, "twice", "FULL", "user-defined function doubled")
    finally:
        lake.sql("DROP FUNCTION doubled")
    with pytest.raises(InvalidQuery, match="temporary functions"):
        lake.create_stream_table("thrice", "SELECT tripled(cust) AS t FROM orders")


def test_auto_chooses_by_the_size_of_the_change(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    source.append(*[(i, i % 50, "1.00") for i in range(100, 2100)])
    lake.create_stream_table("sales", SALES)
    source.append((1, 10, "5.00"))
    check(lake, "sales", "DIFFERENTIAL", "1 changed of")
    lake.create_stream_table("sales2", SALES)
    source.append(*[(i, i % 50, "1.00") for i in range(5000, 9000)])
    check(lake, "sales2", "FULL", "max_change_ratio")


def test_an_older_epoch_can_be_read_until_it_is_compacted(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    first = sorted(map(tuple, lake.table("sales").collect()))
    source.append((4, 12, "2.00"))
    lake.refresh("sales")
    assert sorted(map(tuple, lake.table("sales", epoch=1).collect())) == first
    assert lake.compact("sales").compacted
    assert lake.verify("sales").ok
    with pytest.raises(Exception, match="epoch 1"):
        lake.table("sales", epoch=1)
