"""The scheduler on a real catalog: what it reads and writes, and how little."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runnel.errors import QueryFailed
from runnel.model.columns import Column
from runnel.model.names import TableName
from runnel.model.refresh import Outcome, RefreshAction, TableState
from runnel.model.results import RefreshResult
from runnel.model.views import Resolution, View
from runnel.refresh.recording import note_failure
from runnel.schedule import seeing
from runnel.schedule.lake_book import LakeBook
from runnel.schedule.machine import Limits, Machine
from runnel.schedule.views import Ending, Finished, instant
from schedule.by_hand import T0, Ears
from schedule.lake import FakeLake, FakeLog


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[FakeLake]:
    made = FakeLake(tmp_path)
    FakeLog.looks = 0
    yield made
    made.workspace.catalog.close()


def machine(lake: FakeLake) -> Machine:
    return Machine(LakeBook(lake.workspace), Ears(), Limits())


def history(lake: FakeLake, name: str) -> list[tuple[Any, ...]]:
    found = lake.workspace.catalog.history(f"default.{name}")
    return [(a.outcome, a.action, a.reason, a.data_timestamp) for a in found]


def test_a_tick_with_nothing_due_is_one_question(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    made = machine(lake)
    made.decide(T0 + 1)
    starts, statements = lake.counted(lambda: made.decide(T0 + 2))
    assert (starts, len(statements), FakeLog.looks) == ([], 1, 0)


def test_a_thousand_tables_on_fifty_sources_without_news(lake: FakeLake) -> None:
    """Few questions; how long they take is measured by `make bench-tick`."""
    with lake.many():
        for i in range(1000):
            above = (f"t{i - 500}",) if i >= 500 else ()
            lake.add(f"t{i}", "1m", f"x{i % 50}", *above, at=T0)
    made = machine(lake)
    made.decide(T0 + 1)
    starts, statements = lake.counted(lambda: made.decide(T0 + 24))
    assert starts == []
    assert FakeLog.looks == 100, "each source once, and once more for whether it has moved"
    assert len(statements) <= 8, statements
    assert {t.frontier.data_timestamp.timestamp() for t in lake.workspace.catalog.tables()} == {
        T0 + 24
    }
    starts, statements = lake.counted(lambda: made.decide(T0 + 25))
    assert (starts, len(statements), FakeLog.looks) == ([], 1, 100)


def test_idle_tables_have_one_entry_in_the_history(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    made = machine(lake)
    for step in range(1, 6):
        made.decide(T0 + 24 * step)
    assert history(lake, "a") == [
        (Outcome.OK, RefreshAction.NO_DATA, "no source changed", instant(T0 + 120))
    ]
    made.decide(T0 + 24 * 200)
    assert len(history(lake, "a")) == 2, "the pause in between was no quiet time"
    phases = [attempt.phases for attempt in lake.workspace.catalog.history("default.a")]
    assert phases == [{}, {"times": 5}]


def test_only_who_is_concerned_starts(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    lake.add("b", "1m", "x2", at=T0)
    lake.base("x2").version = 2
    starts = machine(lake).decide(T0 + 24)
    assert [str(start.unit) for start in starts] == ["default.b"]
    assert lake.at("a") == T0 + 24


def test_a_table_whose_view_was_redefined_is_not_quiet(lake: FakeLake) -> None:
    column = (Column("id", "bigint"),)
    view = View(TableName.parse("v"), False, "SELECT id FROM x1", "default", column, ("id",), "s")
    lake.add("a", "1m", "x1", at=T0, resolution=Resolution("SELECT 1", (view,)))
    made = machine(lake)
    assert made.decide(T0 + 24) == []
    changed = Resolution("SELECT 1", (replace(view, is_new=True),))
    table = lake.workspace.catalog.tables()[0]
    lake.workspace.catalog.update_table(table.id, resolution=changed)
    assert lake.workspace.catalog.tables()[0].resolution == changed
    assert [str(start.unit) for start in made.decide(T0 + 48)] == ["default.a"]
    assert lake.at("a") == T0 + 24


def test_a_table_that_moved_meanwhile_is_left_to_who_moved_it(lake: FakeLake) -> None:
    table = lake.add("a", "1m", "x1", at=T0)
    book = LakeBook(lake.workspace)
    views = book.tables()
    snapshot = book.pin(T0 + 24, views.values())
    assert table.frontier is not None
    lake.workspace.catalog.record_progress(table.id, table.frontier, 2, 0, 0)
    assert book.quiet(snapshot, views.values()) == set()
    assert lake.at("a") == T0


def test_a_table_that_vanishes_while_the_scheduler_looks_is_left_out(lake: FakeLake) -> None:
    gone = lake.add("a", "1m", "x1", at=T0)
    lake.add("b", "1m", "x1", at=T0)
    made = machine(lake)
    made.decide(T0 + 1)
    revision = made.book.revision()
    lake.workspace.catalog.remove_tables([gone.id])
    made.book.revision = lambda: revision  # type: ignore[method-assign]
    assert made.decide(T0 + 24) == []
    assert lake.at("b") == T0 + 24
    del made.book.revision
    assert made.decide(T0 + 48) == []
    assert (made.tables.keys(), made.is_idle) == ({"default.b"}, True)


def test_a_source_that_cannot_be_read_is_left_to_the_refresh(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    lake.add("b", "1m", "x2", at=T0)
    lake.base("x1").is_broken = True
    starts = machine(lake).decide(T0 + 24)
    assert [str(start.unit) for start in starts] == ["default.a"], "its attempt records the error"
    assert lake.at("b") == T0 + 24


def test_errors_are_remembered_by_the_catalog(lake: FakeLake) -> None:
    table = lake.add("a", "1m", "x1", at=T0)
    lake.base("x1").version = 2
    made = machine(lake)
    for count in (1, 2, 3):
        (start,) = made.decide(T0 + 100 * count)
        note_failure(lake.workspace, lake.stored(table), QueryFailed("no"))
        made.finished(T0 + 100 * count, Finished(start, Ending.FAILED, error="no"))
        stored = lake.stored(table)
        assert (stored.retry_at is not None) == (count < 3)
        assert machine(lake).decide(T0 + 100 * count + 1) == [], "nor does another process try it"
    assert stored.state is TableState.SUSPENDED


def test_how_long_a_table_waits_is_remembered_by_the_catalog(lake: FakeLake) -> None:
    table = lake.add("a", "1m", "x1", at=T0)
    lake.base("x1").version = 2
    made = machine(lake)
    (start,) = made.decide(T0 + 24)
    result = RefreshResult("a", RefreshAction.DIFFERENTIAL, "", seconds=4.0)
    made.finished(T0 + 24 + 14, Finished(start, Ending.DONE, (result,)))
    assert waited(lake, table.id) == pytest.approx(2.0)
    assert machine(lake).book.tables()["default.a"].waited == pytest.approx(2.0)
    lake.base("x1").version = 1
    machine(lake).decide(T0 + 48)
    assert waited(lake, table.id) == pytest.approx(1.6), "who has no news waits for nobody"


def waited(lake: FakeLake, table_id: str) -> float | None:
    stored = lake.workspace.catalog.get(table_id)
    assert stored is not None
    return stored.wait_seconds


def test_a_skip_is_recorded(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    lake.base("x1").version = 2
    made = machine(lake)
    made.decide(T0 + 24)
    made.decide(T0 + 48)
    assert [(action, reason) for _, action, reason, _ in history(lake, "a")] == [
        (RefreshAction.SKIP, "the refresh before this one is still running: the next one covers it")
    ]


def test_status_shows_targets_and_who_stands_still(lake: FakeLake) -> None:
    lake.add("a", "DOWNSTREAM", "x1", at=T0)
    lake.add("b", "1m", "a", at=T0)
    lake.add("c", "DOWNSTREAM", "b", at=T0)
    lake.add("d", "cron 0 6 * * * Europe/Berlin", "x1", at=T0)
    lake.add("e", "1h", "x1", at=T0, state=TableState.SUSPENDED)
    lake.add("f", "1h", "e", at=T0)
    lake.add("g", "1m", "x1", at=T0, consecutive_errors=1, retry_at=instant(T0 + 77))
    lake.add("h", None, "g", at=T0)
    rows = {
        row.name: row
        for row in seeing.status(
            lake.workspace.catalog, lake.workspace.settings, now=instant(T0 + 30)
        )
    }
    assert {name: row.state.value for name, row in rows.items()} == {
        "a": "ACTIVE", "b": "ACTIVE", "c": "ACTIVE", "d": "ACTIVE", "e": "SUSPENDED",
        "f": "UPSTREAM_SUSPENDED", "g": "ACTIVE", "h": "UPSTREAM_FAILED",
    }  # fmt: skip
    assert [rows[n].target_seconds for n in "abcdh"] == [60, 60, None, None, None]
    assert rows["a"].next_due == instant(T0 + 24), "it is due already, with b"
    assert rows["c"].next_due is None
    assert (
        rows["c"].lag_note == "DOWNSTREAM without a scheduled consumer: refreshed only when asked"
    )
    assert rows["e"].next_due is None
    assert rows["f"].lag_note == "e, which it is computed from, is suspended"
    assert rows["h"].lag_note == "g, which it is computed from, failed"
    assert rows["g"].next_due == instant(T0 + 77)
    assert rows["b"].stale is False
    later = {
        row.name: row
        for row in seeing.status(
            lake.workspace.catalog, lake.workspace.settings, now=instant(T0 + 90000)
        )
    }
    assert (later["b"].stale, later["d"].stale, later["h"].stale) == (True, True, None)
