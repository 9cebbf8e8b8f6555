"""Statistics of a history, against a slow evaluation second by second."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import isclose
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.model.refresh import Outcome, RefreshAction
from runnel.model.results import HistoryEntry
from runnel.model.stats import lag_over, percentile, summarize

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def entry(finished: float | None, data: float | None = None, **fields: Any) -> HistoryEntry:
    """An attempt that finished at a second, and the second of its data timestamp."""
    given = {
        "name": "sales",
        "started_at": at(0 if finished is None else finished - 1),
        "outcome": Outcome.OK,
        "action": RefreshAction.DIFFERENTIAL,
        "finished_at": None if finished is None else at(finished),
        "data_timestamp": None if data is None else at(data),
    }
    return HistoryEntry(**{**given, **fields})


def test_the_share_within_the_target_is_exact():
    # Lag 2 at second 10, 12 at second 20; then 5 at second 20, 15 at second 30.
    history = [entry(10, 8), entry(20, 15)]
    lag = lag_over(history, at(10), at(30), 6)
    assert lag.attainment == (4 + 1) / 20
    assert (lag.average, lag.greatest, lag.seconds) == ((7 + 10) / 2, 15, 20)


def test_the_lag_at_the_beginning_comes_from_before_it():
    lag = lag_over([entry(-100, -101)], at(0), at(10), 106)
    assert (lag.attainment, lag.seconds) == (0.5, 10)


def test_a_window_begins_with_the_first_commit():
    lag = lag_over([entry(6, 6)], at(0), at(10), 2)
    assert (lag.attainment, lag.seconds, lag.greatest) == (0.5, 4, 4)


def test_a_data_timestamp_ahead_of_its_commit_makes_no_lag_below_zero():
    """A clock ran ahead; by the right one the table was refreshed twice, and then no more."""
    history = [entry(0, 7200), entry(10, 7200), entry(30, 7200)]
    lag = lag_over(history, at(0), at(130), 20)
    assert (lag.attainment, lag.greatest) == ((10 + 20 + 20) / 130, 100)
    assert (lag.average or 0) > 0


def test_what_was_never_filled_was_never_within_its_target():
    assert lag_over([], at(0), at(10), 5).attainment == 0.0
    assert lag_over([], at(0), at(10), None).attainment is None
    failed = entry(3, 2, outcome=Outcome.FAILED)
    assert lag_over([failed], at(0), at(10), 5).attainment == 0.0


def test_a_data_timestamp_never_goes_back():
    assert lag_over([entry(5, 5), entry(6, 1)], at(5), at(10), 5).greatest == 5


unhurried = settings(deadline=None)
commits = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=12)


@unhurried
@given(commits, st.integers(-5, 50), st.integers(1, 30), st.integers(0, 20), st.randoms())
def test_the_lag_agrees_with_looking_at_every_second(commits, since, length, target, dice):
    until = since + length
    history = [entry(finished, finished - behind) for finished, behind in commits]
    dice.shuffle(history)
    within, greatest, average, seconds = 0, None, [], 0
    for second in range(since, until):
        known = [f - b for f, b in commits if f <= second]
        if known:
            lag = second - max(known)
            # Throughout the second: commits and targets are whole numbers of them.
            within += lag + 1 <= target
            greatest = max(greatest or 0, lag + 1)
            average.append(lag + 0.5)
            seconds += 1
    lag = lag_over(history, at(since), at(until), target)
    assert lag.seconds == seconds
    assert lag.greatest == greatest
    assert isclose(lag.attainment, within / seconds if seconds else 0.0, abs_tol=1e-12)
    assert lag.average is None if not average else isclose(lag.average, fmean(average))
    assert 0 <= lag.attainment <= 1


@unhurried
@given(commits, st.integers(0, 20), st.integers(0, 20))
def test_a_greater_target_is_held_no_less(commits, target, more):
    history = [entry(finished, finished - behind) for finished, behind in commits]
    first, second = (lag_over(history, at(0), at(70), t) for t in (target, target + more))
    assert first.attainment <= second.attainment


@unhurried
@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_a_value_that_enough_do_not_exceed(values, share):
    ordered = sorted(values)
    found = percentile(ordered, share)
    assert found in ordered
    assert sum(v <= found for v in ordered) >= share * len(ordered) - 1e-9
    below = [v for v in ordered if v < found]
    assert len(below) < share * len(ordered) + 1e-9


def test_percentiles_of_few_values():
    assert percentile([], 0.5) is None
    assert [percentile([1, 2, 3, 4], q) for q in (0.5, 0.95, 0.99)] == [2, 4, 4]


def history() -> list[HistoryEntry]:
    """Newest first, as the catalog gives it."""
    return [
        entry(None, outcome=Outcome.RUNNING, action=None),
        entry(90, 89, action=RefreshAction.NO_DATA, seconds=0.005),
        entry(80, outcome=Outcome.INTERRUPTED, action=None),
        entry(70, outcome=Outcome.FAILED, action=None, error_code="QUERY_FAILED", seconds=3.0),
        entry(60, 59, action=RefreshAction.REINITIALIZE, seconds=8.0, rows_inserted=10,
              rows_deleted=10, predicted={"differential": 1.0, "full": 4.0}),
        entry(50, 49, seconds=1.0, rows_inserted=5, rows_deleted=1, change_rows=7,
              predicted={"differential": 2.0, "full": 9.0}),
        entry(40, 39, seconds=3.0, rows_inserted=1, predicted={"differential": 3.0}),
        entry(-5, -6, seconds=100.0, action=RefreshAction.FULL, rows_inserted=1000),
    ]  # fmt: skip


def test_totals_are_those_of_the_window():
    stats = summarize("sales", history(), at(0), at(100), 60.0)
    assert (stats.refreshes, stats.failed, stats.interrupted) == (4, 1, 1)
    assert stats.actions == {"DIFFERENTIAL": 2, "NO_DATA": 1, "REINITIALIZE": 1}
    assert stats.errors == {"QUERY_FAILED": 1}
    assert (stats.rows_inserted, stats.rows_deleted, stats.change_rows) == (16, 11, 7)
    assert stats.total_seconds == pytest.approx(15.005)
    assert (stats.average_seconds, stats.p50_seconds, stats.max_seconds) == (4.0, 3.0, 8.0)
    assert stats.average_by_action["DIFFERENTIAL"] == 2.0
    assert stats.cost_ratio == 1.0  # the median of 0.5, 1 and 2
    assert (stats.measured_seconds, stats.lag_attainment) == (100.0, 1.0)


def test_a_window_without_refreshes():
    stats = summarize("sales", [], at(0), at(100))
    assert (stats.refreshes, stats.actions, stats.average_seconds) == (0, {}, None)
    assert (stats.cost_ratio, stats.lag_attainment, stats.max_lag_seconds) == (None, None, None)


@unhurried
@given(st.integers(0, 100), st.integers(0, 100))
def test_windows_beside_each_other_add_up(first: int, second: int):
    a, b = sorted((first, second))
    parts = [(0, a), (a + 1e-6, b), (b + 1e-6, 100)]
    found = [summarize("s", history(), at(x), at(y)) for x, y in parts if x <= y]
    whole = summarize("s", history(), at(0), at(100))
    assert sum(s.refreshes for s in found) == whole.refreshes
    assert sum(s.rows_inserted for s in found) == whole.rows_inserted
    assert sum(s.failed for s in found) == whole.failed


def test_a_quiet_time_keeps_its_lag_all_along() -> None:
    begin = datetime(2026, 3, 1, tzinfo=UTC)
    end = begin + timedelta(seconds=2400)
    entry = HistoryEntry(
        "t", begin, Outcome.OK, end, RefreshAction.NO_DATA,
        data_timestamp=end - timedelta(seconds=1), phases={"times": 101},
    )  # fmt: skip
    lag = lag_over([entry], begin, end, 60.0)
    assert (lag.attainment, lag.greatest) == (1.0, 25.0)
