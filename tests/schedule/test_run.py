"""What `run` looks after beside the refreshes; no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import time

import pytest

from runnel.catalog import Owner
from runnel.model.refresh import Outcome
from runnel.refresh.lifecycle import _storage_lease
from runnel.schedule import run
from runnel.schedule.run import run_lake
from schedule.lake import FakeLake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[FakeLake]:
    made = FakeLake(tmp_path)
    yield made
    made.workspace.catalog.close()


def test_what_dead_processes_left_is_cleaned_up_at_the_start(lake: FakeLake) -> None:
    table = lake.add("a", "1d", "x1", at=time())
    catalog, traces = lake.workspace.catalog, lake.workspace.traces_path
    dead = Owner(Owner.current().host, 2**22 + 1, 1.0, "gone")
    catalog.start_attempt(table.id, dead)
    for name in (table.incarnation, "left_behind", "being_filled"):
        (traces / name).mkdir(parents=True)
    with lake.workspace.leases.hold(_storage_lease("being_filled")):
        assert list(run_lake(lake.workspace, once=True)) == []
    assert [a.outcome for a in catalog.history("default.a")] == [Outcome.INTERRUPTED]
    assert {p.name for p in traces.iterdir()} == {table.incarnation, "being_filled"}


def test_what_sources_may_lose_is_watched(lake: FakeLake, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    monkeypatch.setattr(run, "watch_retention", lambda workspace, at: seen.append(at.timestamp()))
    house = run._House(lake.workspace, lambda: clock[0], lambda: None)
    clock = [1000.0]
    for now in (1000.0, 1020.0, 1580.0, 1610.0, 1700.0):
        clock[0] = now
        house.keep()
    assert seen == [1000.0, 1610.0]
