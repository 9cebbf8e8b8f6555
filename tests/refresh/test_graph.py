"""Stream tables on stream tables: one state for all, and no work that nobody asked for."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from refresh.helpers import SALES, Source, check, orders
from runnel.api import Lake
from runnel.errors import QueryFailed
from runnel.refresh import attempt, execute

pytestmark = pytest.mark.spark

BIG = "SELECT id, cust FROM orders WHERE amount > 5"


def at_first(monkeypatch: pytest.MonkeyPatch, point: str, act: Any) -> None:
    """Act once, when a refresh first reaches the named point."""
    todo = [act]

    def reach(name: str) -> None:
        if name == point and todo:
            todo.pop()()

    monkeypatch.setattr(attempt, "reach", reach)
    monkeypatch.setattr(execute, "reach", reach)


def test_a_commit_during_a_pass_is_seen_by_no_table_of_it(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("big", BIG, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table(
        "both", "SELECT b.id, s.n FROM big b JOIN sales s USING (cust)", refresh_mode="DIFFERENTIAL"
    )
    source.append((4, 12, "9.00"))
    at_first(monkeypatch, "refresh.after_append", lambda: source.append((5, 12, "8.00")))
    results = {result.name: result for result in lake.refresh()}
    assert {result.action.value for result in results.values()} == {"DIFFERENTIAL"}
    seen = {row["n"] for row in lake.sql("SELECT n FROM both WHERE id = 4").collect()}
    assert seen == {1}, "both sides of the diamond must show the state before the second commit"
    assert lake.verify("both").ok
    check(lake, "both", "DIFFERENTIAL")
    assert {row["n"] for row in lake.sql("SELECT n FROM both WHERE id = 5").collect()} == {2}


def test_a_refresh_without_effect_wakes_no_consumer(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("big", BIG, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("n", "SELECT COUNT(*) AS n FROM big", refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "1.00"))
    check(lake, "n", "NO_DATA", "no source changed")
    assert lake.history("big")[0].action == "NO_DATA"


def test_a_full_refresh_that_changed_nothing_wakes_no_consumer(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("big", BIG, refresh_mode="FULL")
    lake.create_stream_table("n", "SELECT COUNT(*) AS n FROM big", refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "1.00"))
    check(lake, "n", "NO_DATA")
    done = lake.history("big")[0]
    assert (done.action, done.rows_inserted, done.rows_deleted) == ("FULL", 0, 0)


def test_the_frontier_is_read_again_under_the_lease(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    source.append((4, 10, "9.00"))
    second: list[Any] = []
    other = Thread(target=lambda: second.append(lake.refresh("sales")))
    at_first(monkeypatch, "refresh.after_append", other.start)
    first = lake.refresh("sales")
    other.join()
    assert (first.action.value, second[0].action.value) == ("DIFFERENTIAL", "NO_DATA")
    assert lake.verify("sales").ok


def test_one_failure_leaves_the_others_and_holds_up_its_consumers(
    lake: Lake, tmp_path: Path
) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("parts", "SELECT 100 DIV cust AS part FROM orders")
    lake.create_stream_table("n", "SELECT COUNT(*) AS n FROM parts")
    source.append((4, 0, "9.00"))
    with pytest.raises(QueryFailed, match="zero"):
        lake.refresh()
    assert lake.table("n").first()["n"] == 3, "the old contents stay"
    assert lake.status("parts").last_error is not None
    assert lake.history("sales")[0].action == "DIFFERENTIAL"
    assert lake.verify("sales").ok
    source.delete("id = 4")
    check(lake, "n", "NO_DATA")


def test_reading_a_stream_table_and_its_base_in_one_query(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    names = Source(lake, tmp_path, "names", {"cust": "int", "name": "string"}, [(10, "a")])
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table(
        "share",
        "SELECT o.id, n.name, o.amount / s.total AS part FROM orders o JOIN sales s USING (cust) "
        "LEFT JOIN names n ON n.cust = o.cust",
        refresh_mode="DIFFERENTIAL",
    )
    source.append((4, 11, "3.75"))
    names.append((11, "b"))
    check(lake, "share", "DIFFERENTIAL")
