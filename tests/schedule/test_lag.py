"""Target lag: canonical periods, needs through the graph, and what cannot be met."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from runnel.model.schedule import parse_cron
from runnel.schedule.lag import LagPlan, Rhythm, plan_lag
from runnel.schedule.misses import misses, note_of
from runnel.schedule.periods import SHORTEST, aligned, canonical, peak_lag, period_for
from runnel.schedule.units import Policy, Unit, condense, units_of
from runnel.schedule.views import TableView
from schedule.by_hand import T0, table
from schedule.sim_world import SimTable


def views(*tables: SimTable) -> dict[str, TableView]:
    return {t.view.key: t.view for t in tables}


def plan(found: dict[str, TableView]) -> LagPlan:
    return plan_lag(found, condense(found, units_of(found)))


@pytest.mark.parametrize(
    ("limit", "period"),
    [(47.9, 24), (48, 48), (95.9, 48), (96, 96), (100, 96), (3600, 3072), (6, 6), (1.5, 1.5), (0.01, SHORTEST)],
)  # fmt: skip
def test_canonical_periods_are_48_seconds_times_a_power_of_two(limit: float, period: float) -> None:
    assert canonical(limit) == period


@pytest.mark.parametrize("target", [1, 7, 30, 60, 96, 100, 300, 3600, 86400])
def test_half_the_target_is_left_for_waiting_and_working(target: float) -> None:
    period = period_for(target)
    assert period <= target / 2 < 2 * period or period == SHORTEST
    assert peak_lag(period, 0, 0.49 * target) < target


def test_instants_of_a_long_period_are_among_those_of_a_short_one() -> None:
    for now in (T0 + 1, T0 + 95.5, 1_700_000_123.4, 1_912_345_678.9):
        for long in (96.0, 384.0, 6144.0):
            assert aligned(aligned(now, long), 24.0) == aligned(now, long)
            assert aligned(aligned(now, long), 0.375) == aligned(now, long)


def test_a_period_is_never_shorter_than_that_of_a_table_above() -> None:
    found = views(table("a", "1h", "x"), table("b", "DOWNSTREAM", "a"), table("c", "1m", "b"))
    aims = plan(found).aims
    assert (aims["c"].period, aims["c"].raised_by) == (1536, "a")
    assert (aims["b"].period, aims["b"].wanted_by) == (1536, "c")


def test_downstream_has_the_target_of_the_fastest_consumer() -> None:
    found = views(
        table("a", "DOWNSTREAM", "x"), table("b", "DOWNSTREAM", "a"),
        table("c", "1h", "a"), table("d", "5m", "b"), table("e", None, "a"),
    )  # fmt: skip
    aims = plan(found).aims
    assert (aims["a"].target, aims["a"].wanted_by) == (300, "d")
    assert (aims["b"].target, aims["b"].wanted_by) == (300, "d")


def test_downstream_without_a_consumer_says_so() -> None:
    found = views(table("a", "DOWNSTREAM", "x"), table("b", None, "a"))
    made = plan(found)
    assert made.rhythms[made.graph.unit_of["a"]].is_own is False
    assert note_of("a", found["a"], made, None) == (
        "DOWNSTREAM without a scheduled consumer: refreshed only when asked"
    )


def test_downstream_is_needed_through_tables_without_a_schedule() -> None:
    """They come along when their consumers are due, and so does what they read."""
    found = views(
        table("a", "DOWNSTREAM", "x"), table("b", None, "a"), table("c", "1m", "b"),
        table("d", "DOWNSTREAM", "x"), table("e", None, "d"), table("f", "cron 0 6 * * *", "e"),
    )  # fmt: skip
    made = plan(found)
    assert (made.aims["a"].target, made.aims["a"].wanted_by) == (60, "c")
    assert (made.aims["d"].target, made.aims["d"].wanted_by) == (None, "f")
    assert made.aims["d"].cron == found["f"].schedule.cron
    assert note_of("a", found["a"], made, None) == note_of("d", found["d"], made, None) == ""
    assert made.aims["b"].target is None, "nobody asked for one"


def test_a_table_with_a_schedule_hands_up_its_own_need_alone() -> None:
    found = views(table("a", "DOWNSTREAM", "x"), table("m", "1h", "a"), table("c", "1m", "m"))
    assert (plan(found).aims["a"].target, plan(found).aims["a"].wanted_by) == (3600, "m")


def test_downstream_is_needed_by_who_is_refreshed_together_with_it() -> None:
    """The order of a group's members is no matter, nor who of them reads whom."""
    found = views(
        table("a", "DOWNSTREAM", "x"), table("b", "DOWNSTREAM", "a"), table("c", "1m", "b"),
        table("d", "DOWNSTREAM", "x"),
    )  # fmt: skip
    made = plan_lag(found, condense(found, [Unit(("a", "b", "c", "d"))]))
    assert {key: aim.target for key, aim in made.aims.items()} == dict.fromkeys("abcd", 60)


