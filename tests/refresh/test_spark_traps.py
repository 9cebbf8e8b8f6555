"""Traps of Spark itself: hashes that collide, changes too large to broadcast, what stays cached."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import runnel
from kit.faults import operator_by_operator
from refresh.helpers import SALES, Source, check, orders
from runnel.api import Lake
from runnel.errors import QueryFailed
from runnel.lake import weights
from runnel.lake.trace import Trace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

QUERIES = {
    "keyless": "SELECT cust FROM orders",
    "unique": "SELECT DISTINCT cust, amount FROM orders",
    "sales": SALES,
}


@pytest.mark.parametrize("name", QUERIES)
def test_rows_whose_hashes_collide_are_told_apart(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(weights, "_key", lambda layout: "42L")
    source = orders(lake, tmp_path)
    lake.create_stream_table(name, QUERIES[name], refresh_mode="DIFFERENTIAL")
    source.append((4, 10, "5.00"), (5, 12, "1.00"))
    source.delete("id = 3")
    check(lake, name, "DIFFERENTIAL")
    lake.compact(name)
    source.delete("id = 2")
    check(lake, name, "DIFFERENTIAL")


def test_changes_that_are_not_broadcast_are_as_exact(
    spark: SparkSession, tmp_path: Path, clean_names: None
) -> None:
    with runnel.connect(tmp_path / "lake", spark=spark, broadcast_rows=0) as lake:
        source = orders(lake, tmp_path)
        names = Source(lake, tmp_path, "names", {"cust": "int", "name": "string"}, [(10, "a")])
        lake.create_stream_table(
            "named",
            "SELECT n.name, SUM(o.amount) AS total, MAX(o.id) AS last FROM orders o "
            "LEFT JOIN names n ON n.cust = o.cust GROUP BY n.name",
            refresh_mode="DIFFERENTIAL",
        )
        source.append((4, 11, "2.00"))
        source.delete("id = 1")
        names.append((11, "b"))
        check(lake, "named", "DIFFERENTIAL")


def test_nothing_stays_cached(lake: Lake, tmp_path: Path) -> None:
    context = getattr(lake.spark, "_sc", None)
    if context is None:
        pytest.skip("a Connect session does not show what its server caches")
    cached = lambda: set(context._jsc.getPersistentRDDs())  # noqa: E731
    before = cached()
    source = orders(lake, tmp_path)
    lake.create_stream_table(
        "pairs",
        "SELECT a.id, 100 DIV a.cust AS part FROM orders a JOIN orders b ON a.cust = b.cust",
        refresh_mode="DIFFERENTIAL",
    )
    source.append((4, 11, "2.00"))
    check(lake, "pairs", "DIFFERENTIAL")
    assert cached() == before
    source.append((5, 0, "2.00"))
    with pytest.raises(QueryFailed):
        lake.refresh("pairs")
    assert cached() == before


def test_what_a_change_that_nets_to_nothing_would_meet_is_not_read(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    operator_by_operator(monkeypatch)  # Small tables are read as a whole otherwise.
    source = orders(lake, tmp_path)
    Source(lake, tmp_path, "names", {"cust": "int", "name": "string"}, [(10, "a"), (11, "b")])
    lake.create_stream_table(
        "named",
        f"SELECT n.name, t.total FROM ({SALES}) t JOIN names n ON n.cust = t.cust",
        refresh_mode="DIFFERENTIAL",
    )  # fmt: skip
    plans = []
    append = Trace.append

    def explained(trace: Trace, session: SparkSession, df: DataFrame, *rest: Any) -> Any:
        df.explain()
        plans.append(capsys.readouterr().out)
        return append(trace, session, df, *rest)

    monkeypatch.setattr(Trace, "append", explained)
    source.overwrite((7, 10, "5.00"), (8, 10, "7.50"), (9, 11, "1.25"))
    check(lake, "named", "NO_DATA", "do not touch the result")
    source.append((4, 11, "2.00"))
    check(lake, "named", "DIFFERENTIAL")
    nothing, something = plans
    assert "FileScan" not in nothing, nothing
    assert "FileScan" in something, something
