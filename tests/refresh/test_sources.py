"""What can happen to a source between two refreshes: noticed, never wrong."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from refresh.helpers import SALES, check, orders
from runnel.api import Lake
from runnel.errors import SourceError

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("feed", [True, False], ids=["with change feed", "without change feed"])
def test_other_writers_are_noticed(lake: Lake, tmp_path: Path, feed: bool) -> None:
    source = orders(lake, tmp_path, feed=feed)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "2.00"))
    source.delete("id = 1")
    result = check(lake, "sales", "DIFFERENTIAL")
    assert (result.rows_inserted, result.rows_deleted) == (2, 1)
    check(lake, "sales", "NO_DATA", "no source changed")


def test_optimize_is_no_change(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "2.00"))
    check(lake, "sales", "DIFFERENTIAL")
    DeltaTable(source.path).optimize.compact()
    check(lake, "sales", "NO_DATA", "no source changed")


def test_overwrite_is_a_change_like_any_other(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    source.overwrite((1, 10, "5.00"), (2, 10, "7.50"), (9, 19, "9.00"))
    result = check(lake, "sales", "DIFFERENTIAL")
    assert (result.rows_inserted, result.rows_deleted) == (1, 1)


def test_restore_is_followed(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "2.00"))
    check(lake, "sales", "DIFFERENTIAL")
    DeltaTable(source.path).restore(0)
    check(lake, "sales", "DIFFERENTIAL")


def test_commits_whose_clock_goes_back(lake: Lake, tmp_path: Path) -> None:
    """Another writer's clock may be behind: what counts is the order of versions."""
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    for number in (1, 2):
        source.append((3 + number, 12, "2.00"))
        _set_back(Path(source.path, "_delta_log", f"{number:020d}.json"), number * 3600)
        result = check(lake, "sales", "DIFFERENTIAL")
        assert result.change_rows == 1
    then = lake.status("sales").data_timestamp
    with lake.snapshot(["sales", "orders"], at=then) as seen:
        assert seen.table("orders").count() == 5
    check(lake, "sales", "NO_DATA")


def _set_back(commit: Path, seconds: int) -> None:
    """Make a commit look as if it had been made earlier."""
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] -= 1000 * seconds
    commit.write_text("\n".join(map(json.dumps, actions)) + "\n")
    at = commit.stat().st_mtime - seconds
    os.utime(commit, (at, at))


def test_a_dropped_and_recreated_table_is_another_table(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.sql("DROP TABLE orders")
    shutil.rmtree(source.path)
    orders(lake, tmp_path).append((7, 17, "7.00"))
    check(lake, "sales", "REINITIALIZE", "orders")
    lake.refresh("sales")
    check(lake, "sales", "NO_DATA")


def test_vacuum_of_what_the_frontier_needs(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path, feed=False)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    source.overwrite((1, 10, "6.00"))
    DeltaTable(source.path).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False
    )
    check(lake, "sales", "REINITIALIZE", "gone")


