"""The quick reader gives what the reader gives, or leaves the question to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from runnel.catalog import (
    Owner,
    QuickReader,
    StreamTable,
    Verification,
    Writer,
    migrate,
    open_catalog,
    quick,
)
from runnel.errors import SystemFault
from runnel.model.alerts import Alert, AlertKind
from runnel.model.frontier import Frontier
from runnel.model.refresh import Outcome, RefreshAction, TableState
from runnel.model.views import Resolution

Make = Callable[..., StreamTable]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def writer(file: Path, make_table: Make, frontier: Frontier) -> Writer:
    writer = open_catalog(f"sqlite:///{file}")
    sales = make_table(
        frontier=frontier,
        epoch=3,
        options={"a": "b"},
        comment="it's ünïcode",
        resolution=Resolution("SELECT 'ü'"),
    )
    writer.add_table(sales)
    writer.add_table(
        make_table("Mart.Big", reads=("sales",), schedule=None, state=TableState.SUSPENDED)
    )
    for outcome in (Outcome.OK, Outcome.FAILED):
        attempt = writer.start_attempt(sales.id, Owner("h", 1, 2.0, "i"), predicted={"full": 2.5})
        writer.finish_attempt(
            attempt, outcome, action=RefreshAction.FULL, reason="first fill", rows_inserted=3,
            seconds=0.5, phases={"plan": 0.1}, frontier=frontier, epoch=4,
        )  # fmt: skip
    writer.start_attempt(sales.id, Owner("h", 1, 2.0, "i"))
    for ok in (True, False):
        result = Verification(
            sales.id, frontier.data_timestamp, ok, 1, 2, [{"id": 1}], frontier, 0.5
        )
        writer.record_verification(result)
    for kind in (AlertKind.STALE, AlertKind.FRESH, AlertKind.STALE):
        writer.record_alert(Alert(kind, "sales", "it's", {"a": 1.5}))
    writer.record_alert(Alert(AlertKind.REFRESH_FAILED, "Mart.Big", "no"))
    return writer


def test_the_version_is_the_current_one() -> None:
    assert len(migrate.MIGRATIONS) + 1 == quick.VERSION


def test_both_readers_agree(writer: Writer, file: Path) -> None:
    reader = QuickReader.open(file)
    assert reader is not None
    with reader:
        assert reader.tables() == writer.tables()
        assert len(reader.tables()) == 2
        for key in ("default.sales", "mart.big", "default.nothing"):
            assert reader.find(key) == writer.find(key)
            assert reader.history(key) == writer.history(key)
            found = writer.find(key)
            table_id = found.id if found else "none"
            assert reader.last_verification(table_id) == writer.last_verification(table_id)
        assert reader.last_verification(writer.tables()[0].id) is not None
        assert reader.history() == writer.history()
        assert reader.history(limit=2) == writer.history(limit=2)


def test_both_readers_agree_on_alerts(writer: Writer, file: Path) -> None:
    reader = QuickReader.open(file)
    assert reader is not None
    with reader:
        assert len(reader.alerts()) == 4
        assert reader.alerts() == writer.alerts()
        for key in (None, "default.sales", "mart.big"):
            for kind in (None, AlertKind.STALE):
                for lasting in (False, True):
                    found = reader.alerts(key, kind, 2, lasting=lasting)
                    assert found == writer.alerts(key, kind, 2, lasting=lasting)
        assert len(reader.alerts(lasting=True)) == 1


def test_it_sees_one_state_and_stops_nobody(writer: Writer, file: Path) -> None:
    reader = QuickReader.open(file)
    assert reader is not None
    with reader:
        before = reader.tables()
        writer.remove_tables([t.id for t in writer.tables()])
        assert reader.tables() == before


@pytest.mark.parametrize("version", [0, quick.VERSION + 1])
def test_another_version_is_left_to_the_reader(writer: Writer, file: Path, version: int) -> None:
    writer.close()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (version,))
    assert QuickReader.open(file) is None


def test_what_is_not_a_catalog_is_left_to_the_reader(tmp_path: Path) -> None:
    assert QuickReader.open(tmp_path / "missing.db") is None
    other = tmp_path / "other.db"
    other.write_text("not a database, but long enough to be looked at " * 10)
    assert QuickReader.open(other) is None


def test_damage_is_told(writer: Writer, file: Path) -> None:
    writer.close()
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE dependencies")
    reader = QuickReader.open(file)
    assert reader is not None
    with reader, pytest.raises(SystemFault, match="is damaged") as caught:
        reader.tables()
    assert "backup" in str(caught.value)
