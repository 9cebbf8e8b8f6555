"""ANY and ALL over subqueries: rewritten, they give what DuckDB gives for them as they are."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from kit.bags import bag
from kit.dialect import transpile
from kit.typer import RuleTyper
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import compile_query
from runnel.compile.rewrites.quantified import without_quantifiers
from runnel.errors import InvalidQuery
from runnel.model.columns import Column

_SOURCES = [
    SourceSchema("default.t", "delta", (Column("k", "int"), Column("x", "int"))),
    SourceSchema("default.u", "delta", (Column("k", "int"), Column("y", "int"))),
]
_SIGNS = ["=", "<>", "<", "<=", ">", ">="]
_SUBQUERIES = [
    "SELECT y FROM u",
    "SELECT y FROM u WHERE y IS NOT NULL",
    "SELECT y FROM u WHERE u.k = t.k",
    "SELECT x FROM t AS i WHERE i.k > t.k",
    "SELECT y FROM u WHERE y > 100",
    "SELECT y FROM u WHERE k = 1 UNION ALL SELECT k FROM t",
]


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute("CREATE TABLE t (k INT, x INT); CREATE TABLE u (k INT, y INT)")
        made.execute(
            "INSERT INTO t VALUES (1, 1), (1, 5), (2, 3), (2, NULL), (3, 4), (4, 7), (5, 2)"
        )
        made.execute(
            "INSERT INTO u VALUES (1, 1), (1, 5), (2, 3), (2, NULL), (4, 7), (5, 2), (5, 2)"
        )
        yield made


def _check(con: duckdb.DuckDBPyConnection, query: str) -> None:
    text = without_quantifiers(query)
    assert text != query
    assert " ANY" not in text
    assert " ALL (" not in text
    assert bag(con.execute(transpile(text)).fetchall()) == bag(con.execute(query).fetchall())
    compiled = compile_query(text, _SOURCES, RuleTyper())
    assert compiled.program(frozenset(compiled.kinds)).steps


@pytest.mark.parametrize("sign", _SIGNS)
@pytest.mark.parametrize("word", ["ANY", "ALL"])
def test_as_a_condition_and_as_a_value(
    sign: str, word: str, con: duckdb.DuckDBPyConnection
) -> None:
    for subquery in _SUBQUERIES:
        test = f"x {sign} {word} ({subquery})"
        _check(con, f"SELECT k, x FROM t WHERE k > 0 AND {test}")
        _check(con, f"SELECT k, x FROM t WHERE NOT ({test})")
        _check(con, f"SELECT k, x, {test} AS v FROM t")


def test_in_having_over_an_aggregate(con: duckdb.DuckDBPyConnection) -> None:
    _check(
        con,
        "SELECT k, SUM(x) AS s FROM t GROUP BY k HAVING SUM(x) >= ALL (SELECT y FROM u WHERE y > 1)",
    )


def test_some_is_any(con: duckdb.DuckDBPyConnection) -> None:
    assert without_quantifiers("SELECT k FROM t WHERE x < SOME (SELECT y FROM u)") == (
        "SELECT k FROM t WHERE ((x) < (SELECT MAX(__y) FROM (SELECT y FROM u) AS __q(__y)))"
    )


def test_nested(con: duckdb.DuckDBPyConnection) -> None:
    _check(
        con,
        "SELECT k FROM t WHERE x > ANY (SELECT y FROM u WHERE u.k <= ALL (SELECT k FROM t AS i WHERE i.x = u.y))",
    )


def test_rows_of_values_are_refused_but_for_equality() -> None:
    with pytest.raises(InvalidQuery, match="ANY over a subquery") as caught:
        without_quantifiers("SELECT k FROM t WHERE\n  (k, x) > ANY (SELECT k, y FROM u)")
    assert caught.value.place is not None
    assert "IN (SELECT" in without_quantifiers(
        "SELECT k FROM t WHERE (k, x) = ANY (SELECT k, y FROM u)"
    )


def test_other_queries_stay_as_they_are_written() -> None:
    query = "select  k from t where k in (select k from u) and 'a' LIKE ANY ('a', 'b')"
    assert without_quantifiers(query) == query