def test_vacuum_of_change_files_that_the_frontier_needs(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.sql("UPDATE orders SET amount = 6 WHERE id = 1")
    shutil.rmtree(Path(source.path, "_change_data"))
    check(lake, "sales", "REINITIALIZE", "gone")
    source.append((4, 12, "2.00"))
    check(lake, "sales", "DIFFERENTIAL")


def test_a_change_feed_that_comes_late_and_goes(lake: Lake, tmp_path: Path) -> None:
    """Each round changes what the table's commits tell of the rows, within one window."""
    source = orders(lake, tmp_path, feed=False)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    for feed in ("true", "false"):
        lake.sql("UPDATE orders SET amount = amount + 1 WHERE id <= 2")
        lake.sql(f"ALTER TABLE orders SET TBLPROPERTIES (delta.enableChangeDataFeed = {feed})")
        lake.sql("UPDATE orders SET cust = cust + 1 WHERE id = 3")
        source.append((4, 12, "2.00"))
        check(lake, "sales", "DIFFERENTIAL")


_PARTITIONED = "PARTITIONED BY (cust) TBLPROPERTIES (delta.enableChangeDataFeed = true)"
_VECTORS = "TBLPROPERTIES (delta.enableDeletionVectors = true, delta.enableChangeDataFeed = true)"
_MAPPED = "TBLPROPERTIES (delta.columnMapping.mode = 'name', delta.enableChangeDataFeed = true)"


@pytest.mark.parametrize(
    "kind", [_PARTITIONED, _VECTORS, _MAPPED], ids=["partitioned", "vectors", "mapped"]
)
def test_kinds_of_tables_that_are_not_their_files(lake: Lake, kind: str) -> None:
    lake.sql(f"CREATE TABLE orders (id BIGINT, cust INT, amount DECIMAL(12,2)) USING delta {kind}")
    lake.sql("INSERT INTO orders VALUES (1, 10, 5), (2, 10, 7.5), (3, 11, 1.25), (4, NULL, 1)")
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.sql("UPDATE orders SET amount = amount + 1, cust = 12 WHERE id = 1")
    lake.sql("DELETE FROM orders WHERE id = 3")
    lake.sql(
        "MERGE INTO orders t USING (SELECT 2 AS id UNION ALL SELECT 9) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, cust, amount) VALUES (s.id, NULL, 3)"
    )
    check(lake, "sales", "DIFFERENTIAL")
    found = {(row["cust"], str(row["total"]), row["n"]) for row in lake.table("sales").collect()}
    assert found == {(12, "6.00", 1), (None, "4.00", 2)}


def test_an_added_column_is_harmless(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.sql("ALTER TABLE orders ADD COLUMNS (note STRING)")
    check(lake, "sales", "NO_DATA")
    source.columns = {**source.columns, "note": "string"}
    source.append((4, 12, "2.00", "new"))
    check(lake, "sales", "DIFFERENTIAL")


def test_a_used_column_that_is_gone_stops_the_table(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    before = sorted(map(tuple, lake.table("sales").collect()))
    lake.sql("DROP TABLE orders")
    shutil.rmtree(tmp_path / "orders")
    lake.sql(f"CREATE TABLE orders (id BIGINT, cust INT) USING delta LOCATION '{tmp_path}/orders'")
    with pytest.raises(SourceError, match="no longer fits") as caught:
        lake.refresh("sales")
    assert caught.value.hint
    assert sorted(map(tuple, lake.table("sales").collect())) == before
    assert lake.status("sales").consecutive_errors == 1


def test_an_update_of_unused_columns_is_no_data(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table(
        "customers", "SELECT DISTINCT cust FROM orders", refresh_mode="DIFFERENTIAL"
    )
    source.delete("id = 1")
    source.append((1, 10, "99.00"))
    check(lake, "customers", "NO_DATA", "do not touch the result")


def test_keyless_duplicates_are_kept_exactly(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    source.append((1, 10, "5.00"), (1, 10, "5.00"))
    lake.create_stream_table(
        "plain", "SELECT cust, amount FROM orders", refresh_mode="DIFFERENTIAL"
    )
    assert lake.table("plain").count() == 5
    source.append((1, 10, "5.00"))
    check(lake, "plain", "DIFFERENTIAL")
    source.overwrite((1, 10, "5.00"), (1, 10, "5.00"), (3, 11, "1.25"))
    result = check(lake, "plain", "DIFFERENTIAL")
    assert (result.rows_inserted, result.rows_deleted) == (0, 3)


def test_full_upstream_hands_its_consumers_the_difference(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("up", SALES, refresh_mode="FULL")
    lake.create_stream_table(
        "down", "SELECT cust, total FROM up WHERE n > 0", refresh_mode="DIFFERENTIAL"
    )
    source.append((4, 11, "1.00"))
    result = check(lake, "down", "DIFFERENTIAL")
    assert (result.rows_inserted, result.rows_deleted, result.change_rows) == (1, 1, 2)
    assert lake.history("up", limit=1)[0].action == "FULL"