def test_a_miss_names_the_amount_and_the_table_that_is_waited_for() -> None:
    found = views(
        table("a", "1m", "x", seconds=20), table("b", "1m", "a", seconds=5),
        table("c", "1m", "x", seconds=2), table("d", "1m", "b", "c", seconds=11),
    )  # fmt: skip
    missed = misses(found, plan(found))
    assert missed == {"d": (12.0, "refreshing takes 11 s, waiting for b 25 s")}
    assert note_of("d", found["d"], plan(found), missed["d"]) == (
        "with the present plan it misses its target by about 12 s: refreshing takes 11 s, waiting for b 25 s"
    )


def test_waiting_beyond_the_work_above_is_waiting_for_its_turn() -> None:
    a, b = table("a", "1m", "x", seconds=8), table("b", "1m", "a", seconds=5)
    b.view = replace(b.view, waited=40.0)
    ((by, why),) = misses(views(a, b), plan(views(a, b))).values()
    assert by == 2 * (40 + 5) - 60
    assert why == (
        "refreshing takes 5.0 s, waiting for a 8.0 s, waiting for its turn 32 s, "
        "as more is due than max_concurrent_refreshes lets run side by side"
    )
    b.view = replace(b.view, waited=3.0)
    assert misses(views(a, b), plan(views(a, b))) == {}, "a has not always news"


def test_a_miss_because_of_a_slower_schedule_above_says_what_to_do() -> None:
    found = views(table("a", "1h", "x"), table("b", "1m", "a"))
    ((by, why),) = misses(found, plan(found)).values()
    assert by == 1536 - 60
    assert (
        why
        == "a, which it reads, is refreshed every 26 min (give it a shorter schedule, or DOWNSTREAM)"
    )


def test_without_measurements_nothing_is_missed() -> None:
    found = views(table("a", "1s", "x"), table("b", "1s", "a"))
    assert misses(found, plan(found)) == {}


def test_a_table_below_a_rare_cron_line_is_due_with_that() -> None:
    found = views(table("a", "cron 0 6 * * * Europe/Berlin", "x"), table("b", "1m", "a"))
    made = plan(found)
    rhythm = made.rhythms[made.graph.unit_of["b"]]
    summer = datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp()
    assert rhythm.last(summer) == datetime(2026, 7, 1, 4, tzinfo=UTC).timestamp()
    assert rhythm.next(summer) == datetime(2026, 7, 2, 4, tzinfo=UTC).timestamp()


def test_a_table_below_a_frequent_cron_line_keeps_its_own_period() -> None:
    found = views(table("a", "cron * * * * *", "x"), table("b", "1h", "a"))
    made = plan(found)
    rhythm = made.rhythms[made.graph.unit_of["b"]]
    assert rhythm.next(T0) == T0 + 1536


def test_the_slowest_policy_waits_for_every_rhythm_of_a_group() -> None:
    hourly, later = parse_cron("0 * * * *"), parse_cron("30 * * * *")
    rhythm = Rhythm(24.0, (hourly, later), policy=Policy.SLOWEST)
    ten = datetime(2026, 7, 1, 10, tzinfo=UTC).timestamp()
    assert rhythm.next(ten) == ten + 3600, "half past ten comes first, but that is not the last"
    assert rhythm.next(ten + 1) == ten + 3600
    assert rhythm.next(ten + 1801) == ten + 5400
    for reached in (ten, ten + 1, ten + 1800, ten + 1801):
        due = rhythm.next(reached)
        assert rhythm.last(due - 0.001) <= reached < rhythm.last(due)


def test_a_cycle_is_one_unit() -> None:
    found = views(
        table("a", "1m", "x"), table("b", "1m", "a", "c"), table("c", "5m", "b"), table("d", "1m", "c")
    )  # fmt: skip
    graph = condense(found, units_of(found))
    assert [unit.members for unit in graph.in_order(graph.units)] == [("a",), ("b", "c"), ("d",)]


def test_a_table_that_reads_itself_is_a_unit_of_its_own() -> None:
    found = views(table("a", "1m", "x", "a"), table("b", "1m", "a"))
    graph = condense(found, units_of(found))
    assert [unit.members for unit in graph.in_order(graph.units)] == [("a",), ("b",)]
