"""Database connections of the catalog, and database errors in Runnel's words."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from runnel.catalog.faults import fault_of
from runnel.errors import SystemFault, UserError

BUSY_SECONDS = 10.0
POSTGRES_SCHEMA = "runnel"
_DURABLE = "runnel_durable"
_WRITE = "runnel_write"


def make_engine(url: str) -> sa.Engine:
    """An engine for `sqlite:///path` or `postgresql://...`; nothing is opened yet.

    PostgreSQL tables live in the schema `runnel`, or the one named by `?schema=` in the URL.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        return _sqlite_engine(parsed)
    return _postgres_engine(parsed)


def sqlite_path(engine: sa.Engine) -> Path | None:
    """The file of a SQLite catalog."""
    if engine.dialect.name != "sqlite" or engine.url.database is None:
        return None
    return Path(engine.url.database)


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection whose statements all see the same state."""
    with translated(engine), engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


@contextmanager
def writing(engine: sa.Engine, *, durable: bool = False) -> Iterator[sa.Connection]:
    """A transaction that holds the write lock from the start, so that it never has to give up.

    A durable one survives a power failure; the others survive the death of any process.
    """
    with translated(engine), engine.connect() as connection:
        connection.execution_options(**{_WRITE: True, _DURABLE: durable})
        with connection.begin():
            yield connection


@contextmanager
def translated(engine: sa.Engine) -> Iterator[None]:
    """Turn database errors into faults that say what to do."""
    try:
        yield
    except exc.IntegrityError:
        raise
    except (exc.SQLAlchemyError, sqlite3.Error) as error:
        raise _fault(engine, error) from error


def _parse(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except exc.ArgumentError:
        raise _bad_url(url) from None
    if parsed.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername in ("sqlite", "sqlite+pysqlite") and parsed.database not in (
        None,
        "",
        ":memory:",
    ):
        return parsed
    raise _bad_url(parsed.render_as_string(hide_password=True))


def _bad_url(url: str) -> UserError:
    return UserError(
        f"{url!r} is not a catalog address",
        detail="expected sqlite:///path/to/catalog.db or postgresql://user@host/database",
    )


def _sqlite_engine(url: sa.URL) -> sa.Engine:
    engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # Without this the driver decides by itself when a transaction begins.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
    connection.execute("PRAGMA foreign_keys = ON")
    _use_wal(connection)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL, which is kept in the file; the switch itself ignores the busy timeout."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _begin_sqlite(connection: sa.Connection) -> None:
    options = connection.get_execution_options()
    if not options.get(_WRITE):
        connection.exec_driver_sql("BEGIN")
        return
    level = "FULL" if options.get(_DURABLE) else "NORMAL"
    connection.exec_driver_sql(f"PRAGMA synchronous = {level}")
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _postgres_engine(url: sa.URL) -> sa.Engine:
    schema = url.query.get("schema", POSTGRES_SCHEMA)
    try:
        engine = sa.create_engine(url.difference_update_query(["schema"]), pool_pre_ping=True)
    except ModuleNotFoundError as error:
        raise SystemFault(
            "a PostgreSQL catalog needs the psycopg driver",
            detail=str(error),
            hint="pip install 'runnel[postgres]'",
        ) from error
    return engine.execution_options(schema_translate_map={None: str(schema)})


def _fault(engine: sa.Engine, error: Exception) -> SystemFault:
    address = engine.url.render_as_string(hide_password=True)
    return fault_of(address, str(getattr(error, "orig", None) or error).strip())
