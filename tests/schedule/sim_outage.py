"""Simulated outages: everything fails for a while, nobody is suspended, and the lag recovers."""

from __future__ import annotations

from random import Random

from runnel.schedule.lag import plan_lag
from runnel.schedule.misses import misses
from runnel.schedule.units import condense
from schedule.sim import Simulation
from schedule.sim_make import Shape
from schedule.sim_world import Broken

LONGEST = 900.0
# After the longest pause between two tries (375 s) every table has been refreshed again.
_CALM = 700.0
_SLACK = 60.0


def with_outages(seed: int) -> Shape:
    """Two processes that die now and then, and two outages, each shorter than tables are given."""
    random = Random(seed)
    begin = random.uniform(0, 300)
    end = begin + random.uniform(5, LONGEST - 1)
    again = end + _CALM
    over = again + random.choice([1.0, 20.0, 120.0])
    return Shape(
        tables=6, horizon=over + _CALM, processes=2, crashes=3, longest=4.0,
        outages=((begin, end), (again, over)), longest_outage=LONGEST,
    )  # fmt: skip


def check_recovered(run: Simulation) -> int:
    """How many tables keep their target again."""
    suspended = [line for line in run.world.log if line.endswith("suspended")]
    if suspended:
        raise Broken(f"an outage shorter than tables are given: {suspended[0]}")
    views = {key: table.view for key, table in run.world.tables.items()}
    plan = plan_lag(views, condense(views, run.world.units))
    missed = misses(views, plan)
    held = 0
    for key, aim in plan.aims.items():
        if aim.target is None or key in missed or views[key].schedule.is_downstream:
            continue
        lag = run.world.now - (views[key].timestamp or run.began)
        if lag > aim.target + _SLACK:
            raise Broken(f"{key} is {lag:.0f} s behind after the outage, target {aim.target}")
        held += 1
    return held
