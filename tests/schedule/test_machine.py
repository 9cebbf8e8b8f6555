"""The scheduler step by step: who starts when, and to which instant."""

from __future__ import annotations

from dataclasses import replace

from runnel.errors import ErrorClass
from runnel.model.refresh import TableState
from runnel.schedule.units import Policy, Unit
from schedule.by_hand import T0, ByHand, table

MINUTE = 24.0  # the period of a target of one minute


def test_parents_come_before_children_and_share_one_instant() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "a"), table("c", "1m", "a", "b"))
    assert lake.tick(T0) == ["a"]
    assert lake.finish("a", T0 + 3) == ["b"]
    assert lake.finish("b", T0 + 5) == ["c"]
    assert lake.finish("c", T0 + 6) == []
    assert {lake.at(name) for name in "abc"} == {0.0}


def test_independent_tables_run_side_by_side_up_to_the_limit() -> None:
    lake = ByHand(*(table(f"t{i}", "1m", "x") for i in range(5)), concurrent=3)
    assert lake.tick(T0) == ["t0", "t1", "t2"]
    assert lake.finish("t1", T0 + 1) == ["t3"]


def test_nothing_starts_before_it_is_due() -> None:
    lake = ByHand(table("a", "1m", "x"))
    lake.run_all(T0)
    lake.write("x")
    assert lake.tick(T0 + MINUTE - 0.1) == []
    assert lake.machine.next_wake(T0 + 1) == T0 + MINUTE
    assert lake.tick(T0 + MINUTE) == ["a"]


def test_each_source_is_looked_at_once_in_a_pass() -> None:
    lake = ByHand(*(table(f"t{i}", "1m", "x", "y") for i in range(20)))
    lake.run_all(T0)
    lake.world.source_checks = 0
    lake.run_all(T0 + MINUTE)
    assert lake.world.source_checks == 2
    lake.run_all(T0 + MINUTE + 1)
    assert lake.world.source_checks == 2, "nothing was due"


def test_without_news_nothing_is_refreshed_but_the_instant_moves() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "a"))
    lake.run_all(T0)
    assert lake.tick(T0 + MINUTE) == []
    assert (lake.at("a"), lake.at("b")) == (MINUTE, MINUTE)


def test_nothing_is_pinned_for_a_refresh_before_spark_is_there() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "y"))
    lake.run_all(T0)
    lake.write("x")
    asked: list[bool] = []
    lake.machine.is_ready = lambda: bool(asked.append(True))
    assert lake.tick(T0 + MINUTE) == []
    assert lake.machine.is_idle
    assert (lake.at("a"), lake.at("b")) == (0.0, MINUTE), "what has no news needs no Spark"
    assert asked
    lake.machine.is_ready = lambda: True
    assert lake.tick(T0 + MINUTE + 9) == ["a"]
    lake.finish("a", T0 + MINUTE + 10)
    assert lake.at("a") == MINUTE + 9


def test_a_clock_that_ran_ahead_stops_nobody() -> None:
    """A process with a clock one hour ahead ends, and one with the right time goes on."""
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "a"))
    lake.run_all(T0 + 3600)
    lake.machine = lake.process()
    lake.write("x")
    assert lake.run_all(T0 + 1) == ["a", "b"]
    assert lake.at("a") == lake.at("b") > 3600, "T never goes back"
    lake.write("x")
    assert lake.run_all(T0 + 2) == [], "it is not due at every look because of that"
    assert lake.machine.next_wake(T0 + 2) == T0 + MINUTE
    assert lake.run_all(T0 + MINUTE) == ["a", "b"]
    assert lake.skips() == []


def test_a_clock_that_was_caught_up_with_is_no_pause() -> None:
    """What a process has brought to an instant, it brings on when it is due by its own clock."""
    lake = ByHand(table("a", "1m", "x"))
    lake.run_all(T0 + 90)
    lake.machine = lake.process()
    lake.write("x")
    assert lake.run_all(T0 + 1) == ["a"]
    lake.write("x")
    assert lake.run_all(T0 + 2 * MINUTE) == ["a"], "T is less than a minute ahead by now"


def test_clocks_that_differ_by_seconds_make_no_work() -> None:
    lake = ByHand(table("a", "1m", "x"))
    lake.run_all(T0 + 5)
    lake.machine = lake.process()
    lake.write("x")
    assert lake.run_all(T0 + 2) == []


def test_news_that_do_not_concern_a_table_leave_it_alone() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "y"), table("c", "1m", "b"))
    lake.run_all(T0)
    lake.write("x")
    assert lake.run_all(T0 + MINUTE) == ["a"]
    assert lake.at("c") == MINUTE


def test_downstream_follows_its_consumers_and_not_every_tick() -> None:
    lake = ByHand(
        table("a", "DOWNSTREAM", "x"), table("b", "4m", "a"), table("c", "DOWNSTREAM", "x")
    )
    assert lake.run_all(T0) == ["a", "b"], "c has no consumer"
    lake.write("x")
    assert [lake.run_all(T0 + s) for s in (24, 48, 95)] == [[], [], []]
    assert lake.run_all(T0 + 96) == ["a", "b"]
    assert lake.view("c").state is TableState.UNINITIALIZED


