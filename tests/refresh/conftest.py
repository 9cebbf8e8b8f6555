"""A lake for each test, in the shared Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import runnel
from runnel.api import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    """Empty; whatever a test creates in Spark's catalog is dropped again."""
    with runnel.connect(tmp_path / "lake", spark=spark) as made:
        yield made
    for row in spark.sql("SHOW VIEWS IN default").collect():
        if not row["isTemporary"]:
            spark.sql(f"DROP VIEW IF EXISTS default.`{row['viewName']}`")
    for row in spark.sql("SHOW TABLES IN default").collect():
        if not row["isTemporary"]:
            spark.sql(f"DROP TABLE IF EXISTS default.`{row['tableName']}`")
