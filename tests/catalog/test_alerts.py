"""Alerts in the catalog: stored once, begun once, ended once, forgotten in time."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import sqlalchemy as sa

from runnel.catalog import StreamTable, Writer, migrate, open_catalog
from runnel.catalog.engine import writing
from runnel.catalog.schema import alerts
from runnel.model.alerts import Alert, AlertKind

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
STALE = Alert(AlertKind.STALE, "sales", "is behind", {"lag": 3.5}, NOW)
FRESH = Alert(AlertKind.FRESH, "sales", "caught up", {}, NOW + timedelta(minutes=1))


def told(catalog: Writer, *args: object, **kinds: object) -> list[tuple[AlertKind, str | None]]:
    return [(a.kind, a.table) for a in catalog.alerts(*args, **kinds)]  # type: ignore[arg-type]


def test_an_alert_comes_back_as_it_was_given(catalog: Writer):
    failed = Alert(AlertKind.REFRESH_FAILED, "Mart.Big", "no ünïcode", {"n": [1, None]}, NOW)
    stored = catalog.record_alert(failed)
    assert stored is not None
    assert catalog.alerts() == (stored,)
    assert (stored.facts, stored.at, stored.table) == ({"n": [1, None]}, NOW, "Mart.Big")
    assert catalog.alerts("mart.big") == (stored,)
    assert catalog.alerts("default.sales") == ()


def test_events_are_told_each_time(catalog: Writer):
    failed = Alert(AlertKind.REFRESH_FAILED, "sales", "no", {}, NOW)
    assert all(catalog.record_alert(failed) for _ in range(3))
    assert len(catalog.alerts(limit=2)) == 2


def test_a_condition_begins_once_and_ends_once(catalog: Writer):
    begun = [catalog.record_alert(STALE) for _ in range(3)]
    ended = [catalog.record_alert(FRESH) for _ in range(3)]
    assert [a is not None for a in begun + ended] == [True, False, False] * 2
    assert told(catalog) == [(AlertKind.FRESH, "sales"), (AlertKind.STALE, "sales")]
    assert catalog.alerts(kind=AlertKind.STALE)[0].ended_at == FRESH.at
    assert catalog.record_alert(STALE) is not None


def test_tables_and_kinds_have_conditions_of_their_own(catalog: Writer):
    other = Alert(AlertKind.STALE, "other", "is behind", {}, NOW)
    risk = Alert(AlertKind.RETENTION_RISK, "sales", "soon gone", {}, NOW)
    assert all(catalog.record_alert(a) for a in (STALE, other, risk))
    assert catalog.record_alert(FRESH) is not None
    assert told(catalog, lasting=True) == [
        (AlertKind.RETENTION_RISK, "sales"), (AlertKind.STALE, "other")
    ]  # fmt: skip
    assert told(catalog, "default.sales", AlertKind.STALE, lasting=True) == []


def test_resuming_ends_either_suspension(catalog: Writer):
    for kind in (AlertKind.SUSPENDED, AlertKind.AUTO_SUSPENDED):
        assert catalog.record_alert(Alert(kind, "sales", "stopped", {}, NOW)) is not None
    assert catalog.record_alert(Alert(AlertKind.RESUMED, "sales", "goes on", {}, NOW)) is not None
    assert catalog.alerts(lasting=True) == ()


def test_processes_that_find_the_same_tell_it_once(url: str):
    def find(_: int) -> bool:
        with open_catalog(url) as catalog:
            return catalog.record_alert(STALE) is not None

    open_catalog(url).close()
    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(find, range(8))) == [False] * 7 + [True]


def test_nothing_lasts_of_a_dropped_table(catalog: Writer, make_table: Callable[..., StreamTable]):
    table = make_table()
    catalog.add_table(table)
    catalog.record_alert(STALE)
    catalog.record_alert(Alert(AlertKind.STALE, "other", "is behind", {}, NOW))
    catalog.remove_tables([table.id])
    assert told(catalog, lasting=True) == [(AlertKind.STALE, "other")]
    (old,) = catalog.alerts("default.sales")
    assert old.ended_at is not None


def test_old_alerts_go_but_none_that_lasts(catalog: Writer):
    failed = Alert(AlertKind.REFRESH_FAILED, "sales", "no", {}, NOW)
    newer = Alert(AlertKind.REFRESH_FAILED, "sales", "no", {}, NOW + timedelta(days=2))
    for alert in (failed, STALE, newer):
        catalog.record_alert(alert)
    assert catalog.prune_alerts(NOW + timedelta(days=1)) == 1
    assert [a.at for a in catalog.alerts()] == [newer.at, NOW]
    assert told(catalog, lasting=True) == [(AlertKind.STALE, "sales")]


def test_a_catalog_of_before_alerts_is_brought_up(url: str, make_table: Callable[..., StreamTable]):
    table = make_table()
    with open_catalog(url) as catalog:
        catalog.add_table(table)
        with writing(catalog.engine) as connection:
            alerts.drop(connection)
            migrate._add_alerts(connection)
        assert catalog.tables() == (table,)
        assert catalog.record_alert(STALE) is not None
        assert catalog.record_alert(STALE) is None
        names = {index["name"] for index in _indexes(catalog)}
        assert {"alerts_by_table", "alerts_by_time"} <= names


def _indexes(catalog: Writer) -> list[dict[str, object]]:
    with catalog.engine.connect() as connection:
        schema = migrate._schema(connection)
        return list(sa.inspect(connection).get_indexes("alerts", schema=schema))  # type: ignore[arg-type]


@pytest.mark.postgres
def test_who_listens_hears_what_was_stored(postgres_url: str, postgres_server: str):
    schema = postgres_url.rpartition("=")[2]
    with open_catalog(postgres_url) as catalog, psycopg.connect(postgres_server) as listener:
        listener.autocommit = True
        listener.execute(f"LISTEN {schema}_alerts")
        long = Alert(AlertKind.REFRESH_FAILED, "Mart.Bïg", '"\u0001ü' * 9000, {}, NOW)
        stored = [catalog.record_alert(alert) for alert in (STALE, STALE, long)]
        assert [alert is not None for alert in stored] == [True, False, True]
        heard = [json.loads(n.payload) for n in listener.notifies(timeout=10, stop_after=2)]
        assert heard[0] == {
            "id": stored[0].id, "kind": "stale", "table": "sales", "message": "is behind",
            "at": NOW.isoformat(),
        }  # fmt: skip
        assert heard[1]["table"] == "Mart.Bïg"
        assert long.message.startswith(heard[1]["message"])
        assert list(listener.notifies(timeout=0.2)) == []
