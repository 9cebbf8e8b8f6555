"""What explain says of a tree, and where a refusal points."""

from __future__ import annotations

import pytest

from kit.typer import RuleTyper
from runnel.compile.build import SourceSchema
from runnel.compile.explaining import costly, explained_tree
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.errors import NotDifferentiable
from runnel.model.columns import Column

_TABLES = [
    SourceSchema("default.t", "delta", (Column("a", "int"), Column("x", "int"))),
    SourceSchema("default.u", "delta", (Column("a", "int"), Column("y", "int"))),
]


def _compiled(query: str) -> CompiledQuery:
    return compile_query(query, _TABLES, RuleTyper())


def test_every_operator_has_its_law_beside_it() -> None:
    compiled = _compiled("SELECT t.a, SUM(y) AS s FROM t JOIN u ON t.a = u.a GROUP BY t.a")
    lines = explained_tree(compiled.tree, compiled.root).splitlines()
    assert [line.strip().partition(" ")[0] for line in lines] == [
        "Project", "Aggregate", "Project", "InnerJoin", "Scan", "Scan",
    ]  # fmt: skip
    assert lines[1].endswith("-- stored state plus the change")
    assert all(" -- " in line for line in lines)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT a, SUM(x) OVER () AS s FROM t", "without PARTITION BY"),
        ("SELECT t.a FROM t CROSS JOIN u", "no condition ties"),
        (
            "SELECT COUNT(*) AS n FROM (SELECT a FROM t ORDER BY x LIMIT 3) q",
            "below another operator",
        ),
    ],
)
def test_costly_operators_are_named(query: str, why: str) -> None:
    compiled = _compiled(query)
    (found,) = costly(compiled.tree, compiled.root)
    assert why in found


def test_nothing_is_costly_about_a_chain_of_joins_or_a_single_row() -> None:
    compiled = _compiled(
        "SELECT t.a FROM t JOIN u ON t.a = u.a JOIN t v ON v.x = u.y WHERE t.x > (SELECT MAX(y) FROM u)"
    )
    assert [c for c in costly(compiled.tree, compiled.root) if "ties" in c] == []


def test_a_refusal_points_at_the_construct() -> None:
    query = "\n  SELECT a,\n    LAST_VALUE(x) OVER (ORDER BY a) AS v\n  FROM t"
    with pytest.raises(NotDifferentiable) as caught:
        _compiled(query)
    assert caught.value.place == "line 3, column 5: LAST_VALUE(x) OVER (ORDER BY a)"
