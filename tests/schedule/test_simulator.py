"""Thousands of made-up lakes through the real scheduler; a failing seed is printed.

`RUNNEL_SIM_SEED=17` runs one seed again, `RUNNEL_SIM_RUNS=5000` more of them. In each step of each
run is checked: order, T, one at a time, groups all or nothing, states never mixed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from time import perf_counter

import pytest

from schedule.sim import Simulation
from schedule.sim_checks import (
    check_lag,
    check_lag_with_few_workers,
    check_late_is_told,
    check_nobody_is_left,
    check_nobody_starves,
    check_rhythm,
)
from schedule.sim_make import Shape
from schedule.sim_outage import check_recovered, with_outages

_SEED = os.environ.get("RUNNEL_SIM_SEED")
_RUNS = int(os.environ.get("RUNNEL_SIM_RUNS", "1500"))

CALM = Shape()
SHARING = Shape(processes=2, skew=1.0, longest=8.0, schedules=("1m", "100s", "2m"), horizon=480.0)
ROOMY = Shape(longest=1.5, tables=9, schedules=("30s", "1m", "100s", "4m"))
TIMED = Shape(schedules=("12s", "1m", "4m", "cron */1 * * * *", "cron */2 * * * * Asia/Kolkata"))
TROUBLED = Shape(failures=0.2, crashes=3, horizon=360.0)
CROWDED = Shape(workers=2, longest=20.0, horizon=600.0, tables=13)
SHARED = Shape(processes=3, workers=2, skew=3.0, crashes=3, failures=0.1, horizon=300.0)
EVENTFUL = Shape(events=10, horizon=300.0)
WILD = Shape(events=8, processes=2, workers=3, skew=3.0, crashes=2, failures=0.1, horizon=360.0)

AHEAD = Shape(processes=2, ahead=3600.0, crashes=3, horizon=360.0)


def _seeds(share: float) -> Iterator[int]:
    yield from [int(_SEED)] if _SEED else range(int(share * _RUNS))


_TOLD: list[str] = []


@pytest.fixture(autouse=True, scope="module")
def _tell(request: pytest.FixtureRequest) -> Iterator[None]:
    """How many lakes were run, and how long that took."""
    yield
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line("\n" + "\n".join(_TOLD))


def _each(
    share: float,
    shape: Shape | Callable[[int], Shape],
    *checks: Callable[[Simulation], int | None],
) -> list[float]:
    """Run this share of all seeds; what each check counts, for each run."""
    counted, began = [0] * len(checks), perf_counter()
    for seed in (seeds := list(_seeds(share))):
        run = Simulation(seed, shape if isinstance(shape, Shape) else shape(seed))
        try:
            run.run()
            counted = [n + (check(run) or 0) for n, check in zip(counted, checks, strict=True)]
        except Exception as error:
            tail = "\n".join(run.world.log[-30:])
            pytest.fail(f"RUNNEL_SIM_SEED={seed} ({run.shape}): {error!r}\n{tail}")
    shown = ", ".join(check.__name__ for check in checks)
    _TOLD.append(f"{len(seeds)} simulated runs in {perf_counter() - began:.1f} s: {shown}")
    # One seed alone may have nothing to count.
    return [inf if _SEED else n / len(seeds) for n in counted]


def test_lag_is_held_whenever_it_can_be() -> None:
    held, _ = _each(0.25, CALM, check_lag, check_rhythm)
    assert held > 2


def test_lag_is_held_by_two_processes() -> None:
    (held,) = _each(0.1, SHARING, check_lag)
    assert held > 2


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_lag_is_held_with_fewer_workers_than_tables(workers: int) -> None:
    (held,) = _each(0.1, replace(ROOMY, workers=workers), check_lag_with_few_workers)
    assert held > 0.5


def test_nobody_starves_and_who_is_late_says_why() -> None:
    come, late = _each(0.1, CROWDED, check_nobody_starves, check_late_is_told)
    assert come > 3
    assert late > 0.3


@pytest.mark.parametrize(
    "shape", [TIMED, TROUBLED, SHARED, EVENTFUL, WILD, AHEAD],
    ids=["cron lines", "failures", "processes", "users", "everything", "clocks"],
)  # fmt: skip
def test_the_promises_hold(shape: Shape) -> None:
    """And nobody is left behind, however it failed, crashed, lost its lease or was redefined."""
    (come,) = _each(0.1, shape, check_nobody_is_left)
    assert come > 2


def test_outages_suspend_nobody_and_the_lag_recovers() -> None:
    (recovered,) = _each(0.02, with_outages, check_recovered)
    assert recovered > 1


def test_the_same_seed_gives_the_same_run() -> None:
    for seed in list(_seeds(0.01)):
        assert Simulation(seed, WILD).run().log == Simulation(seed, WILD).run().log
