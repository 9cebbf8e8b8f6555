"""Table functions: which columns they give, and what is refused with which words."""

from __future__ import annotations

import pytest

from kit.typer import RuleTyper
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.compile.type_text import element_of, entry_of, fields_of
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

_COLUMNS = {
    "id": "int",
    "s": "string",
    "xs": "array<int>",
    "m": "map<string,decimal(5,2)>",
    "ps": "array<struct<x:int,y:map<string,int>>>",
    "q": "string",
    "v": "decimal(10,2)",
}


def _compiled(query: str) -> CompiledQuery:
    columns = tuple(Column(name, type_) for name, type_ in _COLUMNS.items())
    return compile_query(query, [SourceSchema("default.t", "delta", columns)], RuleTyper())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT explode(xs) FROM t", "col int"),
        ("SELECT explode_outer(m) FROM t", "key string, value decimal(5,2)"),
        ("SELECT posexplode(m) FROM t", "pos int, key string, value decimal(5,2)"),
        ("SELECT inline(ps) FROM t", "x int, y map<string,int>"),
        ("SELECT inline_outer(ps) AS (a, b) FROM t", "a int, b map<string,int>"),
        ("SELECT stack(2, id, 'a', NULL) FROM t", "col0 int, col1 string"),
        ("SELECT json_tuple(s, 'a', 'b') FROM t", "c0 string, c1 string"),
        ("SELECT * FROM (SELECT id FROM t) LATERAL VIEW explode(array(1)) e", "id int, col int"),
        ("SELECT r.* FROM t JOIN range(3) r ON r.id = t.id", "id bigint"),
        (
            "SELECT w.* FROM t, VALUES (1, NULL), (2.50, 'a') AS w",
            "col1 decimal(12,2), col2 string",
        ),
        ("SELECT x FROM t, VALUES 1, 2 AS w(x)", "x int"),
        ("SELECT x FROM t, UNNEST(t.xs) AS u(x)", "x int"),
        (
            "SELECT * FROM (SELECT q, v FROM t) PIVOT (SUM(v), MAX(v) m FOR q IN ('a', NULL, -1 z))",
            "a_sum(v) decimal(20,2), a_m decimal(10,2), null_sum(v) decimal(20,2), "
            "null_m decimal(10,2), z_sum(v) decimal(20,2), z_m decimal(10,2)",
        ),
        (
            "SELECT * FROM (SELECT id, q, v FROM t) PIVOT (MIN(v) FOR (id, q) IN ((1, 'a')))",
            "{1, a} decimal(10,2)",
        ),
        (
            "SELECT * FROM (SELECT id, v, s FROM t) UNPIVOT (w FOR n IN (id, v AS vv))",
            "s string, n string, w decimal(12,2)",
        ),
    ],
)
def test_columns(query: str, expected: str) -> None:
    found = ", ".join(f"{c.name} {c.type}" for c in _compiled(query).layout.columns)
    assert found == expected


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT explode(xs) + 1 FROM t", "inside an expression"),
        ("SELECT explode(array(explode(xs))) FROM t", "inside an expression"),
        ("SELECT explode(collection => xs) FROM t", "named arguments"),
        ("SELECT stack(id, 1, 2) FROM t", "computed number of rows"),
        (
            "SELECT explode(collect_list(id)) FROM t GROUP BY s ORDER BY COUNT(*) LIMIT 1",
            "ordered by something",
        ),
        (
            "SELECT explode(array((SELECT MAX(id) FROM t))), row_number() OVER (ORDER BY id) FROM t",
            "of a subquery, or a function of *, beside a window",
        ),
        (
            "SELECT id FROM t LEFT JOIN LATERAL stack(1, id) AS e(x) ON e.x > 1",
            "stack() with a condition beside a column of type map<string,decimal(5,2)>",
        ),
        ("SELECT * FROM t LATERAL VIEW my_function(xs) e", "MY_FUNCTION"),
        ("SELECT * FROM t, UNNEST(xs, xs)", "UNNEST of several arrays"),
        ("SELECT * FROM t RIGHT JOIN LATERAL explode(xs) AS e(x)", "RIGHT JOIN LATERAL"),
        ("SELECT * FROM t NATURAL JOIN LATERAL explode(xs) AS e(x)", "NATURAL"),
        ("SELECT t.id FROM range(20000000) r JOIN t ON r.id = t.id", "20000000 rows"),
        ("SELECT t.id FROM range(1 + 1) r JOIN t ON r.id = t.id", "range() with 1 + 1"),
        ("SELECT id FROM t, VALUES struct(1, 2)", "rows are structs"),
        ("SELECT * FROM t PIVOT (SUM(v) FOR q IN (id))", "PIVOT with id among its values"),
        ("SELECT * FROM (SELECT id, s FROM t) UNPIVOT (w FOR n IN (id, s))", "different types"),
    ],
)
def test_refusals(query: str, words: str) -> None:
    with pytest.raises(NotDifferentiable) as caught:
        _compiled(query)
    assert words in caught.value.primary


@pytest.mark.parametrize(
    "query",
    [
        "SELECT explode(id) FROM t",
        "SELECT explode(xs) AS (a, b) FROM t",
        "SELECT id FROM t, VALUES (1, 2), (3) AS w(a, b)",
        "SELECT id FROM t, VALUES (1, 2) AS w(a)",
        "SELECT * FROM t UNPIVOT ((a, b) FOR n IN (id))",
    ],
)
def test_what_does_not_fit(query: str) -> None:
    with pytest.raises(InvalidQuery):
        _compiled(query)


def test_nested_types_are_taken_apart() -> None:
    assert element_of("array<map<string,int>>") == "map<string,int>"
    assert entry_of("map<struct<a:int,b:decimal(5,2)>,array<int>>") == (
        "struct<a:int,b:decimal(5,2)>",
        "array<int>",
    )
    assert fields_of("struct<a:decimal(5,2),b:struct<c:int,d:int>>") == (
        ("a", "decimal(5,2)"),
        ("b", "struct<c:int,d:int>"),
    )
    assert element_of("int") is entry_of("int") is fields_of("int") is None


def test_a_shortened_struct_is_refused() -> None:
    with pytest.raises(NotDifferentiable):
        fields_of("struct<a:int,... 30 more fields>")
