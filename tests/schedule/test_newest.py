"""A new table starts from what is there, where that is one state and fresh enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from catalog.conftest import build_table
from runnel.catalog import StreamTable
from runnel.model.frontier import Frontier, Pin
from runnel.model.refresh import RefreshAction, TableState
from runnel.model.results import RefreshResult
from runnel.model.schedule import Schedule
from runnel.refresh.pins import Pins
from runnel.refresh.workspace import Workspace
from runnel.schedule import one_pass
from runnel.schedule.newest import newest_state, oldest_that_fits
from runnel.schedule.passes import bring_up
from runnel.schedule.views import instant
from schedule.by_hand import T0
from schedule.lake import FakeLake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[FakeLake]:
    made = FakeLake(tmp_path)
    yield made
    made.workspace.catalog.close()


def newest(lake: FakeLake, *sources: str, oldest: float = T0 - 60) -> dict[str, int] | None:
    read = [lake._source(s) for s in sources]
    found = newest_state(lake.workspace.catalog, read, instant(oldest))
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


def test_tables_of_different_instants_that_saw_the_same_versions(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    lake.add("b", "5m", "x1", at=T0 + 1)
    assert newest(lake, "a", "b") == {"default.a": 1, "default.b": 1}


def test_not_when_they_saw_different_versions(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    lake.base("x1").version = 2
    lake.add("b", "1m", "x1", at=T0 + 1)
    assert newest(lake, "a", "b") is None


def test_a_base_table_that_nobody_reads_goes_with_any_state(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    assert newest(lake, "a", "x2") == {"default.a": 1}


def test_a_base_table_is_taken_as_it_was_seen_further_up(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0 - 30)
    lake.add("b", "1m", "a", at=T0)
    lake.base("x1").version = 2
    assert newest(lake, "b", "x1") == {"default.b": 1, "default.x1": 1}


def test_not_when_nobody_can_tell_how_a_base_table_was_seen(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    lake.add("b", "1m", "a", at=T0)
    a = lake.workspace.catalog.tables()[0]
    lake.workspace.catalog.record_progress(a.id, Frontier({}, instant(T0 + 9)), 2, 0, 0)
    assert newest(lake, "b", "x1") is None
    assert newest(lake, "b") == {"default.b": 1}


@pytest.mark.parametrize("trouble", [{"reinitialize": "a column is gone"}, {"epoch": 0}])
def test_not_from_a_table_in_trouble(lake: FakeLake, trouble: dict[str, object]) -> None:
    lake.add("a", "1m", "x1", at=T0, **trouble)
    assert newest(lake, "a") is None


def test_a_suspended_table_is_as_good_as_its_instant(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0, state=TableState.SUSPENDED)
    assert newest(lake, "a") == {"default.a": 1}
    assert newest(lake, "a", oldest=T0 + 1) is None


def test_the_pin_is_that_of_the_present_life(lake: FakeLake) -> None:
    table = lake.add("a", "1m", "x1", at=T0)
    found = newest_state(lake.workspace.catalog, [lake._source("a")], instant(T0))
    assert found is not None
    assert found.pins == {"default.a": Pin("trace", table.incarnation, 1)}


@pytest.mark.parametrize(
    ("schedules", "is_taken"),
    [
        (["1m"], True),
        (["5s"], False),
        ([None], True),
        (["DOWNSTREAM"], True),
        (["cron 0 0 29 2 *"], True),
        (["cron * * * * *", "cron 0 0 29 2 *"], True),
        (["1m", "5s"], False),
        (["1m", None], True),
        (["5s", None], False),
    ],
)
def test_new_tables_refresh_nothing_above_them_that_is_fresh_enough(
    lake: FakeLake,
    monkeypatch: pytest.MonkeyPatch,
    schedules: list[str | None],
    is_taken: bool,
) -> None:
    now = datetime.now(UTC).replace(second=30)
    monkeypatch.setattr(one_pass, "instant_after", lambda tables: now)
    lake.add("a", "1m", "x1", at=now.timestamp() - 20, epoch=5)
    lake.base("x1").version = 9
    refreshed: list[str] = []

    def refresh(
        workspace: Workspace, tables: Sequence[StreamTable], pins: Pins
    ) -> list[RefreshResult]:
        refreshed.extend(str(table.name) for table in tables)
        pins.set_epoch("default.a", tables[0].incarnation, 6)
        return [RefreshResult("a", RefreshAction.DIFFERENTIAL, "", epoch=6)]

    monkeypatch.setattr(one_pass, "refresh_unit", refresh)
    sources = [lake._source("a"), lake._source("x1")]
    made = [build_table(schedule=s and Schedule.parse(s)) for s in schedules]
    pins = bring_up(lake.workspace, sources, made).frontier(sources).pins
    assert refreshed == ([] if is_taken else ["a"])
    expected = {"default.a": 5, "default.x1": 1} if is_taken else {"default.a": 6, "default.x1": 9}
    assert {key: pin.version for key, pin in pins.items()} == expected


def test_what_takes_a_tables_place_is_not_taken_from_before_it() -> None:
    now = instant(T0)
    made = build_table(schedule=Schedule.parse("1h"))
    old = build_table(frontier=Frontier({}, instant(T0 - 60)))
    assert oldest_that_fits([made], [], now) == instant(T0 - 3600)
    assert oldest_that_fits([made], [old], now) == instant(T0 - 60)
    assert oldest_that_fits([build_table(schedule=None)], [old], now) == instant(T0 - 60)
    assert oldest_that_fits([made], [], now, is_any=True) < instant(T0 - 3600)
