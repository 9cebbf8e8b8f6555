"""What may fail is computed for rows that were there or are there now, and there it does fail."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from kit.duck import connection
from kit.duck_backend import DuckBackend
from kit.step import Change, TableSpec
from runnel.algebra.scalar import Scalar
from runnel.compile.failing import may_fail
from runnel.model.columns import Column

_QUERY = "SELECT o.k, (SELECT w FROM i WHERE i.k = o.k) AS w FROM o"


@pytest.fixture
def backend() -> Iterator[DuckBackend]:
    con = connection()
    made = DuckBackend(con)
    made.create_table(TableSpec("o", (Column("k", "int"),), rows=[(1,)]))
    columns = (Column("k", "int"), Column("w", "int"))
    made.create_table(TableSpec("i", columns, rows=[(1, 10), (2, 20)]))
    made.create_stream_table(_QUERY)
    yield made
    con.close()


def test_a_second_row_for_an_outer_row_that_is_there_is_an_error(backend: DuckBackend) -> None:
    backend.commit([Change("i", None, (1, 11))])
    with pytest.raises(duckdb.Error, match="more than one row"):
        backend.refresh()


def test_one_for_an_outer_row_that_comes_is_an_error(backend: DuckBackend) -> None:
    backend.commit([Change("o", None, (2,)), Change("i", None, (2, 21))])
    with pytest.raises(duckdb.Error, match="more than one row"):
        backend.refresh()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a1", False),
        ("a1 * (1 - a2)", False),
        ("COALESCE(a1, 0) + 1", False),
        ("a1 >= CAST('1996-01-01' AS DATE)", False),
        ("CAST(a1 AS STRING)", False),
        ("a1 = 'a/b'", False),
        ("CAST(a1 AS INT)", True),
        ("COALESCE(CAST(a1 AS DECIMAL(12,2)), 0)", True),
        ("a1 / a2", True),
        ("a1 DIV a2", True),
        ("a1[0]", True),
        ("CASE WHEN a1 > 1 THEN RAISE_ERROR('x') ELSE a2 END", True),
        ("to_date(a1)", True),
    ],
)
def test_what_may_fail(text: str, expected: bool) -> None:
    assert may_fail(Scalar.constant(text)) is expected
