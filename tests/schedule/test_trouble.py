"""Failures, other processes and changed definitions: what the scheduler makes of them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from runnel.errors import ErrorClass
from runnel.model.alerts import AlertKind
from runnel.model.refresh import TableState
from runnel.model.schedule import Schedule
from runnel.schedule.machine import Machine
from runnel.schedule.retry import back_off
from runnel.schedule.units import Unit
from runnel.schedule.views import Ending, instant
from schedule.by_hand import T0, ByHand, table

MINUTE = 24.0  # the period of a target of one minute


def test_a_failure_holds_up_the_consumers_and_nobody_else() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "a"), table("c", "1m", "x"))
    lake.tick(T0)
    assert lake.fail("a", T0 + 1) == []
    assert lake.finish("c", T0 + 2) == []
    assert (lake.view("a").errors, lake.view("c").errors) == (1, 0)
    assert lake.view("b").state is TableState.UNINITIALIZED


def test_tables_that_failed_together_are_not_tried_again_together() -> None:
    pauses = [back_off(2, Random(seed)) for seed in range(20)]
    assert len(set(pauses)) == len(pauses)
    assert 7.5 <= min(pauses) < 9
    assert 11 < max(pauses) <= 12.5


def test_a_system_error_is_tried_again_after_a_growing_pause() -> None:
    lake = ByHand(table("a", "1h", "x"))
    lake.tick(T0)
    lake.fail("a", T0 + 1)
    first = lake.view("a").retry_at
    assert first is not None
    assert 3.75 <= first - (T0 + 1) <= 6.25
    assert lake.tick(first - 0.1) == []
    assert lake.machine.next_wake(first - 0.1) == first
    assert lake.tick(first) == ["a"]
    lake.fail("a", first + 1)
    second = lake.view("a").retry_at
    assert second is not None
    assert 7.5 <= second - (first + 1) <= 12.5


def test_another_error_waits_for_the_next_time_it_is_due() -> None:
    lake = ByHand(table("a", "1h", "x"))
    lake.tick(T0)
    lake.fail("a", T0 + 1, ErrorClass.USER)
    assert lake.view("a").retry_at == T0 + 1536
    assert lake.tick(T0 + 1535) == []
    assert lake.tick(T0 + 1536) == ["a"]


def test_three_errors_in_a_row_suspend_and_resume_forgets_them() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "a"))
    now = T0
    for _ in range(3):
        assert lake.tick(now) == ["a"]
        lake.fail("a", now + 1, ErrorClass.USER)
        now += 40
    assert lake.view("a").state is TableState.SUSPENDED
    assert lake.ears.kinds("a")[-1] is AlertKind.AUTO_SUSPENDED
    assert lake.tick(now + 1000) == []
    lake.world.tables["a"].view = replace(
        lake.view("a"), state=TableState.UNINITIALIZED, errors=0, retry_at=None
    )
    lake.world.revision += 1
    assert lake.run_all(now + 1001) == ["a", "b"]


def test_an_error_that_is_over_does_not_count_any_more() -> None:
    lake = ByHand(table("a", "1m", "x"))
    now = T0
    for _ in range(5):
        lake.write("x")
        assert lake.tick(now) == ["a"]
        lake.fail("a", now + 1)
        retry_at = lake.view("a").retry_at
        assert retry_at is not None
        assert lake.tick(retry_at) == ["a"]
        lake.finish("a", retry_at + 1)
        now += 96
    assert lake.view("a").state is TableState.ACTIVE


def test_busy_is_no_error_and_is_looked_at_again_soon() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "a"))
    lake.tick(T0)
    assert lake.finish("a", T0 + 0.1, Ending.BUSY) == []
    assert lake.ears.heard == []
    assert lake.view("a").errors == 0
    assert lake.tick(T0 + 0.5) == []
    assert lake.tick(T0 + 1.2) == ["a"]


def test_what_is_overtaken_again_and_again_is_not_tried_without_a_pause() -> None:
    lake = ByHand(table("a", "1m", "x"))
    assert lake.tick(T0) == ["a"]
    assert lake.finish("a", T0, Ending.OVERTAKEN) == ["a"], "the first time at once"
    assert lake.finish("a", T0, Ending.OVERTAKEN) == []
    assert lake.machine.next_wake(T0) == pytest.approx(T0 + 0.1)
    assert lake.tick(T0 + 0.1) == ["a"]


def test_a_table_that_is_busy_elsewhere_is_looked_at_within_seconds() -> None:
    lake = ByHand(table("a", "1m", "x"))
    now = T0
    lake.tick(now)
    for _ in range(8):
        lake.finish("a", now, Ending.BUSY)
        now += 5
        assert lake.tick(now) == ["a"]


def test_what_another_process_did_is_not_done_again() -> None:
    lake = ByHand(table("a", "1m", "x"))
    lake.run_all(T0)
    other = lake.process()
    assert other.decide(T0 + 1) == []
    lake.write("x")
    assert lake.run_all(T0 + MINUTE) == ["a"]
    assert other.decide(T0 + MINUTE + 0.5) == []


def test_a_dropped_table_is_forgotten_in_the_middle_of_a_pass() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "a"))
    lake.tick(T0)
    del lake.world.tables["b"]
    lake.world.units = (Unit(("a",)),)
    lake.world.revision += 1
    assert lake.tick(T0 + 0.5) == []
    assert lake.finish("a", T0 + 1) == []
    assert lake.machine.is_idle


def test_who_waited_for_a_table_that_it_no_longer_reads_goes_on() -> None:
    """The pass in which it waits was formed before: it would wait in it for ever."""
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "a"), table("c", "1m", "b", "y"))
    lake.run_all(T0)
    lake.write("x")
    assert lake.tick(T0 + MINUTE) == ["a"]
    lake.world.tables["c"].view = replace(lake.view("c"), reads=(), pins={}, is_restless=True)
    del lake.world.tables["b"]
    lake.world.regroup((Unit(("a",)), Unit(("c",))))
    assert lake.tick(T0 + MINUTE + 1) == ["c"]
    lake.finish("c", T0 + MINUTE + 2)
    lake.finish("a", T0 + MINUTE + 3)
    assert lake.machine.is_idle


def test_a_query_that_reads_another_table_now_waits_for_a_pass_with_that() -> None:
    """In the pass in which it waits nobody brings that table to the same instant."""
    lake = ByHand(table("a", "1m", "x"), table("b", None, "y"), table("c", "1m", "a"))
    lake.run_all(T0)
    lake.world.commit(Unit(("b",)), lake.book.pin(T0 + 1, [lake.view("b")]))
    for base in "xy":
        lake.write(base)
    assert lake.tick(T0 + MINUTE) == ["a"]
    lake.world.tables["c"].view = replace(
        lake.view("c"), reads=("a", "b"), pins={}, is_restless=True, incarnation="another"
    )
    lake.world.revision += 1
    assert lake.finish("a", T0 + MINUTE + 2) == ["b"]
    assert lake.finish("b", T0 + MINUTE + 3) == ["c"]
    lake.finish("c", T0 + MINUTE + 4)
    assert lake.at("a") == lake.at("b") == lake.at("c") == MINUTE + 2


def test_a_new_group_does_not_advance_in_part() -> None:
    """Who waited by itself when the group was made is refreshed with the others."""
    lake = ByHand(
        table("a", "1m", "x"), table("b", "1m", "a"), table("c", "1m", "a"), table("d", "1m", "b", "c"),
    )  # fmt: skip
    lake.run_all(T0)
    lake.write("x")
    assert lake.tick(T0 + MINUTE) == ["a"]
    lake.world.regroup((Unit(("a",)), Unit(("b", "c", "d"))))
    assert lake.finish("a", T0 + MINUTE + 1) == ["b+c+d"]
    lake.finish("b+c+d", T0 + MINUTE + 2)
    lake.world.check_groups()


def test_a_changed_schedule_recomputes_nothing() -> None:
    lake = ByHand(table("a", "4m", "x"))
    lake.run_all(T0)
    lake.world.tables["a"].view = replace(lake.view("a"), schedule=Schedule.parse("12s"))
    lake.world.revision += 1
    assert lake.tick(T0 + 7) == [], "it is due, and has no news"
    assert lake.at("a") == 7.0


def test_a_table_that_falls_behind_is_told_once() -> None:
    lake = ByHand(table("a", "1m", "x"))
    lake.run_all(T0)
    lake.write("x")
    lake.tick(T0 + MINUTE)
    lake.tick(T0 + 61)
    lake.tick(T0 + 90)
    assert lake.ears.kinds("a") == [AlertKind.STALE]
    lake.finish("a", T0 + 91)
    assert lake.ears.kinds("a") == [AlertKind.STALE, AlertKind.FRESH]


def test_who_missed_its_cron_line_is_told() -> None:
    """A table that was never filled, and one whose refreshes come to nothing."""
    hour = T0 + 3600 - T0 % 3600
    for is_filled in (False, True):
        lake = ByHand(table("a", "cron 0 * * * *", "x", seconds=30.0))
        if is_filled:
            lake.run_all(T0)
        lake.write("x")
        lake.tick(hour)
        lake.tick(hour + 119)
        assert lake.ears.heard == [], "it has a minute, and twice what it takes"
        lake.tick(hour + 121)
        lake.tick(hour + 500)
        said = (
            f"was to be refreshed at {instant(hour):%Y-%m-%d %H:%M} UTC, and shows an earlier state"
        )
        told = said if is_filled else "was never filled"
        assert lake.ears.heard == [(AlertKind.STALE, "a", told)]
        lake.finish("a", hour + 501)
        lake.tick(hour + 502)
        assert lake.ears.kinds("a") == [AlertKind.STALE, AlertKind.FRESH]


def test_who_was_never_filled_is_told_after_its_target() -> None:
    lake = ByHand(table("a", "1m", "x"))
    lake.tick(T0)
    lake.tick(T0 + 60)
    assert lake.ears.heard == []
    lake.tick(T0 + 61)
    assert lake.ears.heard == [(AlertKind.STALE, "a", "was never filled")]


def test_a_table_that_was_late_and_is_suspended_is_not_said_to_be_in_time() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "x"))
    lake.run_all(T0)
    lake.write("x")
    lake.tick(T0 + 100)
    assert lake.ears.kinds("a") == lake.ears.kinds("b") == [AlertKind.STALE]
    lake.world.tables["a"].view = replace(lake.view("a"), state=TableState.SUSPENDED)
    lake.world.revision += 1
    lake.tick(T0 + 101)
    assert lake.ears.kinds("a") == [AlertKind.STALE]


def test_a_target_that_cannot_be_kept_is_told_with_the_reason() -> None:
    lake = ByHand(table("a", "1m", "x", seconds=20.0), table("b", "1m", "a", seconds=15.0))
    lake.tick(T0)
    told = [
        (name, text) for kind, name, text in lake.ears.heard if kind is AlertKind.LAG_UNREACHABLE
    ]
    assert told == [
        (
            "b",
            "does not keep its target with the present plan, by about 10 s: refreshing takes 15 s, waiting for a 20 s",
        )
    ]


def test_too_few_workers_are_told_with_the_reason() -> None:
    """Twelve tables of ten seconds, one at a time: each alone could keep its minute."""
    lake = ByHand(*(table(f"t{i:02}", "1m", "x", seconds=10.0) for i in range(12)), concurrent=1)
    now = T0
    lake.tick(now)
    for _ in range(60):
        lake.write("x")
        now += 10.0
        lake.finish(next(iter(lake.running)), now, took=10.0)
        lake.tick(now)
    told = {name: text for kind, name, text in lake.ears.heard if kind is AlertKind.LAG_UNREACHABLE}
    assert told.keys() == {f"t{i:02}" for i in range(12)}
    assert "refreshing takes 10 s, waiting for its turn " in told["t11"]
    assert told["t11"].endswith(
        "as more is due than max_concurrent_refreshes lets run side by side"
    )
    assert 60 < (lake.view("t11").waited or 0) < 120, "eleven others, and until it was due"
    lake.run_all(now + 24)
    for _ in range(30):
        now += 48
        assert lake.run_all(now) == [], "now all is quiet"
    assert (lake.view("t11").waited or 0) < 1
    assert lake.ears.kinds("t11")[-1] is AlertKind.LAG_REACHABLE


def test_who_stands_still_because_of_another_is_told_when_it_begins_and_ends() -> None:
    lake = ByHand(
        table("a", "1m", "x"), table("b", "1m", "a"), table("c", "1m", "b"), table("d", "1m", "x")
    )
    lake.run_all(T0)
    lake.write("x")
    now = T0
    for _ in range(3):
        now += 10 * MINUTE
        lake.tick(now)
        lake.fail("a", now, ErrorClass.USER)
        if "d" in lake.running:
            lake.finish("d", now)
        lake.tick(now + 1)
    begun = [AlertKind.UPSTREAM_FAILED, AlertKind.UPSTREAM_SUSPENDED]
    assert held_up(lake, "b") == held_up(lake, "c") == begun
    assert held_up(lake, "a") == held_up(lake, "d") == []
    lake.world.tables["a"].view = replace(
        lake.view("a"), state=TableState.ACTIVE, errors=0, retry_at=None
    )
    lake.run_all(now + 10 * MINUTE)
    lake.tick(now + 10 * MINUTE + 1)
    assert held_up(lake, "b") == [*begun, AlertKind.UPSTREAM_RECOVERED]


def held_up(lake: ByHand, name: str) -> list[AlertKind]:
    return [kind for kind in lake.ears.kinds(name) if kind.value.startswith("upstream")]


def test_what_an_earlier_process_told_is_ended_by_the_next() -> None:
    lake = ByHand(table("a", "1m", "x", seconds=1.0), table("b", "1m", "a"))
    told = {AlertKind.LAG_UNREACHABLE: {"a"}, AlertKind.UPSTREAM_FAILED: {"b", "gone"}}
    lake.machine = Machine(lake.book, lake.ears, lasting=told)
    lake.run_all(T0)
    assert lake.ears.kinds("a") == [AlertKind.LAG_REACHABLE]
    assert lake.ears.kinds("b") == [AlertKind.UPSTREAM_RECOVERED]
    assert lake.ears.kinds("gone") == []


@pytest.mark.parametrize("restless", [True, False])
def test_a_restless_table_is_refreshed_without_news(restless: bool) -> None:
    lake = ByHand(table("a", "1m", "x"))
    lake.run_all(T0)
    lake.world.tables["a"].view = replace(lake.view("a"), is_restless=restless)
    assert lake.tick(T0 + MINUTE) == (["a"] if restless else [])
