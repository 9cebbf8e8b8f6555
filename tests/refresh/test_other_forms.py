"""Forms of SQL that Spark alone understands as they are written: what it says of them is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.bags import bag
from refresh.helpers import Source, check, orders
from runnel.api import Lake

pytestmark = pytest.mark.spark

_EVENTS = {"id": "int", "k": "int", "ts": "timestamp"}
_PIPES = """
    FROM pipes_view |> JOIN IDENTIFIER('names') AS n ON pipes_view.cust = n.k
    |> EXTEND amount * 2 AS twice |> SET twice = twice + id, amount = twice |> DROP k
    |> AS o |> WHERE o.twice > 1
    |> AGGREGATE sort_array(collect_list(o.id)) AS ids, SUM(twice) AS s, MAX(amount) AS m GROUP BY name AS who
"""
_SESSIONS = """
    SELECT k, session_window.start AS s, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*)) AS r
    FROM events GROUP BY k, session_window(ts, '5 minutes')
"""


@pytest.mark.parametrize("mode", ["DIFFERENTIAL", "FULL"])
def test_pipes_over_a_view_that_is_a_table(lake: Lake, tmp_path: Path, mode: str) -> None:
    source = orders(lake, tmp_path)
    names = Source(lake, tmp_path, "names", {"k": "int", "name": "string"}, [(10, "a"), (11, "b")])
    lake.sql("CREATE VIEW pipes_view AS TABLE orders")
    lake.create_stream_table("piped", _PIPES, refresh_mode=mode)
    source.append((4, 11, "2.00"))
    names.append((12, "c"))
    check(lake, "piped", mode)
    found = bag(tuple(row) for row in lake.table("piped").collect())
    assert found == bag(tuple(row) for row in lake.spark.sql(_PIPES).collect())


def test_what_is_collected_after_set_is_written_in_order(lake: Lake, tmp_path: Path) -> None:
    """The text that is made deterministic has |> SET in it, as Spark has no * REPLACE."""
    source = orders(lake, tmp_path)
    query = "TABLE orders |> SET id = id % 2 |> AGGREGATE collect_list(id) AS ids GROUP BY cust"
    lake.create_stream_table("lists", query, refresh_mode="DIFFERENTIAL")
    source.append((4, 10, "2.00"))
    check(lake, "lists", "DIFFERENTIAL")
    assert bag(lake.table("lists").collect()) == bag([(10, [0, 0, 1]), (11, [1])])


def test_sessions_beside_an_order_that_is_completed(lake: Lake, tmp_path: Path) -> None:
    source = Source(lake, tmp_path, "events", _EVENTS)
    lake.create_stream_table("sessions", _SESSIONS, refresh_mode="DIFFERENTIAL")
    lake.sql("INSERT INTO events SELECT id, id % 2, timestamp_seconds(id * id * 60) FROM range(8)")
    check(lake, "sessions", "DIFFERENTIAL")
    source.delete("id = 1")
    check(lake, "sessions", "DIFFERENTIAL")


@pytest.mark.parametrize("mode", ["DIFFERENTIAL", "FULL"])
def test_unnest_which_spark_has_not(lake: Lake, tmp_path: Path, mode: str) -> None:
    source = Source(lake, tmp_path, "lists", {"id": "int", "xs": "array<int>"}, [(1, [1, 2])])
    query = "SELECT id, x FROM lists, UNNEST(xs) AS u(x)"
    lake.create_stream_table("single", query, refresh_mode=mode)
    source.append((2, [3]))
    check(lake, "single", mode)
    assert bag(lake.table("single").collect()) == bag([(1, 1), (1, 2), (2, 3)])


@pytest.mark.parametrize("mode", ["DIFFERENTIAL", "FULL"])
def test_any_and_all_which_spark_has_not(lake: Lake, tmp_path: Path, mode: str) -> None:
    source = orders(lake, tmp_path)
    limits = Source(lake, tmp_path, "limits", {"id": "int"}, [(2,), (3,)])
    query = (
        "SELECT id FROM orders WHERE id >= ALL (SELECT id FROM limits) "
        "UNION ALL SELECT -id FROM orders WHERE id < ANY (SELECT id FROM limits)"
    )
    lake.create_stream_table("compared", query, refresh_mode=mode)
    source.append((4, 11, "2.00"))
    limits.delete("id = 3")
    check(lake, "compared", mode)
    ids = [row[0] for row in lake.spark.sql("SELECT id FROM orders").collect()]
    expected = [(i,) for i in ids if i >= 2] + [(-i,) for i in ids if i < 2]
    assert bag(lake.table("compared").collect()) == bag(expected)


def test_ties_in_a_query_that_only_full_can_keep(lake: Lake, tmp_path: Path) -> None:
    """The text itself is completed, so that every refresh chooses alike."""
    source = orders(lake, tmp_path)
    query = (
        "SELECT id, cust, ROW_NUMBER() OVER (ORDER BY cust) AS n, LAST_VALUE(amount) OVER (ORDER BY cust) AS l"
        " FROM orders WHERE id < (SELECT 100 + hll_sketch_estimate(hll_sketch_agg(id)) FROM orders)"
        " ORDER BY cust LIMIT 4"
    )
    lake.create_stream_table("tied", query)
    source.append((7, 10, "9.00"), (6, 10, "2.00"), (5, 11, "1.00"))
    check(lake, "tied", "FULL")
    found = sorted(tuple(row) for row in lake.sql("SELECT id, cust, n FROM tied").collect())
    everything = lake.spark.sql("SELECT id, cust, amount FROM orders").collect()
    ranked = sorted(everything, key=lambda row: (row[1], row[0]))[:4]
    assert found == sorted((row[0], row[1], place) for place, row in enumerate(ranked, 1))


def test_what_a_query_would_cost_is_told_before_and_when_it_becomes_a_table(
    lake: Lake, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    orders(lake, tmp_path)
    query = "SELECT id, SUM(amount) OVER () AS s FROM orders"
    told = lake.explain(query=query)
    assert "differential 0.4 s, full 0.4 s predicted" in told.now
    assert "predicted" in str(told)
    assert "without PARTITION BY" in str(told)
    with caplog.at_level("WARNING", logger="runnel"):
        lake.create_stream_table("shares", query)
    assert any("without PARTITION BY" in record.message for record in caplog.records)
