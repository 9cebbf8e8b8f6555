"""The lake's verbs that only change or read the catalog: no Spark is started."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import runnel
from catalog.conftest import build_table
from runnel.catalog import CYCLE, IN_CYCLE, Owner
from runnel.errors import NotFound, SystemFault, UserError
from runnel.model.alerts import Alert, AlertKind
from runnel.model.frontier import Frontier
from runnel.model.refresh import Outcome, RefreshAction, TableState
from runnel.model.schedule import Schedule
from runnel.model.settings import Settings


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[runnel.Lake]:
    with runnel.connect(tmp_path / "lake", alert_retention_days=1) as lake:
        created = datetime.now(UTC) - timedelta(hours=2)
        filled = Frontier({}, created)
        lake._workspace.catalog.add_table(
            build_table(epoch=1, frontier=filled, created_at=created, consecutive_errors=3,
                        last_error="division by zero")
        )  # fmt: skip
        yield lake


def test_suspending_and_resuming(lake: runnel.Lake):
    heard: list[Alert] = []
    assert lake.on_alert(heard.append) == heard.append
    suspended = lake.suspend("sales")
    assert (suspended.state, suspended.consecutive_errors) == (TableState.SUSPENDED, 3)
    assert lake.suspend("SALES").state is TableState.SUSPENDED
    resumed = lake.resume("sales")
    assert (resumed.state, resumed.consecutive_errors) == (TableState.ACTIVE, 0)
    assert resumed.last_error is None
    lake.sql("ALTER STREAM TABLE sales SUSPEND")
    assert [a.kind for a in heard] == [
        AlertKind.SUSPENDED, AlertKind.RESUMED, AlertKind.SUSPENDED
    ]  # fmt: skip
    assert [a.kind for a in lake.alerts("sales", lasting=True)] == [AlertKind.SUSPENDED]


def test_resuming_ends_a_suspension_by_errors(lake: runnel.Lake):
    table = lake._find("sales")
    lake._workspace.catalog.update_table(table.id, state=TableState.SUSPENDED)
    lake._workspace.alerts.emit(AlertKind.AUTO_SUSPENDED, table.name, "3 errors in a row")
    lake.resume("sales")
    assert lake.alerts(lasting=True).to_dicts() == []
    assert [a.kind for a in lake.alerts()] == [AlertKind.RESUMED, AlertKind.AUTO_SUSPENDED]


def test_a_table_that_was_never_filled_is_resumed_as_such(lake: runnel.Lake):
    lake._workspace.catalog.add_table(build_table("empty", state=TableState.SUSPENDED))
    assert lake.resume("empty").state is TableState.UNINITIALIZED


def test_resuming_a_member_resumes_what_holds_the_rows_of_its_cycle(lake: runnel.Lake):
    """The user cannot name that table, and the members wait for it."""
    member = {"name": ["default", "p"], "text": "", "columns": [], "is_set": True}
    holder = build_table(
        "__cycle_1", options={CYCLE: json.dumps([member])}, schedule=None, epoch=1,
        state=TableState.SUSPENDED, consecutive_errors=3, last_error="no end was found",
    )  # fmt: skip
    catalog = lake._workspace.catalog
    catalog.add_table(holder)
    catalog.add_table(
        build_table("p", reads=("__cycle_1",), options={IN_CYCLE: holder.name.key}, epoch=1)
    )
    lake._workspace.alerts.emit(AlertKind.AUTO_SUSPENDED, holder.label, "3 errors in a row")
    assert lake.status("p").state is TableState.UPSTREAM_SUSPENDED
    assert lake.resume("p").state is TableState.ACTIVE
    after = catalog.get(holder.id)
    assert after is not None
    assert (after.state, after.consecutive_errors, after.last_error) == (TableState.ACTIVE, 0, None)
    assert list(lake.alerts(lasting=True)) == []
    assert [a.table for a in lake.alerts()] == ["cycle of p", "cycle of p"]


def test_alerts_are_listed(lake: runnel.Lake):
    book = lake._workspace.alerts
    for name in ("sales", "sales", "gone"):
        book.emit(AlertKind.REFRESH_FAILED, name, "no")
    book.emit(AlertKind.STALE, "sales", "is behind")
    assert [a.kind for a in lake.alerts(kind="stale")] == [AlertKind.STALE]
    assert len(lake.alerts("sales", limit=2)) == 2
    assert lake.sql("SHOW ALERTS FOR sales LIMIT 2") == lake.alerts("sales", limit=2)
    assert lake.sql("SHOW ALERTS") == lake.alerts()
    assert [a.table for a in lake.alerts("gone")] == ["gone"]
    with pytest.raises(NotFound, match="slaes does not exist"):
        lake.alerts("slaes")


def test_statistics(lake: runnel.Lake):
    catalog = lake._workspace.catalog
    table = lake._find("sales")
    now = datetime.now(UTC)
    for minutes, action in ((90, RefreshAction.FULL), (30, RefreshAction.DIFFERENTIAL)):
        at = now - timedelta(minutes=minutes)
        attempt = catalog.start_attempt(table.id, Owner.current(), started_at=at)
        catalog.finish_attempt(
            attempt, Outcome.OK, finished_at=at, action=action, seconds=1.0,
            frontier=Frontier({}, at), predicted={"full": 2.0, "differential": 4.0},
        )  # fmt: skip
    stats = lake.stats("sales")
    assert stats.actions == {"DIFFERENTIAL": 1, "FULL": 1}
    assert stats.lag_attainment == pytest.approx(2 / 90, rel=0.01)
    assert stats.cost_ratio == 0.375
    hour = lake.stats("sales", window="1h")
    assert hour.actions == {"DIFFERENTIAL": 1}
    assert (hour.measured_seconds, hour.max_lag_seconds) == (3600, pytest.approx(3600, rel=0.01))
    assert [s.name for s in lake.stats(window=timedelta(hours=1))] == ["sales"]
    assert lake.stats("sales", window=3600).actions == hour.actions
    assert lake.stats("sales", window=None).actions == stats.actions
    assert lake.sql("SHOW STREAM TABLE STATS FOR sales WINDOW '1h'")[0].actions == hour.actions
    for bad in ("soon", 0, timedelta(0)):
        with pytest.raises(UserError):
            lake.stats(window=bad)


def test_statistics_know_the_target_of_a_downstream_table(lake: runnel.Lake):
    catalog = lake._workspace.catalog
    downstream = Schedule.parse("DOWNSTREAM")
    catalog.add_table(build_table("upper", schedule=downstream))
    catalog.add_table(build_table("lower", reads=("upper",), schedule=Schedule.parse("5m")))
    catalog.add_table(build_table("alone", schedule=downstream))
    found = {row.name: (row.target_seconds, row.lag_attainment) for row in lake.stats()}
    assert (found["upper"], found["lower"], found["alone"]) == ((300, 0), (300, 0), (None, None))
    assert lake.stats("upper").target_seconds == lake.status("upper").target_seconds == 300


def test_a_folder_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemFault, match="cannot be made") as caught:
        runnel.connect(tmp_path / "file" / "lake")
    assert "check the path" in str(caught.value)


def test_a_wrong_webhook_is_told_when_connecting(tmp_path: Path):
    with pytest.raises(UserError, match="alert_webhook"):
        runnel.connect(tmp_path, alert_webhook="file:///etc/passwd")


def test_every_setting_is_a_keyword(tmp_path: Path) -> None:
    for setting in fields(Settings):
        if setting.name != "origins":
            with runnel.connect(tmp_path / "lake", **{setting.name: setting.default}) as made:
                assert made.settings.origins[setting.name] == "argument"
