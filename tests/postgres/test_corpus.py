"""The same queries on PostgreSQL and, translated, on Spark give the same rows and column names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from postgres.compare import bag
from postgres.corpus import Query, accepted, refused
from postgres.data import columns_of
from runnel.compile.parse import parse
from runnel.compile.postgres.translate import translate
from runnel.errors import RunnelError

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import SparkSession


def test_the_corpus_is_large_enough() -> None:
    assert len(accepted()) >= 150
    assert len(refused()) >= 40


@pytest.mark.parametrize("query", accepted(), ids=str)
def test_query_is_translated(query: Query) -> None:
    parse(translate(query.text, columns_of))


@pytest.mark.parametrize(("query", "construct"), refused(), ids=str)
def test_query_is_refused(query: Query, construct: str) -> None:
    with pytest.raises(RunnelError) as caught:
        translate(query.text, columns_of)
    assert construct in str(caught.value)
    assert caught.value.hint


@pytest.mark.postgres
@pytest.mark.parametrize("query", accepted(), ids=str)
def test_postgres_runs_it(query: Query, corpus_server: psycopg.Connection[Any]) -> None:
    corpus_server.execute(query.text).fetchall()


@pytest.mark.spark
@pytest.mark.postgres
@pytest.mark.parametrize("query", accepted(), ids=str)
def test_spark_answers_as_postgres(
    query: Query, corpus_server: psycopg.Connection[Any], corpus_spark: SparkSession
) -> None:
    cursor = corpus_server.execute(query.text)
    expected = cursor.fetchall()
    frame = corpus_spark.sql(translate(query.text, columns_of))
    found = [tuple(row) for row in frame.collect()]
    assert bag(found) == bag(expected)
    names = [c.name for c in cursor.description or ()]
    shown = [n if n != "?column?" else f"column{i}" for i, n in enumerate(names, 1)]
    assert frame.columns == shown


@pytest.mark.postgres
def test_the_server_is_the_one_that_is_promised(corpus_server: psycopg.Connection[Any]) -> None:
    assert corpus_server.info.server_version // 10_000 == 18


@pytest.mark.spark
@pytest.mark.postgres
def test_an_average_has_every_digit_of_postgres(
    corpus_server: psycopg.Connection[Any], corpus_spark: SparkSession
) -> None:
    """PostgreSQL's scale comes from the values: here the zeros that Spark's type adds are taken off."""
    query = "SELECT id, avg(price) OVER (ORDER BY id) AS p, avg(id) OVER (ORDER BY id) AS i, price / 7 AS q FROM t"
    expected = {row[0]: row[1:] for row in corpus_server.execute(query).fetchall()}
    found = {row[0]: row[1:] for row in corpus_spark.sql(translate(query, columns_of)).collect()}
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        for ours, theirs in zip(found[key], values, strict=True):
            if theirs is None:
                assert ours is None
                continue
            shown, parts = f"{theirs:f}", theirs.as_tuple()
            assert max(-parts.exponent, len(parts.digits)) >= 16
            assert f"{ours:f}"[: len(shown)] == shown
            assert not f"{ours:f}"[len(shown) :].strip("0")


@pytest.mark.spark
def test_quotient_that_does_not_fit_is_an_error(corpus_spark: SparkSession) -> None:
    text = translate("SELECT sum(price) / sum(big) AS q FROM t", columns_of)
    with pytest.raises(PySparkException, match="more than 20 decimals"):
        corpus_spark.sql(text).collect()
