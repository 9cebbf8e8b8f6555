"""What the tests of the lake share: bags, layouts and tables in a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from runnel.model.columns import Column, Layout

Bag = Counter[tuple[Any, ...]]


def bag(frame: DataFrame) -> Bag:
    """The rows of a frame with their multiplicity."""
    return Counter(tuple(row) for row in frame.collect())


def netted(frame: DataFrame, weight: str = "__w") -> dict[tuple[Any, ...], int]:
    """Rows and their total weight, zeros left out; the weight is one of the columns."""
    position = frame.columns.index(weight)
    totals: Counter[tuple[Any, ...]] = Counter()
    for row in frame.collect():
        values = tuple(value for n, value in enumerate(row) if n != position)
        totals[values] += row[position]
    return {values: total for values, total in totals.items() if total}


def layout(*types: str, key: Iterable[str] = ("c0",), visible_when: str | None = None) -> Layout:
    """Stored columns c0, c1, ... shown as a, b, ..."""
    stored = tuple(Column(f"c{n}", type_) for n, type_ in enumerate(types))
    visible = tuple((Column("abcdefghij"[n], c.type), c.name) for n, c in enumerate(stored))
    return Layout(stored, tuple(key), visible, visible_when)


def weighted(spark: SparkSession, rows: str, names: str = "c0, c1, __weight") -> DataFrame:
    """Rows given as the inside of VALUES."""
    return spark.sql(f"SELECT * FROM VALUES {rows} AS t({names})")
