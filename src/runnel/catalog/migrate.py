"""Creation of a catalog and its way from older schema versions to the current one."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from runnel.catalog.engine import reading, sqlite_path, writing
from runnel.catalog.schema import METADATA, alerts, holds, meta, stream_tables
from runnel.errors import NotFound, SystemFault

Migration = Callable[[sa.Connection], None]


def _add_resolution(connection: sa.Connection) -> None:
    """What views and the current time come to; no query of before had any."""
    _add_column(connection, stream_tables, "resolution", "JSON")


def _add_alerts(connection: sa.Connection) -> None:
    alerts.create(connection, checkfirst=True)


def _add_groups(connection: sa.Connection) -> None:
    """Atomic groups and snapshots; before, every table was by itself."""
    _add_column(connection, stream_tables, "grouped", "BOOLEAN NOT NULL DEFAULT FALSE")
    METADATA.create_all(connection, tables=[holds], checkfirst=True)


def _add_retries(connection: sa.Connection) -> None:
    """When a table that failed may be tried again, and how long its refreshes take."""
    is_postgres = connection.dialect.name == "postgresql"
    _add_column(connection, stream_tables, "retry_at", "TIMESTAMP" if is_postgres else "DATETIME")
    _add_column(connection, stream_tables, "work_seconds", "DOUBLE PRECISION")


def _add_waits(connection: sa.Connection) -> None:
    """How long a table's refreshes wait before they begin."""
    _add_column(connection, stream_tables, "wait_seconds", "DOUBLE PRECISION")


# The migration at index i leads from version i + 1 to version i + 2. A new catalog is made at the
# current version directly, so each of these only has to know the version before it.
MIGRATIONS: tuple[Migration, ...] = (
    _add_resolution, _add_alerts, _add_groups, _add_retries, _add_waits
)  # fmt: skip

VERSION_KEY = "schema_version"
REVISION_KEY = "revision"
FUNCTION_KEY = "function:"
_POSTGRES_LOCK = 0x52756E6E656C  # "Runnel": serialises processes that create or migrate at once


def prepare(engine: sa.Engine, *, create: bool = True) -> None:
    """Bring the catalog to the current version, creating it if asked to."""
    path = sqlite_path(engine)
    if path is not None and not path.exists():
        if not create:
            raise _missing(str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
    if _version(engine) != _current():
        _bring_up_to_date(engine, create=create)


def _current() -> int:
    return 1 + len(MIGRATIONS)


def _version(engine: sa.Engine) -> int | None:
    """The version without any lock: the common case must not wait for writers."""
    with reading(engine) as connection:
        return _version_in(connection)


def _version_in(connection: sa.Connection) -> int | None:
    if not sa.inspect(connection).has_table(meta.name, schema=_schema(connection)):
        return None
    query = sa.select(meta.c.value).where(meta.c.key == VERSION_KEY)
    return connection.execute(query).scalar()


def _schema(connection: sa.Connection) -> str | None:
    names = connection.get_execution_options().get("schema_translate_map") or {}
    return names.get(None)


def _bring_up_to_date(engine: sa.Engine, *, create: bool) -> None:
    with writing(engine, durable=True) as connection:
        if engine.dialect.name == "postgresql":
            lock = sa.select(sa.func.pg_advisory_xact_lock(_POSTGRES_LOCK))
            connection.execute(lock)
        version = _version_in(connection)
        if version is None and not create:
            raise _missing(engine.url.render_as_string(hide_password=True))
        if version is None:
            _create(connection)
        else:
            _migrate(connection, version)


def _create(connection: sa.Connection) -> None:
    schema = _schema(connection)
    if schema is not None:
        connection.execute(sa.schema.CreateSchema(schema, if_not_exists=True))
    METADATA.create_all(connection)
    rows = [{"key": VERSION_KEY, "value": _current()}, {"key": REVISION_KEY, "value": 1}]
    connection.execute(meta.insert(), rows)


def _migrate(connection: sa.Connection, version: int) -> None:
    if version > _current():
        fault = SystemFault(
            f"the catalog has schema version {version}, newer than this Runnel understands",
            detail=f"expected version {_current()} or older",
            hint="upgrade Runnel: pip install --upgrade runnel",
        )
        fault.retryable = False
        raise fault
    for migration in MIGRATIONS[version - 1 :]:
        migration(connection)
    change = meta.update().where(meta.c.key == VERSION_KEY).values(value=_current())
    connection.execute(change)


def _add_column(connection: sa.Connection, table: sa.Table, name: str, type_: str) -> None:
    schema = _schema(connection)
    if name in {c["name"] for c in sa.inspect(connection).get_columns(table.name, schema=schema)}:
        return
    prepare = connection.dialect.identifier_preparer.quote
    place = ".".join(prepare(part) for part in (schema, table.name) if part)
    connection.exec_driver_sql(f"ALTER TABLE {place} ADD COLUMN {prepare(name)} {type_}")


def _missing(address: str) -> NotFound:
    return NotFound(
        f"there is no catalog at {address}",
        hint="check the path of the lake, or create a stream table in it first",
    )
