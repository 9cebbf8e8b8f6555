"""`status` plans as the scheduler does: by units, with the work of all that is refreshed together."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import time

import pytest

from runnel.catalog import CYCLE, IN_CYCLE
from runnel.model.alerts import AlertKind
from runnel.model.refresh import Outcome, TableState
from runnel.model.results import TableStatus
from runnel.schedule import seeing
from runnel.schedule.health import staleness
from runnel.schedule.lake_book import LakeBook
from runnel.schedule.machine import Machine
from runnel.schedule.outlook import Outlook
from runnel.schedule.run import lake_units
from runnel.schedule.views import instant
from schedule.by_hand import T0, Ears
from schedule.lake import FakeLake

ATOMIC = {"options": {"diamond_consistency": "atomic"}}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[FakeLake]:
    made = FakeLake(tmp_path)
    yield made
    made.workspace.catalog.close()


def add_diamond(lake: FakeLake, *schedules: str | None) -> None:
    """An atomic group of three, and what reads it."""
    first, second, third = schedules or ("1m", "1m", "1m")
    lake.add("sums", first, "x1", at=T0, work_seconds=20.0)
    lake.add("counts", second, "x1", at=T0, work_seconds=15.0)
    lake.add("both", third, "sums", "counts", at=T0, work_seconds=5.0, **ATOMIC)
    lake.add("below", "2m", "both", at=T0, work_seconds=2.0)


def status(lake: FakeLake) -> dict[str, TableStatus]:
    workspace = lake.workspace
    rows = seeing.status(workspace.catalog, workspace.settings, now=instant(T0 + 1))
    return {row.name: row for row in rows}


def scheduler(lake: FakeLake) -> tuple[Machine, Ears]:
    """The scheduler as `run` makes it, after one look."""
    book, ears = LakeBook(lake.workspace), Ears()
    machine = Machine(book, ears, units=partial(lake_units, book))
    machine.decide(T0 + 1)
    return machine, ears


def test_a_timestamp_in_the_future_is_told(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0 + 3601)
    lake.add("b", "1m", "x1", at=T0 + 3)
    found = status(lake)
    assert "data timestamp is 60 min ahead of the clock" in (found["a"].lag_note or "")
    assert found["a"].next_due == instant(T0 + 24)
    assert found["b"].lag_note is None, "clocks differ by seconds"


def test_a_timestamp_in_the_future_does_not_hide_that_a_table_is_stale(lake: FakeLake) -> None:
    """Its age counts from its last refresh; of whom none is known nobody says that it is in time."""
    for name, ago in (("a", 30), ("b", 90), ("c", None)):
        table = lake.add(name, "1m", "x1", at=T0 + 7200)
        if ago is not None:
            catalog = lake.workspace.catalog
            attempt = catalog.start_attempt(table.id, lake.workspace.leases.owner)
            catalog.finish_attempt(
                attempt, Outcome.OK, finished_at=instant(T0 + 1 - ago), frontier=table.frontier
            )
    rows = status(lake)
    assert {name: row.stale for name, row in rows.items()} == {"a": False, "b": True, "c": True}
    assert {name: row.lag_seconds for name, row in rows.items()} == {"a": 30, "b": 90, "c": None}
    assert "its lag is counted from its last refresh" in (rows["b"].lag_note or "")
    assert "how old its contents are is not known" in (rows["c"].lag_note or "")


def test_the_doctor_tells_of_who_is_late_by_nobody_knows_how_much(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=time() + 7200)
    lake.add("b", "1m", "x1", at=time())
    assert staleness(lake.workspace).said == "behind: a by an unknown time"


def test_who_waits_for_a_retry_that_a_wrong_clock_wrote_is_due_sooner(lake: FakeLake) -> None:
    later = instant(T0 + 7200)
    lake.add("a", "1m", "x1", at=T0, consecutive_errors=1, retry_at=later)
    assert status(lake)["a"].next_due == instant(T0 + 1 + 375)


def test_the_work_of_the_others_in_a_group_counts(lake: FakeLake) -> None:
    add_diamond(lake)
    notes = {name: row.lag_note for name, row in status(lake).items()}
    assert notes == {
        name: f"with the present plan it misses its target by about 20 s: refreshing it together with {others} takes 40 s"
        for name, others in {
            "sums": "counts, both", "counts": "sums, both", "both": "counts, sums"
        }.items()
    } | {"below": None}  # fmt: skip


def test_status_and_alerts_say_the_same(lake: FakeLake) -> None:
    add_diamond(lake)
    told = [h for h in scheduler(lake)[1].heard if h[0] is AlertKind.LAG_UNREACHABLE]
    noted = {name: row.lag_note for name, row in status(lake).items() if row.lag_note}
    assert {name: text.partition(": ")[2] for _, name, text in told} == {
        name: text.partition(": ")[2] for name, text in noted.items()
    }
    assert len(noted) == 3


@pytest.mark.parametrize("settings", [{}, {"diamond_consistency": "atomic"}, {"diamond_schedule_policy": "slowest"}])  # fmt: skip
def test_the_plan_is_the_schedulers(tmp_path: Path, settings: dict[str, str]) -> None:
    lake = FakeLake(tmp_path, **settings)
    add_diamond(lake, "1m", "DOWNSTREAM", "5m")
    lake.add("again", "10m", "below", "x1", at=T0)
    lake.add("nightly", "cron 0 3 * * *", "again", "below", at=T0)
    tables = lake.workspace.catalog.tables()
    machine, _ = scheduler(lake)
    assert Outlook.of(tables, lake.workspace.settings).plan == machine.plan
    lake.workspace.catalog.close()


def test_status_says_who_waits_for_its_turn(lake: FakeLake) -> None:
    lake.add("busy", "1m", "x1", at=T0, work_seconds=10.0, wait_seconds=50.0)
    lake.add("calm", "1m", "x1", at=T0, work_seconds=10.0, wait_seconds=0.5)
    notes = {name: row.lag_note for name, row in status(lake).items()}
    assert notes["calm"] is None
    assert notes["busy"] == (
        "with the present plan it misses its target by about 60 s: refreshing takes 10 s, waiting for its turn 50 s, "
        "as more is due than max_concurrent_refreshes lets run side by side"
    )


def test_status_and_alerts_agree_on_who_is_stale(lake: FakeLake) -> None:
    hour = T0 - T0 % 3600
    lake.add("good", "cron 0 * * * *", "x1", at=hour)
    lake.add("late", "cron 0 * * * *", "x1", at=hour - 7200)
    lake.add("empty", "1m", "x1", at=T0, frontier=None, altered_at=instant(T0 - 100))
    lake.add("new", "1m", "x1", at=T0, frontier=None, altered_at=instant(T0))
    lake.base("x1").version = 2
    assert {name for name, row in status(lake).items() if row.stale} == {"late", "empty"}
    told = {name for kind, name, _ in scheduler(lake)[1].heard if kind is AlertKind.STALE}
    assert told == {"late", "empty"}


def test_a_group_by_its_slowest_member_misses_the_target_of_the_others(tmp_path: Path) -> None:
    lake = FakeLake(tmp_path, diamond_schedule_policy="slowest")
    add_diamond(lake, "1m", "1h", None)
    rows = status(lake)
    assert rows["sums"].lag_note == (
        "with the present plan it misses its target by about 25 min: "
        "it is refreshed together with counts, both every 26 min, by the slowest of them"
    )
    assert rows["counts"].lag_note is None
    assert rows["below"].lag_note is not None
    assert "counts, which it reads, is refreshed every 26 min" in rows["below"].lag_note
    lake.workspace.catalog.close()


def test_a_group_by_its_slowest_member_is_due_with_its_cron_line(tmp_path: Path) -> None:
    lake = FakeLake(tmp_path, diamond_schedule_policy="slowest")
    add_diamond(lake, "1m", "cron 0 * * * *", None)
    hour = T0 + 3600 - T0 % 3600
    lake.base("x1").version = 2
    assert {status(lake)[name].next_due for name in ("sums", "both")} == {instant(hour)}
    lake.workspace.catalog.close()


def test_a_group_by_its_fastest_member_holds_nobody_below_it_back(lake: FakeLake) -> None:
    """That another member has a longer schedule makes the group no slower."""
    lake.add("sums", "1m", "x1", at=T0)
    lake.add("counts", "1h", "x1", at=T0)
    lake.add("both", None, "sums", "counts", at=T0, **ATOMIC)
    lake.add("below", "1m", "both", at=T0)
    row = status(lake)["below"]
    assert (row.lag_note, row.next_due) == (None, instant(T0 + 24))


def test_who_shares_a_group_with_a_suspended_table_stands_still_too(lake: FakeLake) -> None:
    add_diamond(lake)
    table = lake.workspace.catalog.find("default.counts")
    assert table is not None
    lake.workspace.catalog.update_table(table.id, state=TableState.SUSPENDED)
    rows = status(lake)
    assert {name: row.state.value for name, row in rows.items()} == {
        "counts": "SUSPENDED", "sums": "UPSTREAM_SUSPENDED",
        "both": "UPSTREAM_SUSPENDED", "below": "UPSTREAM_SUSPENDED",
    }  # fmt: skip
    assert {row.next_due for row in rows.values()} == {None}
    _, ears = scheduler(lake)
    told = {name: text for kind, name, text in ears.heard if kind is AlertKind.UPSTREAM_SUSPENDED}
    assert told == {
        "sums": "counts, which is refreshed together with it, is suspended",
        "both": "counts, which is refreshed together with it, is suspended",
        "below": "counts, which it is computed from, is suspended",
    }


def test_who_waits_for_a_retry_is_due_after_it(lake: FakeLake) -> None:
    add_diamond(lake)
    table = lake.workspace.catalog.find("default.counts")
    assert table is not None
    later = instant(T0 + 300)
    lake.workspace.catalog.update_table(table.id, consecutive_errors=1, retry_at=later)
    rows = status(lake)
    assert {row.next_due for row in rows.values()} == {later}
    assert rows["sums"].state is TableState.UPSTREAM_FAILED


def add_cycle(lake: FakeLake, first: str, second: str) -> None:
    members = '[{"name": ["default", "p"]}, {"name": ["default", "q"]}]'
    holder = lake.add(
        "__cycle_1", "DOWNSTREAM", "x1", at=T0, work_seconds=30.0, options={CYCLE: members}
    )
    for name, schedule in (("p", first), ("q", second)):
        inside = {IN_CYCLE: holder.name.key}
        lake.add(name, schedule, "__cycle_1", at=T0, options=inside, work_seconds=4.0)


def test_the_members_of_a_cycle_are_refreshed_after_what_holds_their_rows(lake: FakeLake) -> None:
    add_cycle(lake, "1m", "1m")
    rows = status(lake)
    assert rows["p"].lag_note == (
        "with the present plan it misses its target by about 16 s: "
        "refreshing it together with q takes 8.0 s, waiting for cycle of p, q 30 s"
    )
    told = {h[1] for h in scheduler(lake)[1].heard if h[0] is AlertKind.LAG_UNREACHABLE}
    assert told == {"p", "q"}, "what holds their rows is not the user's"


@pytest.mark.parametrize("consistency", ["none", "atomic"])
def test_a_cycle_is_due_with_its_first_member_whatever_groups_do(
    tmp_path: Path, consistency: str
) -> None:
    settings = {"diamond_schedule_policy": "slowest", "diamond_consistency": consistency}
    lake = FakeLake(tmp_path, **settings)
    add_cycle(lake, "1h", "1m")
    assert {row.next_due for row in status(lake).values()} == {instant(T0 + 24)}
    lake.workspace.catalog.close()
