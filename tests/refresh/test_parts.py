"""Groupings inside a query that have a trace of their own: contents, and what is done for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

import runnel
from refresh.helpers import Source, check
from refresh.parts_kit import ITEMS, JOINED, LINES, ROWS, actions_of_parts, parts_in, rows_of
from runnel.api import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_QUERIES = {
    "joined": JOINED,
    "read_twice": "WITH r AS (SELECT item, SUM(n * price) AS total FROM lines GROUP BY item) "
    "SELECT i.name, r.total FROM items i, r WHERE i.id = r.item AND r.total = (SELECT MAX(total) FROM r)",
    "in_having": "SELECT i.name, l.ord, l.n FROM items i JOIN lines l ON l.item = i.id WHERE l.ord IN "
    "(SELECT ord FROM lines GROUP BY ord HAVING SUM(n) > 9)",
    "scalar": "SELECT ord, n FROM lines WHERE n > (SELECT AVG(n) FROM lines)",
    "scalar_over_grouping": "SELECT i.name, l.n FROM items i JOIN lines l ON l.item = i.id WHERE l.n > "
    "(SELECT AVG(s.total) FROM (SELECT item, SUM(n) AS total FROM lines GROUP BY item) AS s) - 4",
    "grouped_again": "SELECT c, COUNT(*) AS items FROM (SELECT i.id, COUNT(l.ord) AS c FROM items i LEFT "
    "JOIN lines l ON l.item = i.id AND l.n > 1 GROUP BY i.id) AS counted GROUP BY c",
    "distinct": "SELECT i.name, d.ord FROM items i JOIN (SELECT DISTINCT ord, item FROM lines) AS d ON "
    "d.item = i.id",
    "correlated_average": "SELECT SUM(l.price) AS total FROM lines l, items i WHERE l.item = i.id AND "
    "l.n < (SELECT 1.2 * AVG(n) FROM lines WHERE item = i.id)",
    "correlated_count": "SELECT name FROM items WHERE (SELECT COUNT(*) + COALESCE(MAX(n), 0) FROM lines "
    "WHERE item = id AND price < 2) < 6",
    "first_ones": "SELECT i.name, s.total FROM items i JOIN (SELECT item, SUM(n) AS total FROM lines "
    "GROUP BY item) AS s ON i.id = s.item ORDER BY s.total DESC LIMIT 2",
}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, clean_names: None) -> Iterator[Lake]:
    """With parts of queries over tables of any size."""
    with runnel.connect(tmp_path / "lake", spark=spark, inner_trace_rows=0) as made:
        yield made


@pytest.fixture
def lines(lake: Lake, tmp_path: Path) -> Source:
    return Source(lake, tmp_path, "lines", LINES, ROWS)


@pytest.fixture
def items(lake: Lake, tmp_path: Path) -> Source:
    return Source(lake, tmp_path, "items", *ITEMS)


@pytest.mark.slow
def test_contents(lake: Lake, lines: Source, items: Source) -> None:
    """Every form through inserts, deletes and both at once; no table is computed anew."""
    for name, query in _QUERIES.items():
        lake.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    assert {part.label for part in parts_in(lake)} == {f"part 1 of {name}" for name in _QUERIES}
    lines.append((5, 11, 7, "1.00"), (5, 10, 1, "1.00"), (6, None, 1, "0.50"))
    DeltaTable(lines.path).update({"n": "n + 1", "price": "price * 2"}, predicate="item = 10")
    _check_all(lake)
    assert set(actions_of_parts(lake)) == {"DIFFERENTIAL"}
    lines.delete("ord = 1")
    lines.append((7, 13, 12, "3.00"), (7, 14, 1, "1.75"))
    items.append((13, "nail"), (14, None))
    items.delete("id = 12")
    _check_all(lake)
    assert set(actions_of_parts(lake)) == {"DIFFERENTIAL"}
    lines.delete("true")
    lines.append((8, 10, 3, "1.00"), (8, 11, 9, "1.00"))
    _check_all(lake)
    for name in _QUERIES:
        actions = {h.action for h in lake.history(name)[:-1]}
        assert "DIFFERENTIAL" in actions, name
        assert actions <= {"DIFFERENTIAL", "NO_DATA"}, name


def _check_all(lake: Lake) -> None:
    lake.refresh()
    for name in _QUERIES:
        verified = lake.verify(name)
        assert verified.ok, str(verified)


def test_a_change_that_the_part_does_not_show(lake: Lake, lines: Source, items: Source) -> None:
    """Its frontier moves on all the same, and so does that of the table: VERIFY reads it there."""
    lake.create_stream_table("totals", JOINED, refresh_mode="DIFFERENTIAL")
    lines.append((9, 10, 0, "2.00"))
    check(lake, "totals", "NO_DATA")
    items.append((15, "pin"))
    lines.append((9, 15, 1, "2.00"))
    check(lake, "totals", "DIFFERENTIAL")
    assert [name for name, _ in rows_of(lake, "totals")] == ["bolt", "nut", "pin", "screw"]


def test_two_parts_of_one_query(lake: Lake, lines: Source, items: Source) -> None:
    query = (
        "SELECT a.item, a.total, b.most FROM (SELECT item, SUM(n) AS total FROM lines GROUP BY item) AS "
        "a JOIN (SELECT item, MAX(n) AS most FROM lines GROUP BY item) AS b ON a.item = b.item"
    )
    lake.create_stream_table("both", query, refresh_mode="DIFFERENTIAL")
    assert [part.label for part in parts_in(lake)] == ["part 1 of both", "part 2 of both"]
    lines.append((9, 10, 1, "2.00"))
    check(lake, "both", "DIFFERENTIAL")
    lines.delete("n = 9")
    check(lake, "both", "DIFFERENTIAL")


def test_a_part_over_a_stream_table(lake: Lake, lines: Source, items: Source) -> None:
    lake.create_stream_table("cheap", "SELECT * FROM lines WHERE price < 3")
    lake.create_stream_table(
        "totals", JOINED.replace("lines", "cheap"), refresh_mode="DIFFERENTIAL"
    )
    query = "SELECT COUNT(*) AS c, SUM(total) AS t FROM totals"
    lake.create_stream_table("names", query, refresh_mode="DIFFERENTIAL")
    lines.append((9, 10, 1, "2.00"))
    check(lake, "names", "DIFFERENTIAL")
    assert lake.verify("totals").ok
    assert lake.status("totals").sources == ("items", "cheap")
    assert lake.refresh_order() == ("cheap", "totals", "names")


def test_doubles_are_added_in_one_order(lake: Lake, lines: Source, items: Source) -> None:
    query = (
        "WITH r AS (SELECT item, SUM(CAST(price AS DOUBLE) / 3) AS total FROM lines GROUP BY item) "
        "SELECT i.name, r.total FROM items i, r WHERE i.id = r.item AND r.total = (SELECT MAX(total) FROM r)"
    )
    lake.create_stream_table("best", query, refresh_mode="DIFFERENTIAL")
    assert len(parts_in(lake)) == 1
    lines.append((9, 12, 1, "7.00"), (9, 12, 1, "0.10"))
    check(lake, "best", "DIFFERENTIAL")
    lines.delete("n = 9")
    lake.refresh("best")
    assert lake.verify("best").ok


def test_an_atomic_group_with_parts(lake: Lake, lines: Source, items: Source) -> None:
    """The table reads what its part reads: a diamond of its own."""
    query = _QUERIES["in_having"]
    lake.create_stream_table(
        "large", query, refresh_mode="DIFFERENTIAL", diamond_consistency="atomic"
    )
    assert not lake.diamond_groups()
    lines.append((5, 11, 12, "1.00"))
    check(lake, "large", "DIFFERENTIAL")
    lines.delete("ord = 1")
    check(lake, "large", "DIFFERENTIAL")
    assert [name for name, *_ in rows_of(lake, "large")] == ["bolt", "nut", "screw"]
