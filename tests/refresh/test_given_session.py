"""A session of the user's own: the lake's tables have names there, and the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

import runnel
from runnel.api import Lake
from runnel.errors import UserError
from runnel.lake import session
from runnel.lake.names import TableKind, describe
from runnel.lake.session import FEED, Session
from runnel.model.names import TableName
from runnel.refresh.keeper import SessionKeeper

pytestmark = pytest.mark.spark


def put(lake: Lake, folder: str, values: list[int]) -> Path:
    """A table in the lake's own warehouse, as an embedded session or delta-rs leaves it."""
    place = lake._workspace.path / "warehouse" / folder
    write_deltalake(str(place), pa.table({"a": values}))
    return place


@pytest.fixture(params=["given", "active"])
def theirs(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path: Path,
    clean_names: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Lake]:
    """A lake in a session that the user gave, or that merely is there."""
    # The session of the tests was started for a lake; this one seems to be started for none, and
    # without its settings.
    monkeypatch.setattr(session, "_LAKE", "spark.of.nobody")
    feed = spark.conf.get(FEED)
    spark.conf.set(FEED, "false")
    spark.conf.unset(FEED)
    given = spark if request.param == "given" else None
    with runnel.connect(tmp_path / "lake", spark=given) as made:
        yield made
    spark.conf.set(FEED, feed)


@pytest.fixture
def drops_schema(spark: SparkSession) -> Iterator[None]:
    yield
    spark.sql("USE default")
    spark.sql("DROP SCHEMA IF EXISTS shop CASCADE")


def test_base_tables_of_the_warehouse_have_names(lake: Lake, drops_schema: None) -> None:
    place = put(lake, "made_by_cli", [1, 2])
    put(lake, "shop.db/other", [3])
    assert lake.sql("SELECT SUM(a) FROM made_by_cli").collect() == [(3,)]
    assert lake.sql("SELECT a FROM shop.other").collect() == [(3,)]
    query = "SELECT a FROM made_by_cli"
    lake.create_stream_table("copied", query, refresh_mode="DIFFERENTIAL")
    write_deltalake(str(place), pa.table({"a": [7]}), mode="append")
    assert lake.refresh("copied").rows_inserted == 1


def test_what_is_dropped_does_not_come_back(lake: Lake, spark: SparkSession) -> None:
    place = put(lake, "short_lived", [1])
    lake.sql("DROP TABLE short_lived")
    assert not place.exists()
    with runnel.connect(lake._workspace.path, spark=spark) as other:
        other.sql("SELECT 1")
        assert not spark.catalog.tableExists("short_lived")


def test_a_name_that_the_session_uses_already_stays_what_it_is(
    theirs: Lake, spark: SparkSession
) -> None:
    lake = theirs
    spark.sql("CREATE TABLE taken USING delta AS SELECT 'mine' AS a")
    place = put(lake, "taken", [1])
    assert lake.sql("SELECT a FROM taken").collect() == [("mine",)]
    lake.sql("DROP TABLE taken")
    assert place.exists(), "another table had the name"
    spark.sql("CREATE TABLE taken USING delta AS SELECT 'mine' AS a")
    for entry in sorted(place.rglob("*"), reverse=True):
        entry.rmdir() if entry.is_dir() else entry.unlink()
    lake.sql("SELECT 1")
    assert lake.sql("SELECT a FROM taken").collect() == [("mine",)]


def test_new_tables_are_known_to_other_processes(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They lie in the session's own warehouse, where no other process looks for them."""
    lake.sql("CREATE TABLE theirs (a INT) USING delta")
    lake.write(spark.range(3), "ours")
    place = describe(spark, TableName.parse("theirs")).location
    noted = {str(base.name): base.location for base in lake._workspace.catalog.base_tables()}
    assert (noted.keys(), noted["theirs"]) == ({"theirs", "ours"}, place)
    elsewhere = SessionKeeper(lake._workspace.path, lake._workspace.catalog, None, None, {})
    monkeypatch.setattr(elsewhere, "_start", lambda: Session(spark, is_owned=False))
    lake.spark.sql("DROP TABLE theirs")
    elsewhere.sync()
    assert describe(spark, TableName.parse("theirs")).kind is TableKind.MISSING, "no empty table"
    lake.sql("DROP TABLE IF EXISTS theirs")
    assert [str(base.name) for base in lake._workspace.catalog.base_tables()] == ["ours"]


def test_new_tables_record_their_changes(theirs: Lake, spark: SparkSession) -> None:
    lake = theirs
    lake.sql("CREATE TABLE fed (a INT) USING delta")
    lake.sql("CREATE TABLE also_fed USING delta AS SELECT 1 AS a")
    lake.write(lake.spark.range(1), "written")
    for name in ("fed", "also_fed", "written"):
        place = (describe(spark, TableName.parse(name)).location or "").removeprefix("file:")
        configuration = DeltaTable(place).metadata().configuration
        assert configuration.get("delta.enableChangeDataFeed") == "true", name


def test_a_session_with_another_current_schema_is_refused(
    lake: Lake, spark: SparkSession, drops_schema: None
) -> None:
    """Its `orders` is shop.orders to Spark, and default.orders to a stream table."""
    lake.sql("CREATE TABLE orders USING delta AS SELECT 1 AS a")
    lake.sql("CREATE SCHEMA shop")
    lake.sql("CREATE TABLE shop.orders USING delta AS SELECT 2 AS a")
    lake.create_stream_table("copied", "SELECT a FROM orders")
    spark.sql("USE shop")
    for use in (
        lambda: lake.sql("SELECT a FROM orders"),
        lambda: lake.sql("INSERT INTO orders VALUES (3)"),
        lambda: lake.write(spark.range(1).toDF("a"), "orders"),
        lambda: lake.create_stream_table("other", "SELECT a FROM orders"),
        lambda: lake.create_stream_tables({"other": "SELECT a FROM orders"}),
        lambda: lake.alter_stream_table("copied", query="SELECT a + 1 AS a FROM orders"),
        lambda: lake.explain(query="SELECT a FROM orders"),
    ):
        with pytest.raises(UserError, match=r"current schema .* is spark_catalog.shop") as caught:
            use()
        assert "USE spark_catalog.default" in str(caught.value)
    assert lake.refresh("copied").action == "NO_DATA"
    assert [row["a"] for row in lake.table("copied").collect()] == [1]
    spark.sql("USE spark_catalog.default")
    assert lake.sql("SELECT a FROM orders").collect() == [(1,)]


def test_names_follow_other_processes_in_a_session_that_is_held(
    lake: Lake, other: Lake, spark: SparkSession
) -> None:
    lake.sql("CREATE TABLE orders USING delta AS SELECT 1 AS a")
    assert other.spark.table("orders").count() == 1
    lake.create_stream_table("copied", "SELECT a FROM orders")
    # As in another process, which has a catalog of its own.
    spark.sql("DROP VIEW copied")
    assert other.spark.table("copied").collect() == [(1,)]
