"""VERIFY itself: it is the oracle of most tests on the lake, so here it has to find what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from refresh.helpers import Source
from runnel.api import Lake
from runnel.catalog import StreamTable
from runnel.refresh import verify

pytestmark = pytest.mark.spark

_COLUMNS = {"id": "int", "name": "string", "x": "double"}
_ROWS = [
    (1, "a", 1.0), (2, None, 2.0), (3, "c", 3.0), (3, "c", 3.0), (4, "d", 4.0), (5, "e", 5.0),
    (None, None, None),
]  # fmt: skip
# One epoch with everything that can be wrong with a bag: how often each row comes, or goes.
_WRONG = {
    (1, "a", 1.0): -1, (3, "c", 3.0): -1, (None, None, None): -1,
    (4, "d", 4.0): 1, (9, "z", 9.0): 2, (None, "n", None): 1,
}  # fmt: skip


def test_every_kind_of_difference_is_counted_shown_and_recorded(lake: Lake, tmp_path: Path) -> None:
    _kept(lake, tmp_path)
    assert lake.verify("kept").ok
    _write(lake, _WRONG)
    found = lake.verify("kept")
    assert (bool(found), found.missing, found.unexpected) == (False, 3, 4)
    assert _differences(found.sample) == {row: -times for row, times in _WRONG.items()}
    assert "DIFFERENT, 3 rows missing, 4 unexpected" in str(found)
    record = lake._workspace.catalog.last_verification(_table(lake).id)
    assert record is not None
    assert (record.ok, record.missing, record.unexpected) == (False, 3, 4)
    assert (record.sample, record.frontier) == (list(found.sample), found.frontier)


def test_the_last_digits_of_sums_of_floats_may_differ(lake: Lake, tmp_path: Path) -> None:
    query = "SELECT id, MAX(name) AS name, SUM(x) AS x FROM things GROUP BY id"
    _kept(lake, tmp_path, query)
    _shift(lake, 5, 1 + 1e-12)
    assert lake.verify("kept").ok
    _shift(lake, 4, 1 + 1e-6)
    found = lake.verify("kept")
    # Once anything differs, the row with the other last digits is told too.
    assert (found.ok, found.missing, found.unexpected) == (False, 2, 2)
    record = lake._workspace.catalog.last_verification(_table(lake).id)
    assert record is not None
    assert not record.ok


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, name, x FROM things",
        "SELECT MAX(id) AS id, x, SUM(x) AS s FROM things GROUP BY x",
    ],
)
def test_copied_floats_and_keys_must_be_the_same(lake: Lake, tmp_path: Path, query: str) -> None:
    _kept(lake, tmp_path, query)
    _shift(lake, 5, 1 + 1e-12)
    found = lake.verify("kept")
    assert (found.ok, found.missing, found.unexpected) == (False, 1, 1)


@pytest.mark.parametrize(
    ("expected", "stored", "is_same"),
    [
        ([(1, 1.0)], [(1, 1.0 + 1e-12)], True),
        ([(None, 1.0), (2, 5.0)], [(None, 1.0 + 1e-12), (2, 5.0 - 1e-12)], True),
        ([(1, 1.0)], [(1, 1.0 + 1e-6)], False),
        ([(1, 1.0)], [(2, 1.0 + 1e-12)], False),
        ([(1, 1.0)], [(1, None)], False),
        ([(1, 1.0)], [(1, nan)], False),
        ([(1, inf)], [(1, 1.0)], False),
        ([(1, -inf)], [(1, inf)], False),
        # Both are near the first of the others, and none is near the second.
        ([(1, 1.0), (1, 5.0)], [(1, 1.0 + 1e-13), (1, 1.0 - 1e-13)], False),
        ([(1, 1.0), (1, 1.0)], [(1, 1.0 + 1e-13), (1, 9.0)], False),
    ],
)
def test_what_counts_as_the_last_digits(
    spark: SparkSession, expected: list[Any], stored: list[Any], is_same: bool
) -> None:
    assert _is_same(spark, expected, stored) == is_same


def test_too_many_rows_are_not_paired(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_MOST_FLOAT_ROWS", 0)
    assert not _is_same(spark, [(1, 1.0)], [(1, 1.0 + 1e-12)])


def _kept(lake: Lake, folder: Path, query: str = "SELECT id, name, x FROM things") -> None:
    Source(lake, folder, "things", _COLUMNS, _ROWS)
    lake.create_stream_table("kept", query, refresh_mode="DIFFERENTIAL")


def _shift(lake: Lake, id: int, factor: float) -> None:
    """Store another number x for the row of an id."""
    table = _table(lake)
    shown = {column.name: stored for column, stored in table.layout.visible}
    stored = lake._workspace.trace(table).contents(lake.spark, table.epoch)
    old = stored.where(f"{shown['id']} = {id}").select(*(c.name for c in table.layout.stored))
    new = old.withColumn(shown["x"], old[shown["x"]] * factor)
    _append(lake, old.selectExpr("*", "-1L AS __weight").unionAll(new.selectExpr("*", "1L")))


def _table(lake: Lake) -> StreamTable:
    table = lake._workspace.catalog.find("default.kept")
    assert table is not None
    return table


def _write(lake: Lake, weights: Mapping[tuple[Any, ...], int]) -> None:
    """Commit an epoch that the query does not give."""
    table = _table(lake)
    types = ", ".join(f"{c.name} {c.type}" for c in table.layout.stored)
    frame = lake.spark.createDataFrame(
        [(*row, weight) for row, weight in weights.items()], f"{types}, __weight bigint"
    )
    _append(lake, frame)


def _append(lake: Lake, frame: DataFrame) -> None:
    table = _table(lake)
    assert table.frontier is not None
    trace = lake._workspace.trace(table)
    trace.append(lake.spark, frame, trace.next_epoch(), {"frontier": table.frontier.to_json()})


def _differences(sample: tuple[Mapping[str, Any], ...]) -> dict[tuple[Any, ...], int]:
    """How often each row of a sample is missing; below zero: how often it is there too much."""
    signs = {"missing": 1, "unexpected": -1}
    return {
        (row["id"], row["name"], row["x"]): signs[row["difference"]] * row["times"]
        for row in sample
    }


def _is_same(spark: SparkSession, expected: list[Any], stored: list[Any]) -> bool:
    signed = [(*row, 1) for row in expected] + [(*row, -1) for row in stored]
    frame = spark.createDataFrame(signed, f"v0 int, v1 double, {verify._SIGN} bigint")
    summed = frame.groupBy("v0", "v1").sum(verify._SIGN)
    differing = summed.toDF("v0", "v1", verify._SIGN).where(f"{verify._SIGN} != 0")
    assert len(expected) == len(stored)
    return verify._only_floats_differ(differing, 2, [1], len(expected))
