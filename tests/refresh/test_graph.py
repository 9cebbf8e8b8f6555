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
BOTH = "SELECT b.id, s.n FROM big b JOIN sales s USING (cust)"


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
    lake.create_stream_table("both", BOTH, refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "9.00"))
    at_first(monkeypatch, "refresh.after_append", lambda: source.append((5, 12, "8.00")))
    results = {result.name: result for result in lake.refresh()}
    assert {result.action.value for result in results.values()} == {"DIFFERENTIAL"}
    seen = {row["n"] for row in lake.sql("SELECT n FROM both WHERE id = 4").collect()}
    assert seen == {1}, "both sides of the diamond must show the state before the second commit"
    assert lake.verify("both").ok
    check(lake, "both", "DIFFERENTIAL")
    assert {row["n"] for row in lake.sql("SELECT n FROM both WHERE id = 5").collect()} == {2}


def seen_by_both(lake: Lake) -> set[tuple[int, int]]:
    return {(row["id"], row["n"]) for row in lake.table("both").collect()}


def test_below_a_suspended_table_nothing_moves(lake: Lake, tmp_path: Path) -> None:
    """Else it would read what the suspended table holds together with newer contents of others."""
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("big", BIG, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("both", BOTH, refresh_mode="DIFFERENTIAL")
    before = seen_by_both(lake)
    lake.suspend("big")
    source.append((4, 10, "9.00"))
    assert {r.name: str(r.action) for r in lake.refresh()} == {
        "big": "SKIP", "sales": "DIFFERENTIAL", "both": "SKIP",
    }  # fmt: skip
    assert seen_by_both(lake) == before
    entry = lake.history("both")[0]
    assert (entry.action, entry.reason) == ("SKIP", "big, which it is computed from, is suspended")
    lake.create_stream_table("more", "SELECT id FROM both", refresh_mode="DIFFERENTIAL")
    assert lake.status("more").data_timestamp == lake.status("both").data_timestamp
    lake.resume("big")
    check(lake, "both", "DIFFERENTIAL")
    assert seen_by_both(lake) == {(2, 3), (4, 3)}


def test_a_pass_that_is_overtaken_reads_no_two_instants(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("big", BIG, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("both", BOTH, refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "9.00"))

    def overtake() -> None:
        source.append((5, 12, "8.00"))
        lake.refresh("sales")

    at_first(monkeypatch, "refresh.before_plan", overtake)
    assert lake.refresh("both").action == "DIFFERENTIAL"
    assert {(4, 2), (5, 2)} <= seen_by_both(lake)
    assert len({lake.status(name).data_timestamp for name in ("big", "sales", "both")}) == 1
    assert lake.verify("both").ok


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
    left_out = lake.history("n")[0]
    assert (left_out.action, left_out.reason) == (
        "SKIP", "parts, which it reads, could not be refreshed"
    )  # fmt: skip
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
