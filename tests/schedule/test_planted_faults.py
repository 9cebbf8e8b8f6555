"""The simulator finds faults that are put into the scheduler: each of its checks could fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from runnel.schedule import failures, lag, machine, watch
from runnel.schedule.failures import Failures
from runnel.schedule.machine import Machine
from runnel.schedule.news import has_no_news
from runnel.schedule.periods import canonical
from runnel.schedule.under_way import Pass, Passes
from runnel.schedule.units import Condensed, Unit, condense
from schedule.sim import Simulation
from schedule.sim_book import SimBook
from schedule.sim_checks import (
    check_lag,
    check_late_is_told,
    check_nobody_is_left,
    check_nobody_starves,
    check_rhythm,
)
from schedule.sim_make import Shape
from schedule.sim_outage import check_recovered, with_outages
from schedule.sim_world import Broken, World
from schedule.test_simulator import (
    AHEAD,
    CALM,
    CROWDED,
    EVENTFUL,
    SHARED,
    SHARING,
    TROUBLED,
    WILD,
)

FAILING = Shape(processes=2, skew=2.0, failures=0.1)
_SEEDS = 120

Wrong = tuple[Any, str, Callable[..., Any]]


@dataclass(frozen=True)
class Fault:
    """What is put in the place of what, and what the simulator says to that.

    `first` is the first seed to run, where a fault shows seldom.
    """

    told: str
    wrong: tuple[Wrong, ...]
    shape: Shape | Callable[[int], Shape] = FAILING
    check: Callable[[Simulation], object] = lambda run: None
    first: int = 0


def _go_on(of_pass: Any, unit: Any) -> set[Any]:
    of_pass.done.add(unit)
    return set()


def _has_contents(table: Any, snapshot: Any, tables: Any) -> bool:
    return bool(table.epoch > 0)


def _one_by_one(tables: Mapping[str, Any], units: tuple[Unit, ...]) -> Condensed:
    return condense(tables, [Unit((key,)) for unit in units for key in unit.members])


def _shortest(unit: Unit, aims: Mapping[str, Any], tables: Mapping[str, Any]) -> float | None:
    periods = [aims[key].period for key in unit.members if aims[key].wanted_by is None]
    return min((period for period in periods if period), default=None)


def _does(value: object) -> Callable[..., Any]:
    return lambda *given: value


def _base_never_moves(table: Any, snapshot: Any, tables: Any) -> bool:
    is_lowest = table.epoch > 0 and not table.reads
    return bool(is_lowest or has_no_news(table, snapshot, tables))


def _unseen(book: SimBook, key: str, snapshot: Any) -> None:
    """Without looking whether there really was nothing new."""
    view = book.world.tables[key].view
    book.world.move(key, snapshot, dict(view.pins), view.epoch, view.waited)


FAULTS: dict[str, Fault] = {
    "a child does not wait": Fault("started before", ((Pass, "is_ready", _does(True)),)),
    "a failure holds up nobody": Fault("started before", ((Pass, "drop_below", _go_on),)),
    "news are not noticed": Fault("had news", ((machine, "has_no_news", _has_contents),)),
    "what is read stays behind": Fault(
        "mixes two states",
        ((machine, "has_no_news", _base_never_moves), (SimBook, "_quiet", _unseen)),
    ),
    "nobody counts as running": Fault("twice at once", ((Passes, "running", lambda self: set()),)),
    "a group starts one by one": Fault(
        "advanced in part", ((machine, "condense", _one_by_one),), CALM
    ),
    "who was overtaken commits": Fault(
        "goes back|older version", ((World, "_is_ahead", _does(False)),), WILD
    ),
    "a suspended table is due": Fault(
        "is suspended", ((Machine, "_blocked", lambda self, now: set()),), EVENTFUL
    ),
    "a period is as long as the target": Fault(
        "can be kept", ((lag, "period_for", canonical),), CALM, check_lag
    ),
    "who was busy is left to the others": Fault(
        "can be kept", ((failures, "busy_pause", _does(1e5)),), SHARING, check_lag
    ),
    "a slowest group goes with its first": Fault(
        "more often", ((lag, "_unit_period", _shortest),), CALM, check_rhythm
    ),
    "nobody is late, nor joins a pass": Fault(
        "s behind",
        ((Machine, "_deadline", lambda self, unit, now: now + 1), (Machine, "_join", _does(False))),
        CROWDED, check_nobody_starves, first=200,
    ),
    "nobody says who is late": Fault(
        "nobody was told", ((watch, "misses", lambda tables, plan: {}),), CROWDED, check_late_is_told
    ),
    "a failure is never tried again": Fault(
        "s behind", ((failures, "back_off", _does(1e5)),), TROUBLED, check_nobody_is_left
    ),
    "who was busy is forgotten": Fault(
        "s behind", ((failures, "busy_pause", _does(1e5)),), SHARED, check_nobody_is_left
    ),
    "who is ahead of the clock waits for it": Fault(
        "s behind", ((Machine, "_reached", lambda self, unit, now: self._timestamp(unit)),), AHEAD,
        check_nobody_is_left,
    ),
    "an outage counts like any error": Fault(
        "suspended", ((Failures, "_verdict", _does("planted")),), with_outages, check_recovered
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = FAULTS[name]
    for owner, attribute, wrong in fault.wrong:
        monkeypatch.setattr(owner, attribute, wrong)
    with pytest.raises(Broken, match=fault.told):
        _run(fault)


def _run(fault: Fault) -> None:
    for seed in range(fault.first, fault.first + _SEEDS):
        shape = fault.shape if isinstance(fault.shape, Shape) else fault.shape(seed)
        run = Simulation(seed, shape)
        run.run()
        fault.check(run)
