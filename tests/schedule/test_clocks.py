"""What a clock that ran ahead left behind: nobody waits for it, and nothing is hidden by it."""

from __future__ import annotations

from dataclasses import replace

from runnel.errors import ErrorClass
from runnel.model.alerts import AlertKind
from schedule.by_hand import T0, ByHand, table

MINUTE = 24.0  # the period of a target of one minute
LONGEST = 375.0  # nobody who fails now waits longer for the next try


def failed_by_a_clock_ahead(error: ErrorClass, *, by: float) -> ByHand:
    """A table that failed, as a process with a clock ahead recorded it; then one without."""
    lake = ByHand(table("a", "1m", "x"))
    lake.run_all(T0)
    lake.write("x")
    lake.tick(T0 + by)
    lake.fail("a", T0 + by + 1, error)
    assert (lake.view("a").retry_at or 0) > T0 + by
    lake.machine = lake.process()
    return lake


def test_a_next_try_by_a_clock_that_ran_ahead_is_not_waited_for() -> None:
    for error in (ErrorClass.SYSTEM, ErrorClass.USER):
        lake = failed_by_a_clock_ahead(error, by=7200)
        now = T0 + 2 * MINUTE
        assert lake.run_all(now) == []
        assert lake.machine.tables["a"].retry_at == now + LONGEST
        assert lake.run_all(now + LONGEST - 1) == [], "as long as it may have to wait"
        assert lake.run_all(now + LONGEST) == ["a"]
        assert lake.view("a").retry_at is None


def test_a_definition_made_meanwhile_does_not_begin_that_wait_anew() -> None:
    lake = failed_by_a_clock_ahead(ErrorClass.SYSTEM, by=7200)
    now = T0 + 2 * MINUTE
    for seconds in range(0, 370, 10):
        lake.world.revision += 1
        assert lake.tick(now + seconds) == []
    assert lake.tick(now + LONGEST) == ["a"]


def test_a_next_try_with_a_cron_line_far_away_is_waited_for() -> None:
    lake = ByHand(table("a", "cron 0 */4 * * *", "x"))
    due = T0 + 4 * 3600 - T0 % (4 * 3600)
    lake.tick(due)
    lake.fail("a", due + 1, ErrorClass.USER)
    lake.machine = lake.process()
    assert lake.run_all(due + 2) == []
    assert lake.run_all(due + 1000) == []
    assert lake.run_all(due + 4 * 3600) == ["a"]


def left_ahead(*, by: float) -> ByHand:
    """A table with a T that lies ahead, as a process with a clock ahead left it."""
    lake = ByHand(table("a", "1m", "x"))
    lake.run_all(T0 + by)
    lake.machine = lake.process()
    lake.ears.heard.clear()
    return lake


def test_a_timestamp_ahead_does_not_hide_that_a_table_is_late() -> None:
    lake = left_ahead(by=7200)
    lake.write("x")
    assert lake.tick(T0 + 1) == ["a"]
    lake.tick(T0 + 60)
    assert lake.ears.heard == [], "its target is a minute, from when it was first seen"
    lake.tick(T0 + 62)
    assert lake.ears.heard == [(AlertKind.STALE, "a", "is 61 s behind, its target is 60 s")]
    lake.finish("a", T0 + 70)
    assert lake.ears.kinds("a") == [AlertKind.STALE, AlertKind.FRESH]


def test_a_table_is_late_too_when_its_timestamp_is_caught_up_with() -> None:
    lake = left_ahead(by=300)
    lake.write("x")
    assert lake.tick(T0 + 1) == ["a"]
    for seconds in (62, 250, 301, 400):
        lake.tick(T0 + seconds)
        assert lake.ears.kinds("a") == [AlertKind.STALE]


def test_who_is_refreshed_by_the_right_clock_is_in_time_although_its_timestamp_is_ahead() -> None:
    lake = left_ahead(by=7200)
    for beat in range(20):
        lake.write("x")
        assert lake.run_all(T0 + 1 + beat * MINUTE) == ["a"]
    assert lake.ears.heard == []


def test_who_was_never_filled_and_defined_by_a_clock_ahead_is_late() -> None:
    made = table("a", "1m", "x")
    made.view = replace(made.view, since=T0 + 7200)
    lake = ByHand(made)
    lake.tick(T0)
    assert lake.ears.heard == [(AlertKind.STALE, "a", "was never filled")]
