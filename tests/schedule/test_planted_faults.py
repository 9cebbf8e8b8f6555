"""The simulator finds faults that are put into the scheduler: it could fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runnel.schedule.failures import Failures
from runnel.schedule.machine import Machine
from runnel.schedule.under_way import Pass, Passes
from schedule.sim import Shape, Simulation
from schedule.sim_outage import check_recovered, with_outages
from schedule.sim_world import Broken

_SHAPE = Shape(processes=2, skew=2.0, failures=0.1)


def _go_on(of_pass: Any, unit: Any) -> set[Any]:
    of_pass.done.add(unit)
    return set()


def _has_contents(machine: Any, table: Any, snapshot: Any) -> bool:
    return bool(table.epoch > 0)


FAULTS: dict[str, tuple[type, str, Callable[..., Any], str]] = {
    "a child does not wait": (Pass, "is_ready", lambda self, unit: True, "started before"),
    "a failure holds up nobody": (Pass, "drop_below", _go_on, "started before"),
    "news are not noticed": (Machine, "_has_no_news", _has_contents, "had news"),
    "nobody counts as running": (Passes, "running", lambda self: set(), "twice at once"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, wrong, told = FAULTS[fault]
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(Broken, match=told):
        _run(40)


def test_outages_that_count_like_any_error_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Failures, "_verdict", lambda self, now, retryable, table, known: "planted")
    with pytest.raises(Broken, match="suspended"):
        _run_outages(5)


def _run_outages(seeds: int) -> None:
    for seed in range(seeds):
        run = Simulation(seed, with_outages(seed))
        run.run()
        check_recovered(run)


def _run(seeds: int) -> None:
    for seed in range(seeds):
        Simulation(seed, _SHAPE).run()
