"""Expressions reach the program with the meaning they had in the query's text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from runnel.algebra.nodes import Project
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import compile_query
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

_TABLE = SourceSchema(
    "default.t",
    "delta",
    (Column("i", "int"), Column("s", "string"), Column("arr", "array<int>"), Column("w", "int")),
)


class _AnyType:
    def types(self, columns: Sequence[Column], expressions: Sequence[str]) -> tuple[str, ...]:
        return ("int",) * len(expressions)


def _text(expression: str) -> str:
    tree = compile_query(f"SELECT {expression} AS x FROM t", [_TABLE], _AnyType()).tree
    assert isinstance(tree, Project)
    names = {c.name: n for c, n in zip(tree.input.columns, tree.input.names, strict=True)}  # type: ignore[union-attr]
    return tree.items[0][1].render(lambda column: names[column])


@pytest.mark.parametrize(
    "text",
    [
        "LOG10(i)",
        "UNIX_DATE(s)",
        "PARSE_JSON(s)",
        "TO_CHAR(i, '999')",
        "LEVENSHTEIN(s, s, 2)",
        "CAST(s AS TIME)",
        "TRY_CAST(s AS INT)",
        "TRANSFORM(arr, x -> x + i)",
        "EXISTS(arr, x -> x > 1)",
        "s LIKE ANY ('a%', 'b%')",
        "i % 3",
        "i DIV 2",
        "TRY_DIVIDE(i, 0)",
        "TO_DATE(s, 'yyyy-MM-dd')",
        "TO_TIMESTAMP(s, 'yyyy-MM-dd HH:mm:ss')",
        "TO_TIMESTAMP(s)",
        "DATE_TRUNC(s, s)",
        "DATE_TRUNC('month', s)",
        "TRUNC(s, s)",
        "DATE_FORMAT(s, '\\'day\\' d')",
        "DATE_FORMAT(s, 'y')",
        "ARRAY_SIZE(arr)",
        "DATE_SUB(s, i)",
        "UNIX_TIMESTAMP(s, 'yyyy-MM-dd HH:mm:ss')",
        "FROM_UNIXTIME(i, 'yyyy-MM-dd HH:mm:ss')",
        "LOG2(i)",
        "DATEADD(DAY, i, s)",
        "TIMESTAMPDIFF(MICROSECOND, s, s)",
    ],
)
def test_text_is_kept(text: str) -> None:
    assert _text(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'it''s'", r"'it\'s'"),
        ('"d""q"', "'d\"q'"),
        (r"'a\'b'", r"'a\'b'"),
        ("i <=> w", "i IS NOT DISTINCT FROM w"),
        ("i::bigint", "CAST(i AS BIGINT)"),
        ("T.I + `w`", "i + w"),
        ("i - (-1)", "i - (-1)"),
        ("NOT i = 1", "NOT i = 1"),
        ("hash(*)", "HASH(i, s, arr, w)"),
        ("coalesce(* EXCEPT (s, arr))", "COALESCE(i, w)"),
        ("concat_ws(',', t.*, 'x')", "CONCAT_WS(',', i, s, arr, w, 'x')"),
        ("to_json(struct(*))", "TO_JSON(STRUCT(i AS `i`, s AS `s`, arr AS `arr`, w AS `w`))"),
    ],
)
def test_text_means_the_same(text: str, expected: str) -> None:
    assert _text(text) == expected


def test_a_distinct_count_of_all_columns_is_one_of_each() -> None:
    of_star, listed = (
        compile_query(f"SELECT COUNT(DISTINCT {what}) AS n FROM t", [_TABLE], _AnyType()).tree
        for what in ("*", "i, s, arr, w")
    )
    assert of_star == listed


@pytest.mark.parametrize(
    ("query", "construct"),
    [
        ("SELECT i FROM t CONNECT BY i = w", "CONNECT"),
        ("SELECT i FROM t UNION ALL BY NAME SELECT i FROM t", "UNION BY NAME"),
        ("SELECT MAX(i) OVER (ORDER BY *) FROM t", "* inside a function"),
        ("SELECT theta_sketch_agg(i) FROM t", "aggregate function"),
    ],
)
def test_no_clause_is_dropped_without_a_word(query: str, construct: str) -> None:
    with pytest.raises(NotDifferentiable, match=construct.replace("*", r"\*")):
        compile_query(query, [_TABLE], _AnyType())


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT nothing FROM t", "not found"),
        ("SELECT a.i FROM t a JOIN t b ON i = 1", "ambiguous"),
        ("SELECT i, COUNT(*) FROM t", "neither grouped"),
        ("SELECT i FROM t UNION ALL SELECT i, s FROM t", "1 and 2 columns"),
        ("SELECT SUM(COUNT(i)) FROM t", "inside another"),
        ("SELECT i FROM t LIMIT 3", "not deterministic"),
        ("SELECT i FROM t VERSION AS OF 3", "time travel"),
        ("SELECT rand() FROM t", "not deterministic"),
        ("SELECT i FROM t; SELECT i FROM t", "one query"),
        ("SELECT i FROM", "cannot be parsed"),
        ("DELETE FROM t", "expected a query"),
    ],
)
def test_wrong_queries_say_what_is_wrong(query: str, words: str) -> None:
    with pytest.raises(InvalidQuery, match=words):
        compile_query(query, [_TABLE], _AnyType())


def test_a_weight_named_like_a_column_gets_another_name() -> None:
    source = SourceSchema("default.t", "delta", (Column("__W", "int"), Column("__w_", "int")))
    compiled = compile_query("SELECT `__W` FROM t", [source], _AnyType())
    program = str(compiled.program(frozenset({"default.t"})))
    assert "SELECT `__W` AS a0, __w__ AS __w FROM ⟦change:default.t⟧" in program
