"""Opening a catalog: creating, migrating, refusing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from runnel.catalog import StreamTable, migrate, open_catalog, open_reader
from runnel.catalog.engine import writing
from runnel.catalog.schema import METADATA, meta
from runnel.errors import NotFound, SystemFault, UserError
from runnel.model.names import TableName
from runnel.model.views import Resolution, View


def test_opening_at_once_succeeds_for_all(url: str):
    def open_it(_: int) -> int:
        with open_catalog(url) as catalog:
            return catalog.revision()

    with ThreadPoolExecutor(12) as pool:
        assert set(pool.map(open_it, range(12))) == {1}


def test_processes_create_it_at_once(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/new/catalog.db"
    program = f"from runnel.catalog import open_catalog; print(open_catalog({url!r}).revision())"
    processes = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [process.communicate()[0] for process in processes] == ["1\n"] * 4


def test_definitions_are_there_for_the_next(url: str, make_table: Callable[..., StreamTable]):
    table = make_table()
    with open_catalog(url) as catalog:
        catalog.add_table(table)
    with open_reader(url) as reader:
        assert reader.tables() == (table,)


def test_reading_does_not_create(url: str, tmp_path: Path):
    with pytest.raises(NotFound, match="there is no catalog"):
        open_reader(url)
    assert not list(tmp_path.iterdir())


def test_newer_catalog_is_refused(url: str):
    with open_catalog(url) as catalog, writing(catalog.engine) as connection:
        connection.execute(meta.update().where(meta.c.key == migrate.VERSION_KEY).values(value=99))
    with pytest.raises(SystemFault, match="schema version 99, newer") as caught:
        open_catalog(url)
    assert not caught.value.retryable
    assert "upgrade" in str(caught.value)


def test_older_catalog_is_migrated_once(url: str, monkeypatch: pytest.MonkeyPatch):
    open_catalog(url).close()
    calls = []
    steps = tuple(lambda _, n=n: calls.append(n) for n in range(migrate._current(), 10))
    monkeypatch.setattr(migrate, "MIGRATIONS", (*migrate.MIGRATIONS, *steps))
    open_catalog(url).close()
    open_catalog(url).close()
    assert calls == list(range(len(migrate.MIGRATIONS) - len(steps) + 1, 10))


def test_a_catalog_of_before_views_is_read(url: str, make_table: Callable[..., StreamTable]):
    table = make_table()
    with open_catalog(url) as catalog:
        catalog.add_table(table)
        with writing(catalog.engine) as connection:
            schema = migrate._schema(connection)
            place = f'"{schema}".stream_tables' if schema else "stream_tables"
            for column in ("resolution", "retry_at", "work_seconds", "wait_seconds"):
                connection.exec_driver_sql(f"ALTER TABLE {place} DROP COLUMN {column}")
            connection.execute(
                meta.update().where(meta.c.key == migrate.VERSION_KEY).values(value=1)
            )
    view = View(TableName.parse("v"), True, "SELECT 1", "default", (), (), "s")
    with open_catalog(url) as catalog:
        assert catalog.tables() == (table,)
        renewed = replace(table, resolution=Resolution("SELECT 2 FROM t", (view,), True))
        catalog.redefine_table(renewed)
        assert catalog.tables() == (renewed,)
        assert renewed.text == "SELECT 2 FROM t"


def test_failed_migration_leaves_the_old_version(url: str, monkeypatch: pytest.MonkeyPatch):
    open_catalog(url).close()

    def fail(connection: sa.Connection) -> None:
        connection.execute(meta.delete())
        raise RuntimeError("stop")

    before = migrate.MIGRATIONS
    monkeypatch.setattr(migrate, "MIGRATIONS", (*before, fail))
    with pytest.raises(RuntimeError):
        open_catalog(url)
    monkeypatch.setattr(migrate, "MIGRATIONS", before)
    with open_catalog(url) as catalog:
        assert catalog.revision() == 1


def test_sqlite_settings(tmp_path: Path):
    with open_catalog(f"sqlite:///{tmp_path}/c.db") as catalog, catalog.engine.connect() as c:
        assert c.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert c.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        assert c.exec_driver_sql("PRAGMA busy_timeout").scalar() == 10_000


def test_a_reader_is_not_disturbed_by_a_writer(tmp_path: Path):
    with open_catalog(f"sqlite:///{tmp_path}/c.db") as catalog, writing(catalog.engine) as c:
        c.execute(meta.update().values(value=50))
        assert catalog.revision() == 1


@pytest.mark.parametrize(
    "damage", [b"this is no database" * 1000, b"SQLite format 3\0" + b"x" * 9000]
)
def test_damaged_file_is_a_clear_fault(tmp_path: Path, damage: bytes):
    (tmp_path / "c.db").write_bytes(damage)
    with pytest.raises(SystemFault, match="is damaged") as caught:
        open_catalog(f"sqlite:///{tmp_path}/c.db")
    assert "backup" in str(caught.value)
    assert not caught.value.retryable


def test_missing_table_is_a_clear_fault(tmp_path: Path):
    with open_catalog(f"sqlite:///{tmp_path}/c.db") as catalog:
        with writing(catalog.engine) as connection:
            METADATA.tables["dependencies"].drop(connection)
            METADATA.tables["leases"].drop(connection)
        with pytest.raises(SystemFault, match="is damaged"):
            catalog.dependents("x")


def test_a_folder_in_the_place_of_the_file(tmp_path: Path):
    (tmp_path / "c.db").mkdir()
    with pytest.raises(SystemFault, match="cannot be opened"):
        open_catalog(f"sqlite:///{tmp_path}/c.db")


@pytest.mark.parametrize(
    "bad", ["", "mysql://u:secret@h/d", "sqlite://", "sqlite:///:memory:", "c.db"]
)
def test_other_addresses_are_refused(bad: str):
    with pytest.raises(UserError, match="is not a catalog address") as caught:
        open_catalog(bad)
    assert "secret" not in str(caught.value)


@pytest.mark.postgres
def test_unreachable_server_is_a_clear_fault():
    with pytest.raises(SystemFault, match="cannot be reached") as caught:
        open_catalog("postgresql://u:secret@127.0.0.1:1/d")
    assert caught.value.retryable
    assert "secret" not in str(caught.value)


def test_importing_the_catalog_does_not_import_spark():
    program = "import sys, runnel.catalog; print([m for m in ('pyspark', 'deltalake', 'rich', 'sqlglot', 'networkx') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
