"""Queries under settings that give their text another meaning, and errors at their own places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from refresh.helpers import Source
from runnel.api import Lake
from runnel.errors import InvalidQuery, NotDifferentiable

pytestmark = pytest.mark.spark

_PADDED = (
    "SELECT a.id, c.id AS k FROM orders a, orders b RIGHT JOIN orders c ON b.id = c.id AND b.id < 0"
)
Set = Callable[[str, str], None]


@pytest.fixture
def set_(spark: SparkSession) -> Iterator[Set]:
    before: dict[str, str] = {}

    def change(name: str, value: str) -> None:
        before[name] = str(spark.conf.get(name))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.set(name, value)


def test_names_in_double_quotes_are_refused(lake: Lake, source: Source, set_: Set) -> None:
    set_("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    with pytest.raises(InvalidQuery, match="double quotes"):
        lake.create_stream_table("st", 'SELECT "id" AS id FROM orders')


def test_a_comma_that_binds_as_in_the_standard(lake: Lake, source: Source, set_: Set) -> None:
    set_("spark.sql.ansi.relationPrecedence", "true")
    with pytest.raises(NotDifferentiable, match="relationPrecedence"):
        lake.create_stream_table("st", _PADDED, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("st", _PADDED)
    expected = Counter(map(tuple, lake.spark.sql(_PADDED).collect()))
    assert Counter(map(tuple, lake.table("st").collect())) == expected
    assert all(row[0] is not None for row in expected)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("SELECT id FROM orders\nWHERE amuont > 1", "line 2, column 7: amuont"),
        ("SELECT o.id FROM orders o JOIN orders p ON o.id = id", "line 1, column 51: id"),
    ],
)
def test_what_spark_finds_is_shown_in_the_query(
    lake: Lake, source: Source, query: str, place: str
) -> None:
    with pytest.raises(InvalidQuery) as caught:
        lake.create_stream_table("st", query)
    assert caught.value.place == place
    assert " pos " not in str(caught.value)
