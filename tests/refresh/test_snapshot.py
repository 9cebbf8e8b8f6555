"""Several tables at one instant, while they are refreshed, replaced and compacted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from refresh.helpers import Source, orders
from runnel.api import Lake
from runnel.errors import UserError
from runnel.refresh import attempt, execute
from runnel.refresh.snapshot import Snapshot

pytestmark = pytest.mark.spark

SUMS = "SELECT cust, SUM(amount) AS total FROM orders GROUP BY cust"
COUNTS = "SELECT cust, COUNT(*) AS n FROM orders GROUP BY cust"
OLD = {10: ("12.50", 2), 11: ("1.25", 1)}
NEW = {10: ("12.50", 2), 11: ("1.25", 1), 12: ("9.00", 1)}


@pytest.fixture
def source(lake: Lake, tmp_path: Path) -> Source:
    made = orders(lake, tmp_path)
    lake.create_stream_table("sums", SUMS, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("counts", COUNTS, refresh_mode="FULL")
    lake.refresh()
    return made


def joined(snapshot: Snapshot) -> dict[int, tuple[str, int]]:
    rows = snapshot.sql(
        "SELECT cust, s.total, default.counts.n FROM sums s FULL JOIN default.counts USING (cust)"
    ).collect()
    return {row["cust"]: (str(row["total"]), row["n"]) for row in rows}


def during(monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """Act once, when the first table of a pass is recorded and the second begins."""
    calls = []

    def reach(name: str) -> None:
        if name == "refresh.before_plan":
            calls.append(name)
            if len(calls) == 2:
                act()

    monkeypatch.setattr(attempt, "reach", reach)
    monkeypatch.setattr(execute, "reach", reach)


def test_tables_agree_while_they_are_refreshed(
    lake: Lake, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.append((4, 12, "9.00"))
    opened: list[Snapshot] = []
    epochs: list[Any] = []

    def open_in_the_middle() -> None:
        opened.append(lake.snapshot(["sums", "counts"]))
        epochs.append({s.name: s.epoch for s in lake.status()})

    during(monkeypatch, open_in_the_middle)
    assert {str(r.action) for r in lake.refresh()} == {"FULL", "DIFFERENTIAL"}
    assert epochs == [{"counts": 2, "sums": 1}], "one has advanced (in place of its old rows)"
    assert opened[0].epochs == {"counts": 1, "sums": 1}
    assert joined(opened[0]) == OLD, "also after the pass is over"
    with lake.snapshot(["sums", "counts"]) as newest:
        assert joined(newest) == NEW
        assert newest.table("counts").count() == 3
    opened[0].close()


def test_an_older_instant(lake: Lake, source: Source) -> None:
    then = lake.status("sums").data_timestamp
    assert isinstance(then, datetime)
    source.append((4, 12, "9.00"))
    lake.refresh()
    with lake.snapshot(["sums", "counts", "orders"], at=then) as past:
        assert past.data_timestamp == then
        assert joined(past) == OLD
        assert {row["id"] for row in past.table("orders").collect()} == {1, 2, 3}
    with lake.snapshot(["counts", "orders"]) as present:
        assert {row["id"] for row in present.table("orders").collect()} == {1, 2, 3, 4}
    with pytest.raises(UserError, match="had none yet"):
        lake.snapshot(["sums"], at="2020-01-01")


def test_compaction_leaves_an_open_snapshot_alone(lake: Lake, source: Source) -> None:
    with lake.snapshot(["sums"]) as held:
        for number in range(3):
            source.append((10 + number, 12, "1.00"))
            lake.refresh("sums")
        assert lake.compact("sums").since <= held.epochs["sums"]
        assert {row["cust"] for row in held.table("sums").collect()} == {10, 11}
    assert lake.compact("sums").since == 4
    assert lake.verify("sums").ok


_OTHER = """
import os, sys
import runnel
lake = runnel.connect(sys.argv[1])
from runnel.catalog import holding
table = lake._workspace.catalog.find("default.sums")
held = holding(lake._workspace.catalog, lake._workspace.leases, {"sums": (table, 1)})
held.__enter__()
print("open", flush=True)
sys.stdin.readline()
os._exit(9)
"""


def test_a_snapshot_of_another_process_counts_as_long_as_that_lives(
    lake: Lake, source: Source
) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", _OTHER, str(lake._workspace.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert other.stdin is not None
    assert other.stdout is not None
    assert other.stdout.readline() == "open\n"
    source.append((4, 12, "9.00"))
    lake.refresh("sums")
    assert lake.compact("sums").since <= 1
    other.stdin.write("\n")
    other.stdin.close()
    assert other.wait() == 9
    assert lake.compact("sums").since == 2


def test_no_common_instant_is_told_with_what_to_do(lake: Lake, source: Source) -> None:
    source.append((4, 12, "9.00"))
    lake.refresh("sums")
    with lake.snapshot(["sums", "counts"]) as both:
        assert joined(both) == OLD, "the older state of sums fits"
    source.append((5, 12, "9.00"))
    lake.drop_stream_table("counts")
    lake.create_stream_table("counts", COUNTS)
    with pytest.raises(UserError, match="sums, counts have no data timestamp in common") as caught:
        lake.snapshot(["sums", "counts"])
    assert "lake.refresh()" in str(caught.value)
    lake.refresh()
    with lake.snapshot(["sums", "counts"]) as both:
        assert joined(both)[12] == ("18.00", 2)


def test_only_its_tables_can_be_read(lake: Lake, source: Source) -> None:
    with lake.snapshot(["sums"]) as snapshot:
        with pytest.raises(UserError, match="counts is not in this snapshot"):
            snapshot.sql("SELECT * FROM sums JOIN counts USING (cust)")
        with pytest.raises(UserError, match="orders is not in this snapshot"):
            snapshot.table("orders")
        frame = snapshot.sql("WITH w AS (SELECT * FROM sums) SELECT count(*) AS n FROM w")
    assert frame.first()["n"] == 2
    with pytest.raises(UserError, match="closed"):
        snapshot.table("sums")


TOTAL = "SELECT SUM(total) AS total FROM sums"


def test_a_base_table_beside_what_nobody_can_tell_the_versions_of(
    lake: Lake, source: Source
) -> None:
    lake.create_stream_table("total", TOTAL)
    lake.alter_stream_table("sums", query=SUMS + " HAVING SUM(amount) > 0")
    source.append((4, 12, "9.00"))
    with pytest.raises(UserError, match="total, orders have no data timestamp in common"):
        lake.snapshot(["total", "orders"])
    lake.refresh()
    with lake.snapshot(["total", "orders"]) as both:
        assert (
            both.sql("SELECT total FROM total").first()
            == both.sql("SELECT SUM(amount) FROM orders").first()
        )


def test_a_base_table_that_was_created_again(lake: Lake, source: Source) -> None:
    lake.sql("DROP TABLE orders")
    shutil.rmtree(source.path)
    again = orders(lake, Path(source.path).parent)
    again.append((4, 12, "9.00"))
    with pytest.raises(UserError, match="orders is not the table any more that sums has read"):
        lake.snapshot(["sums", "orders"])
    lake.refresh()
    with lake.snapshot(["sums", "orders"]) as both:
        assert both.table("orders").count() == 4


def test_a_base_table_that_was_replaced_is_read_as_it_was_seen(lake: Lake, source: Source) -> None:
    lake.sql(
        f"CREATE OR REPLACE TABLE orders USING delta LOCATION '{source.path}' AS "
        "SELECT * FROM VALUES (7L, 12, 9.00BD) AS v (id, cust, amount)"
    )
    with lake.snapshot(["sums", "orders"]) as both:
        assert both.table("orders").count() == 3
        assert {row["cust"] for row in both.table("sums").collect()} == {10, 11}
