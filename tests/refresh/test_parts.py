"""Groupings inside a query that have a trace of their own, on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import runnel
from refresh.helpers import Source, check
from runnel.api import Lake
from runnel.catalog import StreamTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_LINES = {"ord": "int", "item": "int", "n": "int", "price": "decimal(8,2)"}
_ROWS = [
    (1, 10, 5, "2.00"), (1, 11, 6, "1.00"), (2, 10, 1, "4.00"), (3, 12, 9, "1.50"),
    (3, 10, 2, "2.00"), (4, None, 3, "1.00"),
]  # fmt: skip
_ITEMS = {"id": "int", "name": "string"}
_JOINED = (
    "SELECT i.name, s.total FROM items i JOIN (SELECT item, SUM(n * price) AS total FROM lines "
    "GROUP BY item) AS s ON i.id = s.item"
)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, clean_names: None) -> Iterator[Lake]:
    """With parts of queries over tables of any size."""
    with runnel.connect(tmp_path / "lake", spark=spark, inner_trace_rows=0) as made:
        yield made


@pytest.fixture
def lines(lake: Lake, tmp_path: Path) -> Source:
    return Source(lake, tmp_path, "lines", _LINES, _ROWS)


@pytest.fixture
def items(lake: Lake, tmp_path: Path) -> Source:
    return Source(lake, tmp_path, "items", _ITEMS, [(10, "nut"), (11, "bolt"), (12, "screw")])


def _parts(lake: Lake) -> list[StreamTable]:
    return [t for t in lake._workspace.catalog.tables() if t.part_of is not None]


def _rows(lake: Lake, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.table(name).collect())


def test_a_grouping_that_is_joined(lake: Lake, lines: Source, items: Source) -> None:
    lake.create_stream_table("totals", _JOINED, refresh_mode="DIFFERENTIAL")
    (part,) = _parts(lake)
    assert part.label == "part 1 of totals"
    lines.append((5, 11, 1, "3.00"))
    check(lake, "totals", "DIFFERENTIAL")
    lines.delete("ord = 1")
    items.append((13, "nail"))
    check(lake, "totals", "DIFFERENTIAL")
    lines.append((6, 13, 1, "3.00"))
    items.delete("id = 12")
    check(lake, "totals", "DIFFERENTIAL")
    assert [name for name, _ in _rows(lake, "totals")] == ["bolt", "nail", "nut"]
