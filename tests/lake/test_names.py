"""Names: the catalog of an embedded session follows the folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from runnel.errors import SourceError
from runnel.lake.names import (
    TableKind,
    describe,
    find_folder,
    locate,
    publish_view,
    register_location,
    remove_folder,
    retract_location,
    retract_view,
    sync_schemas,
    sync_tables,
)
from runnel.model.names import TableName

pytestmark = pytest.mark.spark


def test_tables_of_other_processes_come_and_go(spark: SparkSession, lake_folder: Path) -> None:
    warehouse = lake_folder / "warehouse"
    known: dict[str, TableName] = {}
    sync_tables(spark, warehouse, known)
    rows = pa.table({"a": [1, 2]})
    write_deltalake(str(warehouse / "foreign_one"), rows)
    write_deltalake(str(warehouse / "other.db" / "foreign_two"), rows)
    write_deltalake(str(warehouse / "orders.bak"), rows)
    (warehouse / "not_a_table").mkdir()
    sync_tables(spark, warehouse, known)
    assert {"default.foreign_one", "other.foreign_two"} <= known.keys()
    assert "default.not_a_table" not in known
    assert "default.orders.bak" not in known, "no name for Spark"
    assert find_folder(warehouse, TableName("Other", "FOREIGN_two")) is not None
    assert find_folder(warehouse, TableName("default", "not_a_table")) is None
    assert spark.table("foreign_one").count() == 2
    assert spark.table("other.foreign_two").count() == 2
    shutil.rmtree(warehouse / "foreign_one")
    sync_tables(spark, warehouse, known)
    assert not spark.catalog.tableExists("foreign_one")
    spark.sql("DROP TABLE other.foreign_two")
    remove_folder(warehouse, TableName("other", "foreign_two"))
    assert not (warehouse / "other.db" / "foreign_two").exists()
    sync_tables(spark, warehouse, known)
    assert "other.foreign_two" not in known


def test_schemas_without_tables_are_known_too(
    spark: SparkSession, tmp_path: Path, clean_names: None
) -> None:
    for folder in ("empty_mart.db", "not a name.db", "a_table"):
        (tmp_path / folder).mkdir()
    known: set[str] = set()
    sync_schemas(spark, tmp_path, known)
    assert spark.catalog.databaseExists("empty_mart")
    spark.sql("DROP SCHEMA empty_mart")
    sync_schemas(spark, tmp_path, known)
    assert not spark.catalog.databaseExists("empty_mart"), "dropped here, and not brought back"


def test_a_name_is_given_up_only_where_it_stands_for_the_place(
    spark: SparkSession, tmp_path: Path
) -> None:
    name = TableName.parse("elsewhere")
    for place in ("here", "there"):
        write_deltalake(str(tmp_path / place), pa.table({"a": [place]}))
    register_location(spark, name, str(tmp_path / "here"))
    here = locate(spark, name) or ""
    retract_location(spark, name, here.replace("here", "there"))
    assert locate(spark, name) == here
    retract_location(spark, name, here)
    assert locate(spark, name) is None
    register_location(spark, name, str(tmp_path / "there"))
    shutil.rmtree(tmp_path / "there")
    retract_location(spark, name, here.replace("here", "there"))
    assert not spark.catalog.tableExists(name.sql)
    register_location(spark, name, here)
    assert spark.table("elsewhere").first()["a"] == "here"
    retract_location(spark, name, here)


def test_what_a_name_stands_for(spark: SparkSession, lake_folder: Path) -> None:
    spark.sql("CREATE TABLE located (Location INT, `# Detailed Table Information` INT) USING delta "
              "TBLPROPERTIES (delta.columnMapping.mode = 'name')")  # fmt: skip
    spark.sql("CREATE VIEW a_view AS SELECT 1 AS x")
    spark.sql("CREATE TEMP VIEW a_temp_view AS SELECT 1 AS x")
    spark.sql("CREATE TABLE a_parquet (a INT) USING parquet")
    where = locate(spark, TableName.parse("LOCATED"))
    assert where is not None
    assert where.endswith("/warehouse/located")
    assert locate(spark, TableName.parse("nowhere")) is None
    assert locate(spark, TableName.parse("no_schema.nowhere")) is None
    assert describe(spark, TableName.parse("a_view")).view_text == "SELECT 1 AS x"
    for name, message in (("a_view", "is a view"), ("a_parquet", "is not a Delta table")):
        with pytest.raises(SourceError, match=message):
            locate(spark, TableName.parse(name))
    assert describe(spark, TableName.parse("a_parquet")).kind is TableKind.OTHER


def test_views_are_published_and_retracted(spark: SparkSession) -> None:
    name = TableName.parse("`New_schema`.`A_view`")
    publish_view(spark, name, "SELECT 1 AS `x y`")
    publish_view(spark, name, "SELECT 2 AS `x y`")
    assert spark.table(name.sql).collect() == [(2,)]
    retract_view(spark, name)
    retract_view(spark, name)
    retract_view(spark, TableName.parse("never_there.v"))
    assert describe(spark, name).kind is TableKind.MISSING
