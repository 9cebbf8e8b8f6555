"""Thousands of made-up lakes through the real scheduler; a failing seed is printed.

`RUNNEL_SIM_SEED=17` runs one seed again, `RUNNEL_SIM_RUNS=5000` more of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from runnel.schedule.lag import plan_lag
from runnel.schedule.misses import misses
from runnel.schedule.units import condense
from schedule.sim import Shape, Simulation, scheduled
from schedule.sim_outage import check_recovered, with_outages
from schedule.sim_world import Broken

_SEED = os.environ.get("RUNNEL_SIM_SEED")
_RUNS = int(os.environ.get("RUNNEL_SIM_RUNS", "100"))

CALM = Shape()
TIMED = Shape(schedules=("12s", "1m", "4m", "cron */1 * * * *", "cron */2 * * * * Asia/Kolkata"))
TROUBLED = Shape(failures=0.2, crashes=3)
CROWDED = Shape(workers=2, longest=40.0, horizon=800.0, tables=9)
SHARED = Shape(processes=3, workers=2, skew=3.0, crashes=4, failures=0.1)


def _seeds() -> Iterator[int]:
    yield from [int(_SEED)] if _SEED else range(_RUNS)


def _each(
    shape: Shape | Callable[[int], Shape], check: Callable[[Simulation], object] = lambda run: None
) -> None:
    for seed in _seeds():
        run = Simulation(seed, shape if isinstance(shape, Shape) else shape(seed))
        try:
            run.run()
            check(run)
        except Exception as error:
            tail = "\n".join(run.world.log[-30:])
            pytest.fail(f"RUNNEL_SIM_SEED={seed} ({run.shape}): {error!r}\n{tail}")


@pytest.mark.parametrize("shape", [TIMED, TROUBLED, SHARED], ids=["timed", "troubled", "shared"])
def test_the_promises_hold(shape: Shape) -> None:
    """Order, T, one at a time, groups, states never mixed: checked in each step of each run."""
    refreshes = 0

    def count(run: Simulation) -> None:
        nonlocal refreshes
        refreshes += sum(table.refreshes for table in run.world.tables.values())

    _each(shape, count)
    assert refreshes > 10 * len(list(_seeds()))


def test_lag_is_held_whenever_it_can_be() -> None:
    held = 0

    def check(run: Simulation) -> None:
        nonlocal held
        views = {key: table.view for key, table in run.world.tables.items()}
        plan = plan_lag(views, condense(views, run.world.units))
        missed = misses(views, plan)
        for key, table in run.world.tables.items():
            target = plan.aims[key].target
            if target is None or key in missed or views[key].schedule.is_downstream:
                continue
            lag = max(table.worst_lag, run.world.now - (views[key].timestamp or 0))
            if lag > target:
                raise Broken(f"{key} was {lag:.1f} s behind, target {target}")
            held += 1

    _each(CALM, check)
    assert _SEED or held > 2 * _RUNS


def test_nobody_starves() -> None:
    def check(run: Simulation) -> None:
        total = sum(table.longest for table in run.world.tables.values())
        for key in scheduled(run.world):
            table = run.world.tables[key]
            behind = run.world.now - (table.view.timestamp or run.began)
            if behind > 3 * total + 250:
                raise Broken(f"{key} is {behind:.0f} s behind; all refreshes take {total:.0f} s")

    _each(CROWDED, check)


def test_outages_suspend_nobody_and_the_lag_recovers() -> None:
    recovered = 0

    def check(run: Simulation) -> None:
        nonlocal recovered
        recovered += check_recovered(run)

    _each(with_outages, check)
    assert _SEED or recovered > _RUNS


def test_the_same_seed_gives_the_same_run() -> None:
    for seed in list(_seeds())[:20]:
        assert Simulation(seed, SHARED).run().log == Simulation(seed, SHARED).run().log


def test_who_reads_several_slow_tables_gets_its_turn() -> None:
    """It never found all that it reads free at once, as others went on asking for some of it."""
    world = Simulation(304, CROWDED).run()
    assert min(world.tables[key].refreshes for key in scheduled(world)) > 3
