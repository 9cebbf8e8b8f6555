"""The corpus' tables in PostgreSQL and as views of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from postgres.data import COLUMNS, ROWS

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def corpus_server(postgres_server: str) -> Iterator[psycopg.Connection[Any]]:
    from postgres.server import fill

    with fill(postgres_server) as connection:
        yield connection


@pytest.fixture(scope="session")
def corpus_spark(spark: SparkSession) -> Iterator[SparkSession]:
    from runnel.compile.postgres.translate import SETTINGS
    from runnel.lake.session import query_settings, worker_session

    session = worker_session(spark, {**query_settings(spark), **SETTINGS}, adaptive=False)
    for table, columns in COLUMNS.items():
        schema = ", ".join(f"{name} {type_}" for name, _, type_ in columns)
        session.createDataFrame(ROWS[table], schema).createOrReplaceTempView(table)
    yield session
    for table in COLUMNS:
        session.catalog.dropTempView(table)