def test_a_table_without_a_schedule_comes_along_when_a_consumer_needs_it() -> None:
    lake = ByHand(table("a", None, "x"), table("b", "1m", "a"), table("c", None, "x"))
    assert lake.run_all(T0) == ["a", "b"]


def test_tables_with_different_targets_meet() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "4m", "x"), table("c", "4m", "a", "b"))
    lake.run_all(T0)
    for seconds in range(1, 97):
        lake.write("x")
        lake.run_all(T0 + seconds)
    assert {lake.at(name) for name in "abc"} == {96.0}


def test_a_slow_table_does_not_hold_up_the_others() -> None:
    lake = ByHand(table("slow", "1m", "x"), table("quick", "1m", "x"))
    lake.tick(T0)
    lake.finish("quick", T0 + 1)
    for number in range(1, 4):
        lake.write("x")
        assert lake.tick(T0 + number * MINUTE) == ["quick"]
        lake.finish("quick", T0 + number * MINUTE + 1)
    assert lake.at("quick") == 3 * MINUTE


def test_a_refresh_that_runs_in_one_pass_and_waits_in_the_next_is_skipped_once() -> None:
    lake = ByHand(table("a", "1m", "x"), table("d", "cron * * * * *", "a"))
    lake.run_all(T0)
    lake.write("x")
    assert lake.tick(T0 + 48) == ["a"]
    assert lake.tick(T0 + 60) == []
    assert lake.machine.passes.waits() == {"a": 1, "d": 1}
    lake.tick(T0 + 72)
    assert lake.skips() == ["a"]


def test_a_late_refresh_is_skipped_once_and_covered_by_the_next() -> None:
    lake = ByHand(table("slow", "1m", "x"))
    lake.tick(T0)
    lake.write("x")
    assert [lake.tick(T0 + s) for s in (24, 30, 48)] == [[], [], []]
    assert lake.skips() == ["slow"]
    assert lake.finish("slow", T0 + 50) == ["slow"], "it is late, so it goes on at once"
    lake.finish("slow", T0 + 60)
    assert lake.at("slow") == 50.0


def test_a_consumer_waits_for_the_slow_one_with_the_state_of_its_own_pass() -> None:
    lake = ByHand(
        table("slow", "1m", "x"), table("quick", "1m", "x"), table("both", "1m", "slow", "quick")
    )
    lake.tick(T0)
    lake.finish("quick", T0 + 1)
    lake.write("x")
    assert lake.tick(T0 + MINUTE) == ["quick"]
    lake.finish("quick", T0 + MINUTE + 1)
    assert lake.finish("slow", T0 + 30) == ["both", "slow"], "slow itself is late already"
    lake.finish("both", T0 + 31)
    assert lake.at("both") == 0.0 < lake.at("quick")


def test_who_is_late_waits_for_what_still_waits_elsewhere() -> None:
    """Else it would have to find everything above it free at once, which may never happen."""
    lake = ByHand(
        table("a", "1m", "x"), table("b", "1m", "a"), table("c", "1m", "y"),
        table("d", "4m", "b", "c"), concurrent=9,
    )  # fmt: skip
    lake.run_all(T0)
    lake.write("x")
    assert lake.tick(T0 + 24) == ["a"]
    assert lake.tick(T0 + 192) == [], "d is due, and b waits for a"
    assert lake.machine.passes.waits() == {"b": 1}
    assert lake.tick(T0 + 241) == [], "now d is late"
    assert lake.machine.passes.waits() == {"a": 1, "b": 2, "d": 1}
    assert sorted(lake.finish("a", T0 + 242)) == ["a", "b"], "b of the older pass first"
    assert lake.finish("b", T0 + 243) == []
    assert lake.at("b") == 24
    assert lake.finish("a", T0 + 244) == ["b"]
    assert lake.finish("b", T0 + 245) == ["d"]
    lake.finish("d", T0 + 246)
    assert (lake.at("b"), lake.at("d")) == (241, 241)


def test_who_was_busy_when_a_pass_began_joins_it() -> None:
    """Else what lies above it would be refreshed once more, to another instant."""
    lake = ByHand(table("a", "30s", "x"), table("b", "30s", "a", "c", "y"), table("c", None, "z"))
    assert lake.tick(T0) == ["a", "c"]
    lake.finish("c", T0 + 1)
    assert lake.finish("a", T0 + 5) == ["b"]
    for base in "xyz":
        lake.write(base)
    assert lake.tick(T0 + 12) == ["a"], "b is due, and still at it"
    lake.world.revision += 1  # as when a comment is changed, or a group has advanced
    assert lake.finish("b", T0 + 12.5) == ["c"]
    lake.write("y")
    assert lake.finish("c", T0 + 13) == []
    assert lake.finish("a", T0 + 16) == ["b"]
    assert lake.finish("b", T0 + 17) == []
    assert [lake.at(name) for name in "abc"] == [12, 12, 12]
    assert lake.machine.is_idle


