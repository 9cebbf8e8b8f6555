"""What a table reads became something else while `lake.run` looks after it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import runnel
from refresh.helpers import ORDERS, SALES, Source, orders
from runnel.api import Lake
from runnel.lake.names import TableKind, describe
from runnel.lake.session import Session
from runnel.model.names import TableName
from runnel.refresh.keeper import SessionKeeper
from schedule.gates import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TOTALS = "SELECT cust, SUM(amount) AS total FROM big GROUP BY cust"
COUNTS = "SELECT cust, COUNT(*) AS n FROM big GROUP BY cust"
BOTH = "SELECT t.cust, t.total, c.n FROM totals t JOIN counts c ON t.cust = c.cust"
NEW = "CREATE OR REPLACE VIEW big AS SELECT cust, amount FROM orders WHERE amount < 6"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, clean_names: None) -> Iterator[Lake]:
    with runnel.connect(tmp_path / "lake", spark=spark) as made:
        yield made


@pytest.fixture
def source(lake: Lake, tmp_path: Path) -> Source:
    made = orders(lake, tmp_path)
    lake.sql("CREATE VIEW big AS SELECT cust, amount FROM orders WHERE amount > 1")
    return made


def make(lake: Lake, name: str, query: str, **options: str) -> None:
    lake.create_stream_table(name, query, schedule="1s", refresh_mode="DIFFERENTIAL", **options)  # type: ignore[arg-type]


def once(lake: Lake) -> dict[str, tuple[str, str]]:
    """What one look of the scheduler does, when everything is due."""
    for name in [status.name for status in lake.status()]:
        wait_until(lambda name=name: (lake.status(name).lag_seconds or 0) > 1, f"{name} is due")
    return {r.name: (str(r.action), r.reason) for r in lake.run(once=True)}


def rows(lake: Lake, name: str) -> list[tuple[str, ...]]:
    return sorted(tuple(map(str, row)) for row in lake.table(name).collect())


@pytest.mark.parametrize("has_news", [True, False])
def test_a_redefined_view_is_followed_by_the_scheduler(
    lake: Lake, source: Source, has_news: bool
) -> None:
    make(lake, "totals", TOTALS)
    lake.sql(NEW)
    if has_news:
        source.append((4, 12, "2.00"))
    assert once(lake) == {"totals": ("REINITIALIZE", "view big was redefined")}
    expected = [("10", "5.00"), ("11", "1.25"), *([("12", "2.00")] if has_news else [])]
    assert rows(lake, "totals") == expected
    assert lake.verify("totals").ok
    assert once(lake) == {}, "nothing to do any more"


def test_a_redefined_view_is_followed_by_a_group(lake: Lake, source: Source) -> None:
    make(lake, "totals", TOTALS)
    make(lake, "counts", COUNTS)
    make(lake, "both", BOTH, diamond_consistency="atomic")
    lake.sql(NEW)
    done = once(lake)
    assert {name: action for name, (action, _) in done.items()} == {
        "totals": "REINITIALIZE", "counts": "REINITIALIZE", "both": "DIFFERENTIAL",
    }  # fmt: skip
    assert rows(lake, "both") == [("10", "5.00", "1"), ("11", "1.25", "1")]


@pytest.mark.parametrize("consistency", ["none", "atomic"])
def test_a_view_that_was_redefined_past_the_lake_is_seen_with_the_next_news(
    lake: Lake, source: Source, consistency: str
) -> None:
    make(lake, "totals", TOTALS)
    make(lake, "counts", COUNTS)
    make(lake, "both", BOTH, diamond_consistency=consistency)
    lake.spark.sql(NEW)
    source.append((4, 12, "2.00"))
    actions = {name: action for name, (action, _) in once(lake).items()}
    assert actions == {
        "totals": "REINITIALIZE", "counts": "REINITIALIZE", "both": "DIFFERENTIAL",
    }  # fmt: skip
    assert rows(lake, "both") == [("10", "5.00", "1"), ("11", "1.25", "1"), ("12", "2.00", "1")]


def test_a_redefined_view_that_does_not_fit_fails_also_without_news(
    lake: Lake, source: Source
) -> None:
    make(lake, "totals", TOTALS)
    lake.sql("CREATE OR REPLACE VIEW big AS SELECT cust, CAST(1 AS BIGINT) AS amount FROM orders")
    assert once(lake) == {}
    status = lake.status("totals")
    assert "no longer gives the stored columns" in (status.last_error or "")
    assert status.consecutive_errors == 1
    assert [entry.outcome for entry in lake.history("totals")] == ["FAILED", "OK"]


def test_a_name_that_stands_for_another_table_is_followed_by_the_scheduler(
    lake: Lake, source: Source, tmp_path: Path
) -> None:
    make(lake, "sales", SALES)
    lake.sql("DROP TABLE orders")
    Source(lake, tmp_path / "elsewhere", "orders", ORDERS, [(1, 77, "9.00")])
    action, reason = once(lake)["sales"]
    assert (action, "orders" in reason) == ("REINITIALIZE", True)
    assert rows(lake, "sales") == [("77", "9.00", "1")]
    source.append((5, 12, "2.00"))
    assert once(lake) == {}
    assert lake.status("sales").consecutive_errors == 0


@pytest.mark.parametrize("consistency", ["none", "atomic"])
def test_a_name_that_was_given_past_the_lake_is_followed_too(
    lake: Lake, source: Source, tmp_path: Path, consistency: str
) -> None:
    """The first look finds out that the table reads from elsewhere, the next one refreshes it."""
    make(lake, "totals", "SELECT cust, SUM(amount) AS total FROM orders GROUP BY cust")
    make(lake, "counts", "SELECT cust, COUNT(*) AS n FROM orders GROUP BY cust")
    make(lake, "both", BOTH, diamond_consistency=consistency)
    Source(lake, tmp_path / "elsewhere", "moved", ORDERS, [(1, 77, "9.00")])
    lake.sql("DROP TABLE orders")
    lake.spark.sql(f"CREATE TABLE orders USING delta LOCATION '{tmp_path}/elsewhere/moved'")
    for _ in range(4):
        once(lake)
    assert rows(lake, "both") == [("77", "9.00", "1")]
    assert {status.consecutive_errors for status in lake.status()} == {0}
    assert all(lake.verify(name).ok for name in ("totals", "counts", "both"))


@pytest.fixture
def keeper(
    lake: Lake, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> SessionKeeper:
    """That of another process, which has opened its session itself."""
    made = SessionKeeper(tmp_path / "lake", lake._workspace.catalog, None, None, {})
    monkeypatch.setattr(made, "_start", lambda: Session(spark, is_owned=False))
    return made


def test_names_of_another_process_are_taken_over_moved_and_given_up(
    lake: Lake, keeper: SessionKeeper, source: Source, spark: SparkSession, tmp_path: Path
) -> None:
    """A session that the lake has opened itself knows base tables by what the catalog says."""
    catalog = lake._workspace.catalog
    name, other = TableName.parse("named"), tmp_path / "orders_2"
    spark.sql(f"CREATE TABLE copy USING delta LOCATION '{other}' AS SELECT * FROM orders")
    for place in (source.path, str(other)):
        catalog.register_base_table(name, f"file:{place}")
        keeper.sync()
        assert describe(spark, name).location == f"file:{place}"
    catalog.forget_base_table(name)
    keeper.sync()
    assert describe(spark, name).kind is TableKind.MISSING
    assert spark.table("copy").count() == 3, "the table itself stays"


def test_names_are_given_when_they_are_asked_for(
    lake: Lake, keeper: SessionKeeper, source: Source, spark: SparkSession
) -> None:
    """Refreshes need none; giving them takes a daemon longer than the start of its Spark."""
    catalog = lake._workspace.catalog
    name = TableName.parse("asked")
    catalog.register_base_table(name, f"file:{source.path}")
    assert keeper.begin() is spark
    keeper.sync_if_open()
    assert describe(spark, name).kind is TableKind.MISSING
    assert keeper.open() is spark
    assert describe(spark, name).location == f"file:{source.path}"
    catalog.forget_base_table(name)
    keeper.sync_if_open()
    assert describe(spark, name).kind is TableKind.MISSING
