"""The change between two versions, against Delta's own reader at both of them."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from lake.helpers import netted
from runnel.lake.changes import ChangeInfo, ChangeKind, Way, inspect, read_changes
from runnel.lake.local_changes import netted_change
from runnel.lake.log import DeltaLog
from runnel.lake.reading import columns_of, is_plain, read_version
from runnel.model.columns import Column
from runnel.model.frontier import Pin

pytestmark = pytest.mark.spark

Table = Callable[..., DeltaLog]
COLUMNS = ("a", "b", "p")
RENAMED = (Column("x", "int"), Column("y", "string"), Column("z", "string"))


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    """Create a table of (a, b, p) with four rows, two of them equal."""

    def create(properties: str = "", partitioned: bool = False, name: str = "t") -> DeltaLog:
        path = tmp_path / name
        spark.sql(
            f"CREATE TABLE delta.`{path}` (a INT, b STRING, p STRING) USING delta "
            f"{'PARTITIONED BY (p)' if partitioned else ''} TBLPROPERTIES ({properties or NO_FEED})"
        )
        rows = "(1, 'x', 'k'), (1, 'x', 'k'), (2, NULL, 'l'), (3, 'z', NULL)"
        spark.sql(f"INSERT INTO delta.`{path}` VALUES {rows}")
        return DeltaLog(f"file://{path}")

    return create


FEED = "delta.enableChangeDataFeed = true"
NO_FEED = "delta.enableChangeDataFeed = false"
VECTORS = "delta.enableDeletionVectors = true"
MAPPED = "delta.columnMapping.mode = 'name'"


def pin(log: DeltaLog, version: int) -> Pin:
    return Pin("delta", log.table_id(version), version)


def look(log: DeltaLog, after: int, upto: int | None = None) -> ChangeInfo:
    return inspect(log, pin(log, after), log.latest_version() if upto is None else upto, COLUMNS)


def at(spark: SparkSession, log: DeltaLog, version: int) -> Counter[tuple[object, ...]]:
    frame = spark.read.format("delta").option("versionAsOf", version).load(log.path)
    return Counter(tuple(row) for row in frame.select(*COLUMNS).collect())


def check(spark: SparkSession, log: DeltaLog, pairs: Sequence[tuple[int, int]]) -> None:
    bags = {version: at(spark, log, version) for version in {v for pair in pairs for v in pair}}
    for after, upto in pairs:
        difference = Counter(bags[upto])
        difference.subtract(bags[after])
        expected = {row: n for row, n in difference.items() if n}
        found = read_changes(spark, log, after, upto, COLUMNS)
        assert found.columns == [*COLUMNS, "__w"]
        assert netted(found) == expected, (after, upto)
        info = look(log, after, upto)
        local = netted_change(spark, log, (after, upto), COLUMNS, RENAMED)
        if is_plain(log.snapshot(upto)):
            assert local is not None
            assert (netted(local[0]), local[1]) == (expected, len(expected)), (after, upto)
        else:
            assert local is None
        assert info.kind in (ChangeKind.ROWS, ChangeKind.NONE)
        assert sum(map(abs, expected.values())) <= info.rows, (after, upto)


@pytest.mark.parametrize(
    ("properties", "partitioned", "way"),
    [
        (FEED, False, Way.FILES),
        (NO_FEED, False, Way.FILES),
        pytest.param(FEED, True, Way.FILES, marks=pytest.mark.slow),
        (NO_FEED, True, Way.FILES),
        pytest.param(f"{FEED}, {VECTORS}", False, Way.FEED, marks=pytest.mark.slow),
        (f"{NO_FEED}, {VECTORS}", False, Way.VERSIONS),
        pytest.param(f"{FEED}, {MAPPED}", False, Way.FEED, marks=pytest.mark.slow),
    ],
    ids=["feed", "plain", "parts-feed", "parts", "vectors-feed", "vectors", "mapped"],
)
def test_every_kind_of_table_and_statement(
    spark: SparkSession, table: Table, properties: str, partitioned: bool, way: Way
) -> None:
    log = table(properties, partitioned)
    name = f"delta.`{log.path}`"
    spark.sql(f"INSERT INTO {name} VALUES (1, 'x', 'k'), (4, 'v', 'm')")  # 2
    spark.sql(f"UPDATE {name} SET b = 'new' WHERE a = 2")  # 3
    spark.sql(f"DELETE FROM {name} WHERE a = 4")  # 4
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 3 AS a UNION ALL SELECT 9) s ON t.a = s.a "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (a, b, p) VALUES (s.a, 'm', 'k')"
    )  # 5
    spark.sql(f"OPTIMIZE {name}")  # 6
    spark.sql(f"INSERT OVERWRITE {name} VALUES (1, 'x', 'k'), (5, 'o', 'k')")  # 7
    spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 5")  # 8
    assert look(log, 1, 4).way is way
    assert is_plain(log.snapshot(8)) == (way is Way.FILES and not partitioned)
    check(spark, log, [(1, 2), (2, 3), (3, 4), (4, 5), (6, 7), (7, 8), (0, 8)])
    assert look(log, 1, 2).insert_only
    assert not look(log, 1, 4).insert_only
    assert look(log, 5, 6).kind is ChangeKind.NONE
    for version in (0, 4):
        ours = read_version(spark, log, version).select(*COLUMNS).collect()
        assert Counter(map(tuple, ours)) == at(spark, log, version)


def test_partition_values_come_from_the_log(spark: SparkSession, tmp_path: Path) -> None:
    """Every type that the text in the log stands for in one way, and those that go by versions."""
    types = "s STRING, n SMALLINT, d DATE, f BOOLEAN, m DECIMAL(8, 2)"
    names = ("a", "s", "n", "d", "f", "m")
    log = made_by(spark, tmp_path / "told", f"a INT, {types}", "s, n, d, f, m")
    rows = "(1, 'a:b c%/=', -3, DATE'1969-12-31', true, 1.50), (2, '', NULL, NULL, NULL, NULL)"
    spark.sql(f"INSERT INTO delta.`{log.path}` VALUES {rows}")
    spark.sql(f"UPDATE delta.`{log.path}` SET a = 3, m = 2 WHERE a = 1")
    assert inspect(log, pin(log, 0), 2, names).way is Way.FILES
    new = spark.read.format("delta").load(log.path).select(*names)
    expected = dict.fromkeys(map(tuple, new.collect()), 1)
    assert netted(read_changes(spark, log, 0, 2, names)) == expected
    stamped = made_by(spark, tmp_path / "stamped", "a INT, at TIMESTAMP", "at")
    spark.sql(f"INSERT INTO delta.`{stamped.path}` VALUES (1, TIMESTAMP'2020-01-01 00:00:00')")
    assert inspect(stamped, pin(stamped, 0), 1, ("a", "at")).way is Way.VERSIONS


def made_by(spark: SparkSession, path: Path, columns: str, partitions: str) -> DeltaLog:
    spark.sql(
        f"CREATE TABLE delta.`{path}` ({columns}) USING delta PARTITIONED BY ({partitions}) "
        f"TBLPROPERTIES ({NO_FEED})"
    )
    return DeltaLog(f"file://{path}")


def test_a_table_that_is_partitioned_anew_is_compared(spark: SparkSession, table: Table) -> None:
    log = table(NO_FEED, partitioned=True)
    frame = spark.createDataFrame([(7, "q", "k")], "a int, b string, p string")
    writer = frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy("a").save(log.path)
    assert look(log, 1, 2).way is Way.VERSIONS
    check(spark, log, [(1, 2)])


@pytest.mark.parametrize(
    ("properties", "crossing"),
    [(FEED, Way.FILES), (f"{FEED}, {VECTORS}", Way.VERSIONS)],
    ids=["plain", "vectors"],
)
def test_a_feed_that_is_switched_off_and_on_again(
    spark: SparkSession, table: Table, properties: str, crossing: Way
) -> None:
    log = table(properties)
    name = f"delta.`{log.path}`"
    spark.sql(f"UPDATE {name} SET b = 'fed' WHERE a = 2")  # 2
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({NO_FEED})")  # 3
    spark.sql(f"DELETE FROM {name} WHERE a = 3")  # 4
    spark.sql(f"UPDATE {name} SET b = 'unfed' WHERE a = 2")  # 5
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({FEED})")  # 6
    spark.sql(f"UPDATE {name} SET b = 'again' WHERE a = 2")  # 7
    inside = Way.FILES if crossing is Way.FILES else Way.FEED
    assert [look(log, *pair).way for pair in ((1, 2), (6, 7))] == [inside, inside]
    for pair in ((1, 4), (3, 5), (4, 7), (1, 7)):
        assert look(log, *pair).way is crossing, pair
    check(spark, log, [(1, 2), (3, 5), (1, 7)])


def test_restore_to_the_pinned_version_cancels(spark: SparkSession, table: Table) -> None:
    log = table(NO_FEED)
    spark.sql(f"INSERT OVERWRITE delta.`{log.path}` VALUES (5, 'o', 'k')")
    spark.sql(f"RESTORE TABLE delta.`{log.path}` TO VERSION AS OF 1")
    assert look(log, 1).kind is ChangeKind.NONE
    assert netted(read_changes(spark, log, 1, 3, COLUMNS)) == {}
    assert netted(read_changes(spark, log, 1, 1, COLUMNS)) == {}


def test_a_table_dropped_and_created_again_is_another(spark: SparkSession, table: Table) -> None:
    log = table(FEED)
    old = pin(log, log.latest_version())
    shutil.rmtree(log.path)
    table(FEED)
    assert log.latest_version() == 1
    info = inspect(log, old, 1, COLUMNS)
    assert info.kind is ChangeKind.REPLACED
    shutil.rmtree(log.path)
    spark.sql(f"CREATE TABLE delta.`{log.path}` (a INT, b STRING, p STRING) USING delta")
    info = inspect(log, old, log.latest_version(), COLUMNS)
    assert info.kind is ChangeKind.REPLACED
    assert info.reason == "the table went back from version 1 to 0"


def test_replace_table_is_another_table(spark: SparkSession, lake_folder: Path) -> None:
    for _ in range(2):
        spark.sql("CREATE OR REPLACE TABLE replaced (a INT, b STRING, p STRING) USING delta")
    log = DeltaLog(str(lake_folder / "warehouse" / "replaced"))
    assert look(log, 0).kind is ChangeKind.REPLACED


def test_vacuum_of_a_needed_file_is_noticed(spark: SparkSession, table: Table) -> None:
    log = table(NO_FEED)
    spark.sql(f"UPDATE delta.`{log.path}` SET b = 'new' WHERE a = 2")
    assert look(log, 1).kind is ChangeKind.ROWS
    vacuum = DeltaTable(log.path).vacuum
    vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    info = look(log, 1)
    assert info.kind is ChangeKind.LOST
    assert "is gone" in (info.reason or "")


def test_vacuum_of_change_files_is_noticed(spark: SparkSession, table: Table) -> None:
    """They go before the files of the table do: nothing else needs them."""
    log = table(FEED)
    spark.sql(f"UPDATE delta.`{log.path}` SET b = 'new' WHERE a = 2")
    changed = [Path(action.path) for action in log.commit(2).cdc]
    assert changed
    assert look(log, 1).kind is ChangeKind.ROWS
    for file in changed:
        file.unlink()
    assert look(log, 1).kind is ChangeKind.LOST


@pytest.mark.parametrize(
    "feed", [pytest.param(FEED, marks=pytest.mark.slow), NO_FEED], ids=["feed", "no-feed"]
)
def test_vacuum_of_a_needed_deletion_vector_is_noticed(
    spark: SparkSession, table: Table, feed: str
) -> None:
    """The data file that it belongs to stays: it has another vector by now."""
    log = table(f"{feed}, {VECTORS}")
    name = f"delta.`{log.path}`"
    spark.sql(f"OPTIMIZE {name}")  # 2
    spark.sql(f"DELETE FROM {name} WHERE a = 1")  # 3
    spark.sql(f"DELETE FROM {name} WHERE a = 2")  # 4
    check(spark, log, [(3, 4)])
    vectors = [action.vector for action in log.commit(4).removes]
    assert [v for v in vectors if v and Path(v).is_file()]
    spark.sql(f"VACUUM {name} RETAIN 0 HOURS")
    assert not [v for v in vectors if v and Path(v).is_file()]
    assert look(log, 3, 4).kind is ChangeKind.LOST


def test_a_cleaned_log_is_noticed(spark: SparkSession, table: Table) -> None:
    log = table(NO_FEED)
    old = pin(log, 0)
    rows = pa.table({"a": pa.array([7], pa.int32()), "b": ["x"], "p": ["k"]})
    write_deltalake(log.path, rows, mode="append")
    DeltaTable(log.path).create_checkpoint()
    Path(log.path, "_delta_log", f"{1:020d}.json").unlink()
    assert log.latest_version() == 2
    fresh = DeltaLog(log.path)
    assert fresh.latest_version() == 2
    assert inspect(fresh, old, 2, COLUMNS).kind is ChangeKind.LOST


def test_schema_changes_matter_only_for_used_columns(spark: SparkSession, table: Table) -> None:
    log = table(f"{FEED}, {MAPPED}")
    name = f"delta.`{log.path}`"
    spark.sql(f"ALTER TABLE {name} ADD COLUMN extra INT")  # 2
    assert look(log, 1).kind is ChangeKind.NONE
    spark.sql(f"INSERT INTO {name} VALUES (8, 'e', 'k', 1)")  # 3
    assert look(log, 1).kind is ChangeKind.ROWS
    check(spark, log, [(1, 3)])
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN b TO c")  # 4
    info = look(log, 3)
    assert (info.kind, info.reason) == (ChangeKind.SCHEMA, "column b was dropped or renamed")
    assert inspect(log, pin(log, 3), 4, ["a"]).kind is ChangeKind.NONE
    spark.sql(f"ALTER TABLE {name} DROP COLUMN c")  # 5
    spark.sql(f"ALTER TABLE {name} ADD COLUMN b STRING")  # 6
    assert look(log, 3).kind is ChangeKind.SCHEMA


def test_an_added_column_is_null_in_older_rows(spark: SparkSession, table: Table) -> None:
    log = table(NO_FEED)
    name = f"delta.`{log.path}`"
    spark.sql(f"ALTER TABLE {name} ADD COLUMN d INT")
    spark.sql(f"DELETE FROM {name} WHERE a = 2")
    assert netted(read_changes(spark, log, 1, 3, ["a", "d"])) == {(2, None): -1}


def test_writes_by_delta_rs(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "rs")
    rows = pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["x", None], "p": ["k", "k"]})
    write_deltalake(path, rows)
    log = DeltaLog(path)
    assert log.latest_version() == 0
    write_deltalake(path, rows, mode="append")
    DeltaTable(path).delete("a = 2")
    assert log.latest_version() == 2
    check(spark, log, [(0, 1), (1, 2), (0, 2)])
    write_deltalake(path, rows, mode="append")
    DeltaTable(path).optimize.compact()
    assert log.latest_version() == 4
    assert look(log, 3, 4).kind is ChangeKind.NONE


@pytest.mark.parametrize("properties", [FEED, f"{FEED}, {VECTORS}"], ids=["plain", "vectors"])
def test_odd_names_and_char_padding(spark: SparkSession, tmp_path: Path, properties: str) -> None:
    path = tmp_path / "odd dir"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (`a%b` INT, `x.y` CHAR(4), `é` VARCHAR(3)) USING delta "
        f"TBLPROPERTIES ({properties})"
    )
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'p', 'q')")
    spark.sql(f"UPDATE delta.`{path}` SET `x.y` = 'rr' WHERE `a%b` = 1")
    log = DeltaLog(str(path))
    names = ["a%b", "x.y", "é"]
    assert [column.type for column in columns_of(log.snapshot(2))] == ["int", "string", "string"]
    found = netted(read_changes(spark, log, 1, 2, names))
    assert found == {(1, "p   ", "q"): -1, (1, "rr  ", "q"): 1}
    by_name = spark.sql(f"SELECT * FROM delta.`{path}`").collect()
    assert [tuple(row) for row in by_name] == [(1, "rr  ", "q")]
    assert read_version(spark, log, 2).collect() == by_name


def test_a_variant_column_passes_through(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "v"
    spark.sql(f"CREATE TABLE delta.`{path}` (a INT, v VARIANT) USING delta")
    spark.sql(f"INSERT INTO delta.`{path}` SELECT 1, parse_json('[1]')")
    log = DeltaLog(str(path))
    assert read_version(spark, log, 1).selectExpr("CAST(v AS STRING)").first()[0] == "[1]"
    assert read_changes(spark, log, 0, 1, ["a", "v"]).count() == 1