def test_a_pass_that_failed_for_a_table_is_not_joined_again() -> None:
    lake = ByHand(table("a", "1h", "x"), table("slow", "1h", "x"))
    lake.tick(T0)
    lake.fail("a", T0 + 1)
    lake.write("x")
    assert lake.tick(T0 + 20) == ["a"]
    lake.finish("a", T0 + 21)
    assert lake.at("a") == 20, "with the sources as they are now"


def test_who_is_late_longest_comes_first() -> None:
    lake = ByHand(table("a", "4m", "x"), table("b", "1m", "x"), concurrent=1)
    lake.run_all(T0)
    lake.write("x")
    assert lake.tick(T0 + 96) == ["b"], "it should have been there 36 seconds ago"


def test_a_clock_that_was_set_back_moves_no_instant_back() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "12s", "a"))
    lake.run_all(T0)
    other = lake.view("a")
    lake.world.tables["a"].view = replace(other, timestamp=T0 + 30)
    lake.write("x")
    lake.run_all(T0 + MINUTE)
    assert lake.at("a") > 30
    assert lake.at("b") > 30
    assert lake.at("a") == lake.at("b")


def test_cron_fires_by_the_clock_of_its_zone() -> None:
    lake = ByHand(table("a", "cron 30 * * * * Asia/Kolkata", "x"))
    lake.run_all(T0)
    at = 3600.0 - T0 % 3600  # half past the hour in India is the full hour in UTC
    lake.write("x")
    assert lake.tick(T0 + at - 1) == []
    assert lake.tick(T0 + at) == ["a"]


def test_a_cron_table_brings_what_it_reads_along() -> None:
    hourly, later = "cron 0 * * * *", "cron 10 * * * *"
    lake = ByHand(table("a", hourly, "x"), table("b", later, "a"))
    lake.run_all(T0)
    lake.write("x")
    at = 600.0 - T0 % 3600 if T0 % 3600 < 600 else 4200.0 - T0 % 3600
    assert lake.run_all(T0 + at) == ["a", "b"]


# -- groups -------------------------------------------------------------------------------------


def test_a_group_starts_as_one_and_is_due_with_its_first_member() -> None:
    group = Unit(("b", "c", "d"))
    lake = ByHand(
        table("a", "12s", "x"), table("b", "1m", "a"), table("c", "4m", "a"), table("d", "4m", "b", "c"),
        units=(Unit(("a",)), group),
    )  # fmt: skip
    assert lake.run_all(T0) == ["a", "b+c+d"]
    lake.write("x")
    assert lake.run_all(T0 + MINUTE) == ["a", "b+c+d"]


def test_a_group_with_the_policy_slowest_waits_for_its_last_member() -> None:
    group = Unit(("b", "c"), Policy.SLOWEST)
    lake = ByHand(table("b", "1m", "x"), table("c", "4m", "x"), units=(group,))
    lake.run_all(T0)
    lake.write("x")
    assert lake.run_all(T0 + MINUTE) == []
    assert lake.run_all(T0 + 96) == ["b+c"]


def test_a_slowest_group_with_a_cron_line_says_when_it_is_due_next() -> None:
    group = Unit(("b", "c"), Policy.SLOWEST)
    lake = ByHand(table("b", "1m", "x"), table("c", "cron 0 * * * *", "x"), units=(group,))
    hour = 3600.0 - T0 % 3600
    lake.run_all(T0 + hour)
    for seconds in (1, 30, 1000, 3599):
        now = T0 + hour + seconds
        assert lake.machine.next_due(group, now) == lake.machine.next_wake(now) == T0 + hour + 3600
    lake.tick(T0 + hour + 3600)
    lake.write("x")
    lake.tick(T0 + hour + 3700)
    assert lake.running == {}
    lake.tick(T0 + hour + 7200)
    lake.fail("b+c", T0 + hour + 7201, ErrorClass.USER)
    assert lake.view("b").retry_at == T0 + hour + 10800, "not with the next minute"


def test_cron_members_of_a_group_keep_their_own_schedule() -> None:
    lake = ByHand(
        table("b", "cron */10 * * * *", "x"), table("c", "1d", "x"), units=(Unit(("b", "c")),)
    )
    lake.run_all(T0)
    lake.write("x")
    assert lake.run_all(T0 + 599) == []
    assert lake.run_all(T0 + 600) == ["b+c"]


def test_a_suspended_member_stops_the_group() -> None:
    lake = ByHand(table("b", "1m", "x"), table("c", "1m", "x"), units=(Unit(("b", "c")),))
    lake.run_all(T0)
    lake.world.tables["c"].view = replace(lake.view("c"), state=TableState.SUSPENDED)
    lake.world.revision += 1
    lake.write("x")
    assert lake.tick(T0 + MINUTE) == []
