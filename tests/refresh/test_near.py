"""Readings that the tables of one pass share, on Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from refresh.helpers import Source
from runnel.api import Lake
from runnel.lake.near_rows import keep_rows
from runnel.refresh import differential, near
from runnel.refresh.near import NearRows

pytestmark = pytest.mark.spark

_QUERIES = {
    "three": "SELECT c.region, SUM(l.price) AS total FROM customers c JOIN orders o ON o.cust = c.id "
    "JOIN lines l ON l.ord = o.id GROUP BY c.region",
    "four": "SELECT p.kind, c.region, COUNT(*) AS n FROM customers c JOIN orders o ON o.cust = c.id "
    "JOIN lines l ON l.ord = o.id JOIN parts p ON p.id = l.part GROUP BY p.kind, c.region",
    "late": "SELECT o.id, o.day FROM orders o WHERE EXISTS "
    "(SELECT 1 FROM lines l WHERE l.ord = o.id AND l.price > 50)",
    "pairs": "SELECT o.day, SUM(l.price) AS total FROM orders o JOIN lines l ON l.ord = o.id GROUP BY o.day",
}
_LINES = "default.lines"


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[NearRows]:
    """Those that were begun; hundreds of rows are many."""
    monkeypatch.setattr(near, "_SMALL", 100)
    monkeypatch.setattr(near, "_LARGE", 100)
    monkeypatch.setattr(near, "_MOST_OF_A_TIE", 0.5)
    monkeypatch.setattr(near, "_MOST", 0.9)
    monkeypatch.setattr(differential, "_SMALL", 100)
    found: list[NearRows] = []
    real = NearRows.__post_init__

    def noted(self: NearRows) -> None:
        real(self)
        found.append(self)

    monkeypatch.setattr(NearRows, "__post_init__", noted)
    return found


@pytest.fixture
def shop(lake: Lake, tmp_path: Path, passes: list[NearRows]) -> dict[str, Source]:
    tables = {
        "customers": ({"id": "bigint", "region": "int"}, [(i, i % 5) for i in range(50)]),
        "parts": ({"id": "bigint", "kind": "string"}, [(i, f"k{i % 3}") for i in range(60)]),
        "orders": (
            {"id": "bigint", "cust": "bigint", "day": "int"},
            [(i, i % 50, i % 7) for i in range(500)],
        ),
        "lines": (
            {"ord": "bigint", "part": "bigint", "price": "decimal(12,2)"},
            [(i % 500, i % 60, f"{i % 90}.50") for i in range(3000)],
        ),
    }  # fmt: skip
    return {
        name: Source(lake, tmp_path, name, columns, rows)
        for name, (columns, rows) in tables.items()
    }


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many tables have read near rows of each source."""
    found: Counter[str] = Counter()
    real = near.bind_near

    def noted(binding: Any, source: Any, *args: Any) -> None:
        found[source.key] += 1
        real(binding, source, *args)

    monkeypatch.setattr(near, "bind_near", noted)
    return found


def _create(lake: Lake, *names: str) -> None:
    for name in names:
        lake.create_stream_table(name, _QUERIES[name], refresh_mode="DIFFERENTIAL")


def _change(shop: dict[str, Source], key: int = 7) -> None:
    """A few rows of everything: new ones, deleted ones, and ones that moved."""
    shop["customers"].delete(f"id = {key}")
    shop["customers"].append((key, 4))
    shop["orders"].delete(f"id = {key + 1}")
    shop["orders"].append((1000 + key, key + 2, 3), (key + 1, key + 3, 6))
    shop["lines"].delete(f"ord = {key + 5} AND price > 30")
    shop["lines"].append((1000 + key, 3, "77.00"), (key + 8, 4, "99.00"))
    shop["parts"].delete(f"id = {key}")
    shop["parts"].append((key, "k9"))


