"""Names of tables: keeping a session's catalog in step with the folder, and look-ups."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

from runnel.errors import SourceError, UserError
from runnel.lake.translate import translate
from runnel.model.names import TableName, quote

_DETAILS = "# Detailed Table Information"
_SCHEMA = ".db"
_IN_SPARK = re.compile(r"[A-Za-z0-9_]+")


class TableKind(StrEnum):
    """What a name stands for in Spark's catalog."""

    MISSING = "missing"
    DELTA = "delta"
    VIEW = "view"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class TableInfo:
    """What Spark's catalog says about a name."""

    kind: TableKind
    location: str | None = None
    provider: str | None = None
    view_text: str | None = None


def sync_tables(
    spark: SparkSession, warehouse: Path, known: dict[str, TableName], *, is_borrowed: bool = False
) -> None:
    """Register Delta tables that appeared under the warehouse, drop those that are gone.

    `known` is what earlier calls registered, by table key; it is updated. Costs a directory
    listing when nothing changed. In a borrowed session a name that stands for something else
    keeps standing for it.
    """
    present = {name.key: name for name in _delta_folders(warehouse)}
    for key in known.keys() - present.keys():
        # Looked at once more: dropping a managed table deletes what someone has just put there.
        if find_folder(warehouse, known[key]) is None:
            name = known.pop(key)
            if is_borrowed:
                retract_location(spark, name, str(_place(warehouse, name)))
            else:
                spark.sql(f"DROP TABLE IF EXISTS {name.sql}")
    for key in present.keys() - known.keys():
        # Delta refuses a managed table over files that are already there, so it gets a location.
        if (folder := find_folder(warehouse, present[key])) is not None:
            register_location(spark, present[key], str(folder))
            known[key] = present[key]


def sync_schemas(spark: SparkSession, warehouse: Path, known: set[str]) -> None:
    """Know the schemas that have a folder, also those without a table."""
    found = {e.name.removesuffix(_SCHEMA) for e in _folders(warehouse) if e.name.endswith(_SCHEMA)}
    for name in filter(_IN_SPARK.fullmatch, found - known):
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {quote(name)}")
    known |= found


def check_schema(spark: SparkSession) -> None:
    """Refuse a session in which a name without a schema means another table than it does here."""
    catalog, schema = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
    if (catalog, schema.lower()) != ("spark_catalog", "default"):
        raise UserError(
            f"the current schema of the Spark session is {catalog}.{schema}, which is not followed",
            detail="a name without a schema means the schema default",
            hint='lake.spark.sql("USE spark_catalog.default"), and write schema.table',
        )


def find_folder(warehouse: Path, name: TableName) -> Path | None:
    """The folder of a Delta table in the warehouse, without asking Spark."""
    folder = _place(warehouse, name)
    return folder if _is_delta(str(folder)) else None


def is_gone(location: str) -> bool:
    """Whether there is no Delta table at a place of this machine; of others it is not known."""
    return "://" not in location and not _is_delta(_plain(location))


def is_same_place(one: str | None, other: str | Path) -> bool:
    """Whether two locations are one, with or without the scheme that Spark puts before a path."""
    return one is not None and _plain(one) == _plain(str(other))


def remove_folder(warehouse: Path, name: TableName) -> None:
    """Delete what a DROP TABLE left in the warehouse.

    Tables that another process created are registered by location, and Spark keeps the data of
    such a table when it drops it; the next sync would bring it back.
    """
    folder = find_folder(warehouse, name)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def move_folder(spark: SparkSession, warehouse: Path, old: TableName, new: TableName) -> None:
    """Let the folder of a table go with the new name that a session gave to it.

    Spark does so for its own tables; of one that is registered by location, as those of other
    processes are, only this session's name changes, and every other one would still see the old.
    """
    try:
        os.rename(_place(warehouse, old), _place(warehouse, new))
    except OSError as error:
        spark.sql(f"ALTER TABLE {new.sql} RENAME TO {old.sql}")
        raise SourceError(
            f"the folder of {old} cannot be renamed", detail=str(error), hint="nothing was changed"
        ) from error
    spark.sql(f"DROP TABLE IF EXISTS {new.sql}")
    register_location(spark, new, str(_place(warehouse, new)))


def describe(spark: SparkSession, name: TableName) -> TableInfo:
    """What a name stands for."""
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name.sql}").collect()
    except AnalysisException as error:
        if "NOT_FOUND" in (error.getCondition() or ""):
            return TableInfo(TableKind.MISSING)
        raise translate(error) from error
    return _info(_details(rows))


