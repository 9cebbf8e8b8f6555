"""A new table starts from what is there, where that is one state and fresh enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import time

import pytest

from runnel.catalog import StreamTable
from runnel.model.frontier import Pin
from runnel.model.refresh import TableState
from runnel.refresh.pins import Pins
from runnel.refresh.workspace import Workspace
from runnel.schedule import passes
from runnel.schedule.newest import newest_state
from runnel.schedule.views import instant
from schedule.by_hand import T0
from schedule.lake import FakeLake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[FakeLake]:
    made = FakeLake(tmp_path)
    yield made
    made.workspace.catalog.close()


def newest(lake: FakeLake, *sources: str, oldest: float = T0 - 60) -> dict[str, int] | None:
    tables = {t.name.key: t for t in lake.workspace.catalog.tables()}
    found = newest_state(tables, [lake._source(s) for s in sources], instant(oldest))
    if found is None:
        return None
    assert found.data_timestamp == instant(T0)
    return {key: pin.version for key, pin in found.pins.items()}


def test_tables_of_one_instant_and_the_base_version_they_read(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    lake.add("b", "1m", "a", at=T0, epoch=5)
    lake.base("x1").version = 9
    assert newest(lake, "b", "x1") == {"default.b": 5, "default.x1": 1}


def test_not_when_it_is_too_old(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    assert newest(lake, "a", oldest=T0 + 1) is None


def test_not_when_they_stand_at_different_instants(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    lake.add("b", "1m", "x1", at=T0 + 1)
    assert newest(lake, "a", "b") is None


def test_not_when_nobody_knows_how_a_base_table_stood(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    assert newest(lake, "a", "x2") is None
    assert newest(lake, "x1") is None


def test_a_table_above_that_stands_elsewhere_tells_nothing(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0 - 30)
    lake.add("b", "1m", "a", at=T0)
    assert newest(lake, "b", "x1") is None
    assert newest(lake, "b") == {"default.b": 1}


@pytest.mark.parametrize(
    "trouble", [{"state": TableState.SUSPENDED}, {"reinitialize": "a column is gone"}, {"epoch": 0}]
)
def test_not_from_a_table_in_trouble(lake: FakeLake, trouble: dict[str, object]) -> None:
    lake.add("a", "1m", "x1", at=T0, **trouble)
    assert newest(lake, "a") is None


def test_the_pin_is_that_of_the_present_life(lake: FakeLake) -> None:
    table = lake.add("a", "1m", "x1", at=T0)
    tables = {t.name.key: t for t in lake.workspace.catalog.tables()}
    found = newest_state(tables, [lake._source("a")], instant(T0))
    assert found is not None
    assert found.pins == {"default.a": Pin("trace", table.incarnation, 1)}


@pytest.mark.parametrize(("target", "is_taken"), [(60.0, True), (5.0, False), (None, False)])
def test_a_new_table_refreshes_nothing_above_it_that_is_fresh_enough(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch, target: float | None, is_taken: bool
) -> None:
    lake.add("a", "1m", "x1", at=time() - 20, epoch=5)
    lake.base("x1").version = 9
    refreshed: list[str] = []

    def refresh(workspace: Workspace, tables: Sequence[StreamTable], pins: Pins) -> None:
        refreshed.extend(str(table.name) for table in tables)
        pins.set_epoch("default.a", tables[0].incarnation, 6)

    monkeypatch.setattr(passes, "refresh_unit", refresh)
    sources = [lake._source("a"), lake._source("x1")]
    pins = passes.bring_up(lake.workspace, sources, target).frontier(sources).pins
    assert refreshed == ([] if is_taken else ["a"])
    expected = {"default.a": 5, "default.x1": 1} if is_taken else {"default.a": 6, "default.x1": 9}
    assert {key: pin.version for key, pin in pins.items()} == expected
