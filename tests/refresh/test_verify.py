"""VERIFY itself: it is the oracle of most tests on the lake, so here it has to find what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from refresh.helpers import Source
from runnel.api import Lake
from runnel.catalog import StreamTable
from runnel.model.columns import Column
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


def test_only_the_last_digits_of_floats_may_differ(lake: Lake, tmp_path: Path) -> None:
    _kept(lake, tmp_path)
    _write(lake, {(5, "e", 5.0): -1, (5, "e", 5.0 * (1 + 1e-12)): 1})
    assert lake.verify("kept").ok
    _write(lake, {(4, "d", 4.0): -1, (4, "d", 4.0 * (1 + 1e-6)): 1})
    found = lake.verify("kept")
    # Once anything differs, the row with the other last digits is told too.
    assert (found.ok, found.missing, found.unexpected) == (False, 2, 2)
    record = lake._workspace.catalog.last_verification(_table(lake).id)
    assert record is not None
    assert not record.ok


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


def _kept(lake: Lake, folder: Path) -> None:
    Source(lake, folder, "things", _COLUMNS, _ROWS)
    lake.create_stream_table("kept", "SELECT id, name, x FROM things", refresh_mode="DIFFERENTIAL")


def _table(lake: Lake) -> StreamTable:
    table = lake._workspace.catalog.find("default.kept")
    assert table is not None
    return table


def _write(lake: Lake, weights: Mapping[tuple[Any, ...], int]) -> None:
    """Commit an epoch that the query does not give."""
    table = _table(lake)
    assert table.frontier is not None
    trace = lake._workspace.trace(table)
    types = ", ".join(f"{c.name} {c.type}" for c in table.layout.stored)
    frame = lake.spark.createDataFrame(
        [(*row, weight) for row, weight in weights.items()], f"{types}, __weight bigint"
    )
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
    columns = (Column("k", "int"), Column("x", "double"))
    return verify._only_floats_differ(differing, columns, len(expected), len(stored))
