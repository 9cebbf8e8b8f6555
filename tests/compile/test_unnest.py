"""Subqueries: which way they are joined, and what is said of those that cannot be kept."""

from __future__ import annotations

import pytest

from kit.typer import RuleTyper
from runnel.algebra.nodes import Node, Scan, walk
from runnel.algebra.printing import print_tree
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import compile_query
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

_TABLES = (
    SourceSchema("default.t", "delta", (Column("a", "int"), Column("s", "string"))),
    SourceSchema("default.u", "delta", (Column("a", "int"), Column("b", "bigint"))),
    SourceSchema("default.v", "delta", (Column("s", "string"), Column("m", "map<string,int>"))),
)


def _tree(query: str) -> Node:
    return compile_query(query, _TABLES, RuleTyper()).tree


def _scans(query: str) -> list[str]:
    return sorted(node.source[-1] for node in walk(_tree(query)) if isinstance(node, Scan))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a < t.a)",
        "SELECT a FROM t WHERE a NOT IN (SELECT u.a + t.a FROM u WHERE u.b = t.a)",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a GROUP BY u.b HAVING COUNT(*) > 1)",
        "SELECT a, (SELECT COUNT(*) FROM u WHERE u.a = t.a) AS n FROM t",
        "SELECT a, (SELECT u.b FROM u WHERE u.a = t.a + 1) AS n FROM t",
        "SELECT a, (SELECT MAX(u.a) FROM u) AS n FROM t",
        "SELECT t.a, q.b FROM t, LATERAL (SELECT u.b FROM u WHERE u.a > t.a) q",
        "SELECT t.a, q.b FROM t, LATERAL (SELECT u.b FROM u WHERE u.a = t.a ORDER BY u.b LIMIT 1) q",
    ],
)
def test_the_outer_rows_are_read_once_where_conditions_can_be_pulled(query: str) -> None:
    assert _scans(query) == ["t", "u"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, (SELECT COUNT(*) FROM u WHERE u.a < t.a) AS n FROM t",
        "SELECT a FROM t WHERE EXISTS (SELECT u.b FROM u WHERE u.a < t.a GROUP BY u.b HAVING COUNT(*) > 1)",
        "SELECT t.a, q.b FROM t LEFT JOIN LATERAL (SELECT t.s AS b FROM u WHERE u.a = t.a) q ON TRUE",
    ],
)
def test_else_their_distinct_values_are_joined_in(query: str) -> None:
    assert _scans(query) == ["t", "t", "u"]


def test_only_the_input_that_has_the_values_is_read_again() -> None:
    query = (
        "SELECT t.a FROM t JOIN v ON t.s = v.s WHERE 1 < (SELECT COUNT(*) FROM u WHERE u.a < t.a)"
    )
    assert _scans(query) == ["t", "t", "u", "v"]


def test_different_texts_of_one_number_are_one_key() -> None:
    """'1' and '01' both equal 1: grouping by the text would give two values for one row."""
    query = "SELECT a, (SELECT COUNT(*) FROM v WHERE v.s = u.a) AS n FROM u"
    assert "<=>" in print_tree(_tree(query))
    query = "SELECT b, (SELECT COUNT(*) FROM t WHERE t.a = u.b) AS n FROM u"
    assert "<=>" not in print_tree(_tree(query))


@pytest.mark.parametrize(
    "test",
    [
        "EXISTS (SELECT 1 FROM u WHERE t.a > u.a)",
        "NOT EXISTS (SELECT 1 FROM u WHERE NOT coalesce(t.a <= u.a, FALSE))",
    ],
)
def test_what_is_hinted_at_is_kept(test: str) -> None:
    assert _scans(f"SELECT a FROM t WHERE {test}") == ["t", "u"]


def test_the_columns_of_a_value_are_counted() -> None:
    for tie in ("", " WHERE u.a = t.a"):
        with pytest.raises(InvalidQuery, match="used as a value has 2 columns"):
            _tree(f"SELECT (SELECT u.a, u.b FROM u{tie}) AS x FROM t")


def test_a_limit_is_arbitrary_but_under_exists() -> None:
    assert _scans("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a LIMIT 1)")
    with pytest.raises(InvalidQuery, match="LIMIT without ORDER BY"):
        _tree("SELECT a FROM t WHERE a IN (SELECT u.a FROM u LIMIT 1)")


def test_a_map_of_the_outer_row_is_refused_in_the_general_way_only() -> None:
    assert _scans("SELECT s FROM v WHERE EXISTS (SELECT 1 FROM u WHERE u.a = v.m['x'])") == [
        "u",
        "v",
    ]
    with pytest.raises(NotDifferentiable, match="reads a map"):
        _tree("SELECT s, (SELECT COUNT(*) FROM u WHERE u.a < v.m['x']) AS n FROM v")


def test_an_alias_of_the_list_wins_over_the_outer_query() -> None:
    query = "SELECT a, (SELECT MAX(y) FROM (SELECT u.a AS s, s AS y FROM u) q) AS x FROM t"
    assert _scans(query) == ["t", "u"]
