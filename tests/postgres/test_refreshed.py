"""Queries in PostgreSQL's dialect, refreshed differentially, against PostgreSQL after the same changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import runnel
from postgres.compare import bag
from postgres.data import COLUMNS

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

_QUERIES = {
    "averages": "SELECT ok, avg(price), avg(id) AS i, sum(big), count(*) FILTER (WHERE small > 1) AS n FROM t GROUP BY ok",
    "joined": "SELECT t.id, u.label, t.price / u.qty AS q, t.id / u.qty AS d FROM t JOIN u ON u.t_id = t.id WHERE u.qty <> 0",
    "texts": "SELECT id, name || '/' || coalesce(code, '') AS x, name ILIKE '%A%' AS a, code ~ '^[0-9]+$' AS n FROM t",
    "firsts": "SELECT DISTINCT ON (small) small, id, name FROM t ORDER BY small, price DESC, id",
    "collected": "SELECT day, string_agg(name, ',' ORDER BY id DESC) AS names, array_agg(id ORDER BY id) AS ids FROM t GROUP BY day",
    "local": "SELECT (seen AT TIME ZONE 'Europe/Paris')::date AS day, count(*) AS n FROM t GROUP BY 1",
    "ranked": "SELECT id, rank() OVER (PARTITION BY ok ORDER BY price DESC) AS r, lag(day) OVER (ORDER BY id) AS l FROM t",
    "documents": "SELECT doc ->> 'name' AS name, max((doc ->> 'n')::int) AS n FROM t GROUP BY 1",
    "absent": "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.t_id = t.id) OR id IN (SELECT qty FROM u)",
}  # fmt: skip
# The same text in both engines.
_CHANGES = (
    "DELETE FROM t WHERE id IN (2, 5)",
    "UPDATE t SET price = price + 1.25, small = 2, name = 'Zeta' WHERE id IN (3, 8)",
    "INSERT INTO u VALUES (8, 7, 'new', 4, 0.125), (9, 4, NULL, -2, NULL)",
    "DELETE FROM u WHERE id = 2",
)


@pytest.fixture
def lake(spark: SparkSession, lake_folder: Path, clean_names: None) -> Iterator[runnel.api.Lake]:
    lake = runnel.connect(lake_folder, spark=spark)
    yield lake
    for status in lake.status():
        lake.drop_stream_table(status.name, cascade=True, if_exists=True)


@pytest.fixture
def server(corpus_server: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """Tables of its own in the place of the others, for this test alone."""
    for table in COLUMNS:
        corpus_server.execute(f"CREATE TEMPORARY TABLE {table} AS TABLE public.{table}")
    yield corpus_server
    for table in COLUMNS:
        corpus_server.execute(f"DROP TABLE pg_temp.{table}")


def test_refreshes_give_what_postgres_gives(
    lake: runnel.api.Lake, corpus_spark: SparkSession, server: psycopg.Connection[Any]
) -> None:
    for table, columns in COLUMNS.items():
        types = ", ".join(f"{name} {type_}" for name, _, type_ in columns)
        lake.sql(f"CREATE TABLE {table} ({types}) USING delta")
        rows = corpus_spark.table(table).collect()
        lake.spark.createDataFrame(rows, corpus_spark.table(table).schema).write.format(
            "delta"
        ).mode("append").saveAsTable(table)
    for name, query in _QUERIES.items():
        lake.create_stream_table(name, query, dialect="postgres", refresh_mode="DIFFERENTIAL")
    for change in _CHANGES:
        server.execute(change)
        lake.sql(change)
    for name, query in _QUERIES.items():
        assert lake.refresh(name).action == "DIFFERENTIAL", name
        found = [tuple(row) for row in lake.table(name).collect()]
        assert bag(found) == bag(server.execute(query).fetchall()), name
