"""Spark as the judge of types: what an expression or a query yields, without running it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from runnel.errors import InvalidQuery, QueryFailed
from runnel.lake.translate import translate
from runnel.model.columns import Column
from runnel.model.names import quote

_SYSTEM: set[str] = set()
_Key = tuple[tuple[Column, ...], tuple[str, ...]]


class SparkTyper:
    """Types of SQL expressions over typed columns, remembered."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: dict[_Key, tuple[str, ...]] = {}

    def types(self, columns: Sequence[Column], expressions: Sequence[str]) -> tuple[str, ...]:
        """Spark's simple type strings; InvalidQuery when Spark refuses an expression."""
        key = (tuple(columns), tuple(expressions))
        if key not in self._known:
            self._known[key] = self._ask(columns, expressions)
        return self._known[key]

    def _ask(self, columns: Sequence[Column], expressions: Sequence[str]) -> tuple[str, ...]:
        if not expressions:
            return ()
        shown = ", ".join(f"{text} AS e{n}" for n, text in enumerate(expressions))
        nulls = ", ".join(f"CAST(NULL AS {c.type}) AS {quote(c.name)}" for c in columns)
        source = f" FROM (SELECT {nulls})" if columns else ""
        return tuple(c.type for c in output_schema(self._spark, f"SELECT {shown}{source}"))


def output_schema(spark: SparkSession, sql: str) -> tuple[Column, ...]:
    """The columns a query yields; InvalidQuery when Spark refuses it."""
    try:
        schema: StructType = spark.sql(sql).schema
    except Exception as error:
        told = translate(error)
        if isinstance(told, QueryFailed):
            # Found by looking at the query alone: types of a recursion that do not fit, say.
            raise InvalidQuery(told.primary, detail=told.detail, hint=told.hint) from error
        raise told from error
    return tuple(Column(field.name, field.dataType.simpleString()) for field in schema)


def resolves_alone(spark: SparkSession, expression: str) -> bool:
    """Whether an expression means something without any table, in this session."""
    try:
        _ = spark.sql(f"SELECT {expression}").schema
    except PySparkException:
        return False
    return True


def system_functions(spark: SparkSession) -> frozenset[str]:
    """The names of Spark's own functions."""
    if not _SYSTEM:
        rows = spark.sql("SHOW SYSTEM FUNCTIONS").collect()
        _SYSTEM.update(row["function"].lower() for row in rows)
    return frozenset(_SYSTEM)
