"""A frame written to a Delta table by name: columns by name, and the table stays the same one."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from runnel.errors import AlreadyExists, UserError
from runnel.lake.names import TableKind, describe
from runnel.model.names import TableName, quote


class WriteMode(StrEnum):
    """What happens to the rows of a table that is there already."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    ERROR = "error"
    IGNORE = "ignore"

    @staticmethod
    def parse(text: str) -> WriteMode:
        try:
            return WriteMode(text.lower())
        except ValueError:
            raise UserError(
                f"{text!r} is not a way to write", detail=f"expected {', '.join(WriteMode)}"
            ) from None


def write_frame(
    spark: SparkSession,
    frame: DataFrame,
    name: TableName,
    mode: WriteMode,
    options: Mapping[str, str],
) -> bool:
    """Write; True when the table had to be created.

    Overwriting replaces the rows, not the table: who follows it sees what changed.
    """
    kind = describe(spark, name).kind
    if kind is TableKind.MISSING:
        _create(spark, frame, name, options)
        return True
    if kind is not TableKind.DELTA:
        raise UserError(f"{name} is not a Delta table", detail=f"it is {_article(kind)}")
    if mode is WriteMode.ERROR:
        raise AlreadyExists(f"table {name} exists already", hint='use mode="append" or "overwrite"')
    writer = frame.writeTo(name.sql).options(**options)
    if mode is WriteMode.APPEND:
        writer.append()
    elif mode is WriteMode.OVERWRITE:
        writer.overwrite(sf.lit(True))
    return False


def _create(
    spark: SparkSession, frame: DataFrame, name: TableName, options: Mapping[str, str]
) -> None:
    if name.schema.lower() != "default":
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {quote(name.schema)}")
    frame.writeTo(name.sql).using("delta").options(**options).create()


def _article(kind: TableKind) -> str:
    return "a view" if kind is TableKind.VIEW else "a table of another format"
