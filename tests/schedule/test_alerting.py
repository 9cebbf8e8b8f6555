"""Alerts are told once, to everyone who listens, and never stop what they are about."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catalog.conftest import build_table
from runnel.catalog import Leases, Owner, Writer, open_catalog
from runnel.errors import QueryFailed, RunnelError, SystemFault
from runnel.model.alerts import Alert, AlertKind
from runnel.model.frontier import Frontier
from runnel.model.refresh import RefreshAction
from runnel.model.results import RefreshResult
from runnel.model.schedule import Schedule
from runnel.model.settings import Settings
from runnel.refresh import attempt
from runnel.refresh.workspace import Workspace
from runnel.schedule.alerting import AlertBook, note_caught_up

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Writer]:
    with open_catalog(f"sqlite:///{tmp_path}/_runnel/catalog.db") as writer:
        yield writer


def book_of(catalog: Writer, **settings: Any) -> tuple[AlertBook, list[Alert]]:
    book = AlertBook(catalog, Settings(**settings), "a lake", lambda: NOW)
    heard: list[Alert] = []
    book.subscribe(heard.append)
    return book, heard


def kinds(alerts: Any) -> list[AlertKind]:
    return [alert.kind for alert in alerts]


def test_a_repeated_condition_is_told_when_it_begins_and_ends(
    catalog: Writer, caplog: pytest.LogCaptureFixture
):
    book, heard = book_of(catalog)
    with caplog.at_level(logging.INFO, "runnel.alerts"):
        for kind in (AlertKind.STALE, AlertKind.STALE, AlertKind.FRESH, AlertKind.FRESH):
            book.emit(kind, "sales", "said", lag_seconds=3.0)
    assert kinds(heard) == [AlertKind.STALE, AlertKind.FRESH]
    assert heard[-1] == catalog.alerts()[0]
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("WARNING", "stale: sales: said"), ("INFO", "fresh: sales: said")
    ]  # fmt: skip
    assert heard[0].facts == {"lag_seconds": 3.0}


def test_quiet_kinds_are_heard_but_not_stored(catalog: Writer):
    book, heard = book_of(catalog)
    book.emit(AlertKind.REFRESH_COMPLETED, "sales", "done")
    assert kinds(heard) == [AlertKind.REFRESH_COMPLETED]
    assert catalog.alerts() == ()
    book, heard = book_of(catalog, alert_quiet_kinds="stale, refresh_failed")
    for kind in (AlertKind.REFRESH_COMPLETED, AlertKind.REFRESH_FAILED, AlertKind.STALE):
        book.emit(kind, "sales", "said")
        book.emit(kind, "sales", "said")
    # What lasts is stored all the same: else it would be told again and again.
    assert kinds(catalog.alerts()) == [
        AlertKind.STALE, AlertKind.REFRESH_COMPLETED, AlertKind.REFRESH_COMPLETED
    ]  # fmt: skip
    assert len(heard) == 5


def test_a_wrong_kind_in_the_settings_is_told(catalog: Writer):
    with pytest.raises(RunnelError, match="'late' is not a kind of alert"):
        book_of(catalog, alert_quiet_kinds="late")


def test_a_callback_that_fails_stops_nobody(catalog: Writer, caplog: pytest.LogCaptureFixture):
    book = AlertBook(catalog, Settings())
    heard: list[Alert] = []

    @book.subscribe
    def fail(alert: Alert) -> None:
        raise ValueError("my fault")

    book.subscribe(heard.append)
    book.emit(AlertKind.REFRESH_FAILED, "sales", "no")
    assert len(heard) == 1
    assert "my fault" in caplog.text
    assert len(catalog.alerts()) == 1


def test_a_catalog_that_takes_nothing_stops_nobody(
    catalog: Writer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def full(*_: object) -> None:
        raise SystemFault("the catalog cannot grow")

    monkeypatch.setattr(Writer, "record_alert", full)
    book, heard = book_of(catalog)
    book.emit(AlertKind.REFRESH_FAILED, "sales", "no")
    assert kinds(heard) == [AlertKind.REFRESH_FAILED]
    assert "cannot grow" in caplog.text


def test_alerts_are_forgotten_after_the_set_days(catalog: Writer):
    old = Alert(AlertKind.REFRESH_FAILED, "old", "no", {}, NOW - timedelta(days=3))
    kept = Alert(AlertKind.REFRESH_FAILED, "kept", "no", {}, NOW - timedelta(days=1))
    for alert in (old, kept):
        catalog.record_alert(alert)
    book, _ = book_of(catalog, alert_retention_days=2.0)
    book.emit(AlertKind.REFRESH_FAILED, "new", "no")
    assert [a.table for a in catalog.alerts()] == ["new", "kept"]


def frontier(minutes_ago: float) -> Frontier:
    return Frontier({}, NOW - timedelta(minutes=minutes_ago))


def test_a_pass_tells_who_has_caught_up(catalog: Writer):
    book, heard = book_of(catalog)
    nightly = Schedule.parse("cron 0 3 * * *")
    catalog.add_table(build_table("late", frontier=frontier(5)))
    catalog.add_table(build_table("now", frontier=frontier(0)))
    catalog.add_table(build_table("later", frontier=frontier(9)))
    catalog.add_table(build_table("free", frontier=frontier(9), schedule=None))
    catalog.add_table(build_table("nightly", frontier=frontier(10 * 60), schedule=nightly))
    catalog.add_table(build_table("early", frontier=frontier(8 * 60), schedule=nightly))
    for name in ("late", "now", "free", "nightly", "early"):
        book.emit(AlertKind.STALE, name, "is behind")
    heard.clear()
    note_caught_up(catalog, book, NOW)
    assert {(a.kind, a.table) for a in heard} == {
        (AlertKind.FRESH, "now"), (AlertKind.FRESH, "free"), (AlertKind.FRESH, "early")
    }  # fmt: skip


@pytest.fixture
def workspace(catalog: Writer, tmp_path: Path) -> Workspace:
    leases = Leases(catalog.engine, Owner.current())
    book = AlertBook(catalog, Settings(alert_quiet_kinds=""))
    return Workspace(tmp_path, catalog, leases, Settings(), lambda: pytest.fail("no Spark"), alerts=book)  # fmt: skip


def test_a_failed_refresh_is_told(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    table = build_table(consecutive_errors=1)
    workspace.catalog.add_table(table)

    def fail(*_: object) -> None:
        raise QueryFailed("division by zero", hint="filter zeros")

    monkeypatch.setattr(attempt, "plan_refresh", fail)
    with pytest.raises(QueryFailed):
        attempt.refresh_table(workspace, table.id, frontier(0))
    (told,) = workspace.catalog.alerts()
    assert (told.kind, told.table, told.message) == (
        AlertKind.REFRESH_FAILED, "sales", "division by zero"
    )  # fmt: skip
    assert told.facts == {
        "code": "QUERY_FAILED", "detail": None, "hint": "filter zeros", "consecutive_errors": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (RefreshAction.DIFFERENTIAL, [AlertKind.REFRESH_COMPLETED]),
        (RefreshAction.NO_DATA, []),
        (RefreshAction.REINITIALIZE, [AlertKind.REFRESH_COMPLETED, AlertKind.REINITIALIZED]),
    ],
)
def test_a_refresh_that_did_something_is_told(
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    action: RefreshAction,
    expected: list[AlertKind],
):
    table = build_table()
    workspace.catalog.add_table(table)
    workspace.alerts.emit(AlertKind.REINITIALIZE_NEEDED, table.name, "orders was replaced")
    result = RefreshResult("sales", action, "why", 3, 1, seconds=0.5, frontier=frontier(0), epoch=1)
    monkeypatch.setattr(attempt, "carry_out", lambda *_, **__: (None, None))
    monkeypatch.setattr(attempt, "result_of", lambda *_: result)
    monkeypatch.setattr(attempt, "record", lambda *_: None)
    assert attempt.refresh_table(workspace, table.id, frontier(0)) == result
    assert kinds(workspace.catalog.alerts())[:-1] == expected
    if AlertKind.REFRESH_COMPLETED in expected:
        told = workspace.catalog.alerts()[0]
        assert told.message == f"{action}: why"
        assert told.facts["rows_inserted"] == 3
