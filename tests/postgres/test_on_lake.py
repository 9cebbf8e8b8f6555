"""A stream table defined in PostgreSQL's dialect: created, refreshed, verified, shown, altered."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import runnel
from runnel.errors import InvalidQuery, NotFound, UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_BY_NAME = "SELECT name, avg(price), count(*) FILTER (WHERE price > 5) AS n, sum(big) FROM sales GROUP BY 1"


@pytest.fixture
def lake(spark: SparkSession, lake_folder: Path, clean_names: None) -> Iterator[runnel.api.Lake]:
    lake = runnel.connect(lake_folder, spark=spark)
    lake.sql(
        "CREATE TABLE sales (id INT, name STRING, price DECIMAL(10, 2), big BIGINT) USING DELTA"
    )
    lake.sql("INSERT INTO sales VALUES (1, 'a', 10, 1), (2, 'a', 3.33, 2), (3, 'b', NULL, NULL)")
    yield lake
    for status in lake.status():
        lake.drop_stream_table(status.name, cascade=True, if_exists=True)


def test_is_kept_differentially_and_shown_as_written(lake: runnel.api.Lake) -> None:
    status = lake.create_stream_table(
        "by_name", _BY_NAME, dialect="postgres", refresh_mode="DIFFERENTIAL"
    )
    assert status.query == _BY_NAME
    assert _rows(lake, "by_name") == [("a", Decimal("6.665"), 1, 3), ("b", None, 0, None)]
    lake.sql("INSERT INTO sales VALUES (4, 'a', 7, 9000000000000000000), (5, 'b', 1, 1)")
    assert lake.refresh("by_name").action == "DIFFERENTIAL"
    assert lake.verify("by_name")
    shown = [r[1] for r in _rows(lake, "by_name")]
    assert shown == [Decimal("6.7766666666666667"), 1]


def test_statement_takes_the_dialect_and_alter_keeps_it(lake: runnel.api.Lake) -> None:
    lake.sql(
        "CREATE STREAM TABLE halves WITH (dialect = 'postgres') AS SELECT id / 2 AS h FROM sales"
    )
    assert sorted(r[0] for r in lake.table("halves").collect()) == [0, 1, 1]
    lake.sql("ALTER STREAM TABLE halves AS SELECT id / 3 AS h FROM sales")
    assert sorted(r[0] for r in lake.table("halves").collect()) == [0, 0, 1]
    told = lake.explain("halves")
    assert "DIV 3" in told.translation


def test_explain_shows_the_translation(lake: runnel.api.Lake) -> None:
    told = lake.explain(query="SELECT id::text || 'x' AS t FROM sales", dialect="postgres")
    assert told.translation == "SELECT CAST(id AS STRING) || 'x' AS t FROM sales"
    assert "in Spark SQL" in str(told)
    again = lake.sql("EXPLAIN STREAM TABLE WITH (dialect = 'postgres') AS SELECT id / 2 FROM sales")
    assert again.translation == "SELECT CAST(id DIV 2 AS INT) AS column1 FROM sales"


def test_reads_stream_tables_too(lake: runnel.api.Lake) -> None:
    lake.create_stream_table("by_name", _BY_NAME, dialect="postgres", refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("n", "SELECT sum(n) / 2 AS s FROM by_name", dialect="postgres")
    assert _rows(lake, "n") == [(Decimal("0.5"),)]


def test_refusals_name_the_construct(lake: runnel.api.Lake) -> None:
    with pytest.raises(InvalidQuery, match="the function age"):
        lake.create_stream_table("x", "SELECT age(now()) FROM sales", dialect="postgres")
    with pytest.raises(NotFound, match="nowhere"):
        lake.create_stream_table("x", "SELECT a FROM nowhere", dialect="postgres")
    with pytest.raises(UserError, match="not a dialect"):
        lake.create_stream_table("x", "SELECT id FROM sales", dialect="oracle")


def _rows(lake: runnel.api.Lake, name: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lake.table(name).collect())