def _refresh(lake: Lake, *names: str) -> None:
    """All at once; each is differential and right."""
    results = {result.name: result for result in lake.refresh()}
    assert {name: str(results[name].action) for name in names} == dict.fromkeys(
        names, "DIFFERENTIAL"
    )
    for name in names:
        verified = lake.verify(name)
        assert verified.ok, str(verified)


def test_a_pass_reads_a_large_table_once(
    lake: Lake, shop: dict[str, Source], passes: list[NearRows], bound: Counter[str]
) -> None:
    _create(lake, *_QUERIES)
    for key in (7, 20):
        _change(shop, key)
        passes.clear()
        bound.clear()
        _refresh(lake, *_QUERIES)
        (one,) = passes
        assert bound[_LINES] == len(_QUERIES)
        assert [level for source, level in one.built if source == _LINES] == [2]
        assert not list((one.workspace.path / "_runnel" / "scratch").iterdir())


def test_the_scheduler_shares_too(
    lake: Lake, shop: dict[str, Source], passes: list[NearRows]
) -> None:
    _create(lake, *_QUERIES)
    for name in _QUERIES:
        lake.alter_stream_table(name, schedule="1s")
    _change(shop)
    passes.clear()
    done = lake.run(once=True, workers=3)
    assert {r.name for r in done} == set(_QUERIES)
    built = [node for one in passes for node in one.built if node[0] == _LINES]
    assert built == [(_LINES, 2)]
    assert all(lake.verify(name).ok for name in _QUERIES)


def test_the_driver_takes_no_more_values_than_it_is_to_hold(
    spark: SparkSession, tmp_path: Path
) -> None:
    kept = keep_rows(spark.sql("SELECT id % 10 AS a, id FROM range(100)"), tmp_path / "kept", 5)
    assert kept.few is None
    assert kept.values(spark, ["a"], 9) is None
    found = kept.values(spark, ["a"], 10)
    assert found is not None
    assert sorted(found.rows.column("t0").to_pylist()) == list(range(10))


def test_a_single_table_reads_for_itself(
    lake: Lake, shop: dict[str, Source], passes: list[NearRows]
) -> None:
    _create(lake, *_QUERIES)
    _change(shop)
    lake.refresh("three")
    assert not any(one.built for one in passes)
    assert lake.verify("three").ok


def test_a_table_that_lags_does_not_share(
    lake: Lake, shop: dict[str, Source], passes: list[NearRows]
) -> None:
    _create(lake, "three", "pairs")
    _change(shop)
    lake.refresh("pairs")
    _change(shop, 20)
    passes.clear()
    _refresh(lake, "three", "pairs")
    assert not any(one.built for one in passes)


@pytest.mark.slow
def test_lagging_tables_share_among_themselves(
    lake: Lake, shop: dict[str, Source], passes: list[NearRows]
) -> None:
    _create(lake, *_QUERIES)
    _change(shop)
    lake.refresh("late")
    lake.refresh("pairs")
    _change(shop, 20)
    passes.clear()
    _refresh(lake, *_QUERIES)
    (one,) = passes
    assert len([1 for source, _ in one.built if source == _LINES]) == 2


def test_what_goes_wrong_costs_only_the_sharing(
    lake: Lake,
    shop: dict[str, Source],
    passes: list[NearRows],
    bound: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    _create(lake, "late", "pairs")

    def broken(*_: object) -> None:
        raise OSError("the disk is full")

    # The rows cannot be kept; they are too many; one of the ties alone finds too many.
    for key, (name, value) in enumerate(
        [("keep_rows", broken), ("_MOST", 0.0), ("_MOST_OF_A_TIE", -1.0)]
    ):
        _change(shop, 7 + 11 * key)
        passes.clear()
        with monkeypatch.context() as patch:
            patch.setattr(near, name, value)
            _refresh(lake, "late", "pairs")
        assert bool(passes[0].built) == (name != "_MOST_OF_A_TIE")
        assert not bound, name
    assert "the disk is full" in caplog.text
