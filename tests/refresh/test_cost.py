"""Predictions: a model, corrected by what recent refreshes took, and never stuck on an old sample."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from runnel.catalog import Attempt
from runnel.model.refresh import Outcome, RefreshAction
from runnel.refresh.cost import model_differential, model_full, predict


def attempt(action: RefreshAction, seconds: float, model: float, rows: int = 0) -> Attempt:
    now = datetime.now(UTC)
    return Attempt(
        id=1, table_id="t", table_name="t", started_at=now, finished_at=now, outcome=Outcome.OK,
        action=action, reason="", rows_inserted=0, rows_deleted=0, change_rows=rows, seconds=seconds,
        phases={}, predicted={"model": model}, data_timestamp=now, frontier=None, epoch=1,
        error=None, error_code=None, owner="me",
    )  # fmt: skip


def test_without_history_the_model_speaks() -> None:
    prediction = predict(1_000, 10_000_000, [])
    assert not prediction.is_measured
    assert prediction.differential == model_differential(1_000, 10_000_000)
    assert prediction.full == model_full(10_000_000) > prediction.differential


def test_measurements_correct_both_ways() -> None:
    history = [
        attempt(RefreshAction.DIFFERENTIAL, 2.0, 1.0),
        attempt(RefreshAction.FULL, 0.5, 1.0),
    ]
    prediction = predict(100, 1_000_000, history)
    assert prediction.is_measured
    assert prediction.differential == pytest.approx(2.0 * model_differential(100, 1_000_000), 0.01)
    assert prediction.full == 0.5 * model_full(1_000_000)


def test_slow_small_changes_do_not_make_large_ones_dear() -> None:
    total, few, many = 10_000_000, 1_000, 1_000_000
    history = [
        attempt(RefreshAction.DIFFERENTIAL, 2.5, model_differential(few, total), few),
        attempt(RefreshAction.FULL, 12.0, model_full(total)),
    ]
    prediction = predict(many, total, history)
    assert 4 < prediction.differential < 10 < prediction.full


def test_large_changes_tell_what_a_row_costs() -> None:
    total, many = 10_000_000, 1_000_000
    quick = attempt(RefreshAction.DIFFERENTIAL, 2.0, model_differential(many, total), many)
    assert predict(2 * many, total, [quick]).differential < 5


# Seconds measured for 0.1% and 1% changed and for the whole, of 10 million rows, and then for 10%.
@pytest.mark.parametrize(
    ("little", "more", "whole", "much"),
    [
        pytest.param(1.5, 2.7, 12.5, 10.6, id="join"),
        pytest.param(1.8, 3.5, 10.1, 8.0, id="three-way join"),
        pytest.param(0.6, 1.5, 3.6, 5.2, id="aggregate"),
        pytest.param(1.2, 3.4, 9.0, 6.3, id="three-way join, again"),
        pytest.param(0.8, 1.1, 8.5, 4.7, id="join, warm"),
        pytest.param(0.8, 1.4, 6.9, 5.7, id="three-way join, warm"),
        pytest.param(0.5, 0.7, 2.1, 1.6, id="aggregate, warm"),
        pytest.param(0.9, 1.2, 5.0, 4.1, id="aggregate over a join, warm"),
        pytest.param(0.9, 1.0, 7.6, 3.1, id="DISTINCT, warm"),
        pytest.param(0.7, 1.4, 4.4, 3.3, id="aggregate over a join, few rows on the driver"),
        pytest.param(0.7, 1.3, 4.3, 2.9, id="aggregate over a join, again"),
        pytest.param(0.3, 0.7, 1.5, 1.6, id="aggregate, few rows on the driver"),
    ],
)
def test_ten_times_the_rows_take_less_than_ten_times_as_long(
    little: float, more: float, whole: float, much: float
) -> None:
    total = 10_000_000
    history = [
        attempt(RefreshAction.DIFFERENTIAL, more, model_differential(150_000, total), 150_000),
        attempt(RefreshAction.DIFFERENTIAL, little, model_differential(15_000, total), 15_000),
        attempt(RefreshAction.FULL, whole, model_full(total)),
    ]
    prediction = predict(1_500_000, total, history)
    assert (prediction.differential < prediction.full) == (much < whole)


def test_a_first_large_change_that_ran_cold_is_believed_by_half() -> None:
    """Seconds measured of an aggregate over a join, 10 million rows; warm it takes 2.9."""
    total, much = 10_000_000, 1_000_000

    def changed(seconds: float, rows: int) -> Attempt:
        return attempt(RefreshAction.DIFFERENTIAL, seconds, model_differential(rows, total), rows)

    few = [changed(1.2, 100_000), changed(2.0, 100_000), changed(0.8, 10_000), changed(0.7, 10_000)]
    full = attempt(RefreshAction.FULL, 4.9, model_full(total))
    cold = predict(much, total, [changed(5.5, much), *few, full])
    assert 3 < cold.differential < 4.9
    again = predict(much, total, [changed(5.5, much), changed(5.5, much), *few[1:], full])
    assert again.differential > 5
    assert predict(100_000, total, [changed(5.5, much), *few, full]).differential < 2.5


def test_a_fill_that_nobody_compared_says_what_comparing_takes() -> None:
    total = 10_000_000
    history = [attempt(RefreshAction.FULL, 10.0, model_full(total))]
    assert predict(10, total, history).full == pytest.approx(10.0)
    assert predict(10, total, history, is_compared=True).full == pytest.approx(16.0)
    compared = [attempt(RefreshAction.FULL, 20.0, model_full(total, is_compared=True))]
    assert predict(10, total, compared, is_compared=True).full == pytest.approx(20.0)


def test_a_slow_differential_is_tried_again_after_a_while() -> None:
    slow = attempt(RefreshAction.DIFFERENTIAL, 100.0, 1.0)
    full = attempt(RefreshAction.FULL, 1.0, 1.0)
    soon = predict(100, 1_000_000, [full, slow])
    assert soon.differential > soon.full
    later = predict(100, 1_000_000, [full] * 8 + [slow])
    assert later.differential < later.full


def test_a_first_fill_that_looks_a_little_slower_is_measured_again() -> None:
    total = 1_000_000
    slow = attempt(RefreshAction.FULL, 1.2, model_full(total))
    quick = attempt(RefreshAction.DIFFERENTIAL, 1.0, model_differential(10, total), 10)
    assert predict(10, total, [quick, slow]).doubtful is None, "it was just measured"
    doubtful = predict(10, total, [quick, quick, slow])
    assert doubtful.doubtful is RefreshAction.FULL
    assert doubtful.differential < doubtful.full < 1.5 * doubtful.differential
    assert predict(10, total, [slow, quick, quick, slow]).doubtful is None, "once is enough"
    assert predict(10, total, [*[quick] * 5, slow]).doubtful is None, "no more by then"
    far = attempt(RefreshAction.FULL, 3.0, model_full(total))
    assert predict(10, total, [quick, quick, far]).doubtful is None, "it is slower in any case"


def test_a_first_differential_refresh_that_ran_cold_is_measured_again() -> None:
    total = 1_000_000
    full = attempt(RefreshAction.FULL, 1.0, model_full(total))
    cold = attempt(RefreshAction.DIFFERENTIAL, 2.0, model_differential(10, total), 10)
    assert predict(10, total, [full, cold, full]).doubtful is None, "it was just measured"
    doubtful = predict(10, total, [full, full, cold, full])
    assert doubtful.doubtful is RefreshAction.DIFFERENTIAL
    assert doubtful.full < doubtful.differential
    again = predict(10, total, [full, full, cold, full, full, cold])
    assert again.doubtful is None, "once is enough"
    slow = attempt(RefreshAction.DIFFERENTIAL, 9.0, model_differential(10, total), 10)
    assert predict(10, total, [full, full, slow]).doubtful is None, "it is slower in any case"


def test_a_change_that_came_to_nothing_tells_what_finding_out_costs() -> None:
    total = 1_000_000
    full = attempt(RefreshAction.FULL, 1.0, model_full(total))
    looked = attempt(RefreshAction.NO_DATA, 9.0, model_differential(10, total), 10)
    prediction = predict(10, total, [looked, full])
    assert prediction.is_measured
    assert prediction.full < prediction.differential


def test_what_has_to_be_tidied_is_paid_for_by_differential_alone() -> None:
    total = 10_000_000
    history = [
        attempt(RefreshAction.DIFFERENTIAL, 4.0, model_differential(1_000_000, total), 1_000_000),
        attempt(RefreshAction.FULL, 7.0, model_full(total), 1_000_000),
    ]
    alone = predict(1_000_000, total, history)
    assert alone.is_differential_cheaper
    tidied = predict(1_000_000, total, history, tidied_rows=total)
    assert tidied.differential == alone.differential
    assert not tidied.is_differential_cheaper
    assert tidied.to_json()["tidying"] == pytest.approx(tidied.tidying, abs=0.001)


def test_tidying_is_scaled_by_what_it_took() -> None:
    total = 10_000_000
    model = predict(10, total, [], tidied_rows=total).tidying
    slow = attempt(RefreshAction.DIFFERENTIAL, 1.0, model_differential(10, total), 10)
    slow = replace(
        slow, phases={"tidying": 3 * model}, predicted={**slow.predicted, "tidying": model}
    )
    assert predict(10, total, [slow], tidied_rows=total).tidying == pytest.approx(3 * model)
