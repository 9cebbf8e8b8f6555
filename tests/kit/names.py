"""Spark's catalog of names, emptied by hand: statements for it take as long as a small test."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def forget_names(spark: SparkSession) -> None:
    """Drop the tables and views of the default schema, the files of managed tables with them."""
    if not hasattr(spark, "_jsparkSession"):
        _by_statements(spark)
        return
    jvm, catalog = spark._jvm, spark._jsparkSession.sessionState().catalog()
    assert jvm is not None
    names = catalog.externalCatalog().listTables("default")
    for name in [names.apply(place) for place in range(names.size())]:
        schema = jvm.scala.Option.apply("default")
        known = jvm.org.apache.spark.sql.catalyst.TableIdentifier(name, schema)
        catalog.dropTable(known, True, False)


def _by_statements(spark: SparkSession) -> None:
    for kind, column in (("VIEW", "viewName"), ("TABLE", "tableName")):
        for row in spark.sql(f"SHOW {kind}S IN default").collect():
            if not row["isTemporary"]:
                spark.sql(f"DROP {kind} IF EXISTS default.`{row[column]}`")
