"""A catalog that is damaged, full or not writable: a clear fault, and nothing half done."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import event

from runnel.catalog import Owner, QuickReader, StreamTable, Writer, open_catalog, open_reader
from runnel.errors import SystemFault
from runnel.model.alerts import Alert, AlertKind
from runnel.model.frontier import Frontier
from runnel.model.refresh import Outcome

Make = Callable[..., StreamTable]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def writer(file: Path) -> Iterator[Writer]:
    with open_catalog(f"sqlite:///{file}") as writer:
        yield writer


def limit(writer: Writer, pragma: str) -> None:
    """Have every connection from now on begin with a pragma."""
    writer.engine.dispose()

    @event.listens_for(writer.engine, "connect")
    def _(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(pragma)


def test_a_full_disk_is_told_and_passes(writer: Writer, make_table: Make, frontier: Frontier):
    table = make_table()
    writer.add_table(table)
    attempt = writer.start_attempt(table.id, Owner.current())
    before = (writer.tables(), writer.history())
    with writer.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    limit(writer, f"PRAGMA max_page_count = {pages}")
    with pytest.raises(SystemFault, match="cannot grow") as caught:
        writer.finish_attempt(attempt, Outcome.FAILED, error="x" * 50_000)
    assert caught.value.retryable
    assert "free some disk space" in str(caught.value)
    with pytest.raises(SystemFault, match="cannot grow"):
        writer.add_table(make_table("other", query="SELECT " + "x" * 50_000))
    with pytest.raises(SystemFault, match="cannot grow"):
        writer.record_alert(Alert(AlertKind.STALE, "sales", "x" * 50_000))
    assert (writer.tables(), writer.history()) == before
    limit(writer, "PRAGMA max_page_count = 1000000")
    writer.finish_attempt(attempt, Outcome.OK, frontier=frontier, reason="x" * 50_000)
    assert writer.history()[0].outcome is Outcome.OK


def test_a_catalog_that_cannot_be_written(writer: Writer, make_table: Make):
    table = make_table()
    writer.add_table(table)
    limit(writer, "PRAGMA query_only = ON")
    for change in (
        lambda: writer.update_table(table.id, comment="new"),
        lambda: writer.start_attempt(table.id, Owner.current()),
        lambda: writer.remove_tables([table.id]),
        lambda: writer.record_alert(Alert(AlertKind.STALE, "sales", "is behind")),
    ):
        with pytest.raises(SystemFault, match="cannot be written") as caught:
            change()
        assert not caught.value.retryable
        assert "permissions" in str(caught.value)
    assert writer.tables() == (table,)


def test_an_overwritten_page_is_told_by_every_reader(writer: Writer, file: Path, make_table: Make):
    for number in range(200):
        writer.add_table(make_table(f"t{number}", comment="x" * 500))
    writer.close()
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'stream_tables'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    contents = bytearray(file.read_bytes())
    contents[(root - 1) * size : root * size] = b"\xff" * size
    file.write_bytes(contents)
    quick = QuickReader.open(file)
    assert quick is not None
    with quick, open_reader(f"sqlite:///{file}") as reader:
        for questions in (quick, reader):
            with pytest.raises(SystemFault, match="is damaged") as caught:
                questions.tables()
            assert not caught.value.retryable
            assert "runnel doctor --rebuild" in str(caught.value)


def test_a_file_cut_short_is_told(writer: Writer, file: Path, make_table: Make):
    for number in range(50):
        writer.add_table(make_table(f"t{number}", comment="x" * 500))
    writer.close()
    contents = file.read_bytes()
    file.write_bytes(contents[: len(contents) // 3])
    with pytest.raises(SystemFault, match="is damaged"), open_catalog(f"sqlite:///{file}") as found:
        found.tables()


def test_an_emptied_file_is_a_new_catalog_for_writers_only(writer: Writer, file: Path):
    writer.close()
    file.write_bytes(b"")
    with pytest.raises(Exception, match="there is no catalog"):
        open_reader(f"sqlite:///{file}")
