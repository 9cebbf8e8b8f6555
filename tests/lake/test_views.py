"""Views as Spark's catalog knows them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from runnel.errors import InvalidQuery
from runnel.lake.views import NOT_A_VIEW, find_view, stamp_of
from runnel.model.columns import Column
from runnel.model.names import TableName

pytestmark = pytest.mark.spark


def test_the_text_and_the_columns_of_a_view(spark: SparkSession, clean_names: None) -> None:
    name = TableName.parse("found_view")
    spark.sql("CREATE VIEW found_view (a COMMENT 'x', b) AS SELECT 1 AS one, 'x' AS `two words`")
    view = find_view(spark, name, is_temporary=False)
    assert view is not None
    assert (view.text, view.schema) == ("SELECT 1 AS one, 'x' AS `two words`", "default")
    assert view.columns == (Column("a", "int"), Column("b", "string"))
    assert view.outputs == ("one", "two words")
    assert find_view(spark, name, is_temporary=True) is None
    assert stamp_of(spark, view) == view.stamp
    spark.sql("ALTER VIEW found_view AS SELECT 2 AS one, 'x' AS `two words`")
    assert stamp_of(spark, view) not in (view.stamp, NOT_A_VIEW, None)
    spark.sql("DROP VIEW found_view")
    assert stamp_of(spark, view) is None


def test_temporary_views(spark: SparkSession, clean_names: None) -> None:
    name = TableName.parse("found_temp")
    spark.sql("CREATE VIEW found_temp AS SELECT 1 AS a")
    spark.sql("CREATE TEMPORARY VIEW found_temp AS SELECT 2L AS a")
    spark.sql("CREATE GLOBAL TEMPORARY VIEW found_global AS SELECT 3 AS a")
    spark.range(1).createOrReplaceTempView("found_frame")
    try:
        view = find_view(spark, name, is_temporary=True)
        assert view is not None
        assert (view.is_temporary, view.text) == (True, "SELECT 2L AS a")
        assert stamp_of(spark, view) == view.stamp
        catalog = find_view(spark, name, is_temporary=False)
        assert catalog is not None
        assert (catalog.is_temporary, catalog.text) == (False, "SELECT 1 AS a")
        shared = find_view(spark, TableName.parse("global_temp.found_global"), is_temporary=False)
        assert shared is not None
        assert shared.is_temporary
        assert stamp_of(spark, shared) == shared.stamp
        with pytest.raises(InvalidQuery, match="no SQL text"):
            find_view(spark, TableName.parse("found_frame"), is_temporary=True)
    finally:
        for made in ("found_temp", "found_frame"):
            spark.catalog.dropTempView(made)
        spark.catalog.dropGlobalTempView("found_global")
    assert stamp_of(spark, view) is None


def test_tables_and_nothing_are_no_views(
    spark: SparkSession, clean_names: None, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE found_table (a INT) USING delta LOCATION '{tmp_path}/t'")
    spark.sql("CREATE VIEW found_view AS SELECT a FROM found_table")
    view = find_view(spark, TableName.parse("found_view"), is_temporary=False)
    assert view is not None
    for name in ("found_table", "nothing_here", "no_schema.nothing"):
        for is_temporary in (True, False):
            assert find_view(spark, TableName.parse(name), is_temporary=is_temporary) is None
    spark.sql("DROP VIEW found_view")
    spark.sql(f"CREATE TABLE found_view (a INT) USING delta LOCATION '{tmp_path}/u'")
    assert stamp_of(spark, view) == NOT_A_VIEW