def locate(spark: SparkSession, name: TableName) -> str | None:
    """Where a Delta table is stored; None when nothing has the name."""
    info = describe(spark, name)
    match info.kind:
        case TableKind.MISSING:
            return None
        case TableKind.DELTA:
            return info.location
        case TableKind.VIEW:
            raise SourceError(f"{name} is a view, not a Delta table")
        case TableKind.OTHER:
            raise SourceError(
                f"{name} is not a Delta table",
                detail=f"its provider is {info.provider or 'unknown'}",
                hint=f"copy it into one: CREATE TABLE ... USING delta AS SELECT * FROM {name}",
            )


def publish_view(spark: SparkSession, name: TableName, sql: str) -> None:
    """Create or replace a permanent view."""
    if name.schema.lower() != "default":
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {quote(name.schema)}")
    text = f"CREATE OR REPLACE VIEW {name.sql} AS {sql}"
    try:
        spark.sql(text)
    except AnalysisException as error:
        if error.getCondition() != "TABLE_OR_VIEW_ALREADY_EXISTS":
            raise
        # Spark looks first and creates then: another session that shares the names was between.
        spark.sql(text)


def register_location(spark: SparkSession, name: TableName, location: str) -> None:
    """Know a Delta table that lies elsewhere by a name."""
    if name.schema.lower() != "default":
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {quote(name.schema)}")
    escaped = location.replace("\\", "\\\\").replace("'", "\\'")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name.sql} USING delta LOCATION '{escaped}'")


def retract_location(spark: SparkSession, name: TableName, location: str) -> None:
    """Forget a name that still stands for the Delta table of a place elsewhere; its files stay."""
    try:
        info = describe(spark, name)
        is_there = info.kind is TableKind.DELTA and is_same_place(info.location, location)
    except SourceError:
        # The name of files that are gone; other ones cannot be lost with it.
        is_there = True
    if is_there:
        spark.sql(f"DROP TABLE IF EXISTS {name.sql}")


def retract_view(spark: SparkSession, name: TableName) -> None:
    """Drop a view, when it is there."""
    try:
        spark.sql(f"DROP VIEW IF EXISTS {name.sql}")
    except AnalysisException as error:
        if "SCHEMA_NOT_FOUND" not in (error.getCondition() or ""):
            raise translate(error) from error


def _place(warehouse: Path, name: TableName) -> Path:
    schema, table = name.schema.lower(), name.name.lower()
    return warehouse / table if schema == "default" else warehouse / f"{schema}.db" / table


def _plain(location: str) -> str:
    if location.startswith(("/", "file:")):
        return "/" + location.removeprefix("file:").lstrip("/")
    return location


def _delta_folders(warehouse: Path) -> Iterator[TableName]:
    for entry in _folders(warehouse):
        if not entry.name.endswith(_SCHEMA):
            tables, schema = [entry], "default"
        else:
            tables, schema = _folders(Path(entry.path)), entry.name.removesuffix(_SCHEMA)
        for table in tables:
            # Others may call a folder what Spark would not call a table.
            if all(map(_IN_SPARK.fullmatch, (schema, table.name))) and _is_delta(table.path):
                yield TableName(schema, table.name)


def _folders(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.is_dir()]
    except FileNotFoundError:
        return []


def _is_delta(folder: str) -> bool:
    # The first commit makes the table; an empty log folder is a create that is still under way.
    log = os.path.join(folder, "_delta_log")
    if os.path.exists(os.path.join(log, f"{0:020d}.json")):
        return True
    try:
        return any(name.endswith((".json", ".checkpoint.parquet")) for name in os.listdir(log))
    except OSError:
        return False


def _details(rows: list[Row]) -> dict[str, str]:
    # A column may be called "Location" too: only what follows the heading counts.
    keys = [row[0] for row in rows]
    if _DETAILS not in keys:
        return {}
    start = len(keys) - keys[::-1].index(_DETAILS)
    return {row[0]: row[1] for row in rows[start:]}


def _info(details: dict[str, str]) -> TableInfo:
    if "View Text" in details or details.get("Type") == "VIEW" or not details:
        return TableInfo(TableKind.VIEW, view_text=details.get("View Text"))
    provider = details.get("Provider", "").lower()
    kind = TableKind.DELTA if provider == "delta" else TableKind.OTHER
    return TableInfo(kind, details.get("Location"), provider)
