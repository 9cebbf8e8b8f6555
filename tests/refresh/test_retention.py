"""VACUUM and log clean-up against frontiers: held back, and what was lost costs that source only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from deltalake import DeltaTable

from refresh.helpers import ORDERS, SALES, Source, check, orders
from runnel.api import Lake

pytestmark = pytest.mark.spark


def test_a_vacuum_through_the_lake_is_held_back(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path, feed=False)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    source.overwrite((1, 10, "6.00"))
    lake.sql("VACUUM orders RETAIN 0 HOURS")
    lake.sql(f"VACUUM delta.`{source.path}` RETAIN 0 HOURS")
    assert lake.verify("sales").ok
    check(lake, "sales", "DIFFERENTIAL")


def test_a_vacuum_by_another_name_is_held_back(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path, feed=False)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.sql(f"CREATE TABLE alias USING delta LOCATION '{source.path}'")
    source.overwrite((1, 10, "6.00"))
    lake.sql("VACUUM alias RETAIN 0 HOURS")
    check(lake, "sales", "DIFFERENTIAL")


def test_when_all_is_read_vacuum_does_what_it_says(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path, feed=False)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    source.overwrite((1, 10, "6.00"))
    check(lake, "sales", "DIFFERENTIAL")
    lake.sql("VACUUM orders RETAIN 0 HOURS")
    assert len([n for n in os.listdir(source.path) if n.endswith(".parquet")]) == 1
    check(lake, "sales", "NO_DATA")


def test_force_and_its_price_for_that_source_only(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path, feed=False)
    other = Source(lake, tmp_path, "other", ORDERS, [(1, 10, "1.00")], feed=False)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table(
        "big", "SELECT cust, total FROM sales WHERE total > 1", refresh_mode="DIFFERENTIAL"
    )
    lake.create_stream_table("elsewhere", "SELECT id FROM other", refresh_mode="DIFFERENTIAL")
    source.overwrite((1, 10, "6.00"), (3, 11, "1.25"))
    other.append((2, 20, "2.00"))
    lake.sql("VACUUM orders RETAIN 0 HOURS FORCE")
    check(lake, "sales", "REINITIALIZE", "orders: a file that the change needs is gone")
    result = check(lake, "big", "DIFFERENTIAL")
    assert (result.rows_inserted, result.rows_deleted) == (1, 1)
    check(lake, "elsewhere", "DIFFERENTIAL")
    assert len(lake.history("elsewhere")) == 2


def test_who_also_reads_what_is_lost_starts_over_and_nobody_else(
    lake: Lake, tmp_path: Path
) -> None:
    """What such a table needs of its other sources is still there: the reason names the lost one."""
    source = orders(lake, tmp_path, feed=False)
    columns = {"cust": "int", "name": "string"}
    names = Source(lake, tmp_path, "names", columns, [(10, "Ada"), (11, "Bo")], feed=False)
    queries = {
        "named": "SELECT n.name, o.amount FROM orders o JOIN names n ON o.cust = n.cust",
        "totals": "SELECT name, SUM(amount) AS total FROM named GROUP BY name",
        "only_names": "SELECT name FROM names",
    }
    for name, query in queries.items():
        lake.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    source.overwrite((1, 10, "6.00"), (3, 11, "1.25"))
    names.append((12, "Cy"))
    lake.sql("VACUUM orders RETAIN 0 HOURS FORCE")
    result = check(lake, "named", "REINITIALIZE", "orders: a file that the change needs is gone")
    assert "names" not in result.reason
    result = check(lake, "totals", "DIFFERENTIAL")
    assert (result.rows_inserted, result.rows_deleted) == (1, 1)
    check(lake, "only_names", "DIFFERENTIAL")
    assert len(lake.history("only_names")) == 2


def test_a_cleaned_log_costs_a_fresh_start(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "2.00"))
    source.append((5, 12, "3.00"))
    DeltaTable(source.path).create_checkpoint()
    for version in (0, 1):
        os.remove(f"{source.path}/_delta_log/{version:020d}.json")
    check(lake, "sales", "REINITIALIZE", "orders")
    source.append((6, 12, "3.00"))
    check(lake, "sales", "DIFFERENTIAL")
