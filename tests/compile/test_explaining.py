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
        "Aggregate", "InnerJoin", "Scan", "Scan",
    ]  # fmt: skip
    assert lines[0].endswith("-- stored state plus the change")
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
    query = "\n  SELECT a,\n    APPROX_PERCENTILE(x, 0.5) OVER (PARTITION BY a) AS v\n  FROM t"
    with pytest.raises(NotDifferentiable) as caught:
        _compiled(query)
    assert caught.value.place == "line 3, column 5: APPROX_PERCENTILE(x, 0.5) OVER (PARTITION BY a)"


def test_a_map_in_group_by_is_shown_where_it_is() -> None:
    maps = [SourceSchema("default.t", "delta", (Column("m", "map<string,int>"),))]
    with pytest.raises(NotDifferentiable, match="GROUP BY a map") as caught:
        compile_query("SELECT COUNT(*) AS n FROM t\nGROUP BY m", maps, RuleTyper())
    assert caught.value.place == "line 2, column 10: m"


def _tree(query: str) -> list[str]:
    compiled = _compiled(query)
    return [
        line.partition(" -- ")[0]
        for line in explained_tree(compiled.tree, compiled.root).splitlines()
    ]


def test_columns_have_the_names_of_the_query() -> None:
    assert _tree(
        "SELECT t.a, SUM(y + 1) AS s, COUNT(DISTINCT x) AS d FROM t JOIN u ON t.a = u.a WHERE y > 2 "
        "GROUP BY t.a HAVING SUM(y + 1) > 10"
    ) == [
        "Filter [sum(u.y + 1) > 10]",
        "  Aggregate by [t.a] [sum(u.y + 1), count(DISTINCT t.x)]",
        "    Project [t.a, u.y + 1, t.x]",
        "      InnerJoin [t.a = u.a]",
        "        Scan t [a, x]",
        "        Filter [u.y > 2]",
        "          Scan u [a, y]",
    ]


def test_a_table_that_is_read_twice_is_told_apart() -> None:
    assert _tree("SELECT t.a FROM t LEFT JOIN t v ON t.x = v.a WHERE v.x IS NULL") == [
        "Filter [t#2.x IS NULL]",
        "  LeftJoin [t.x = t#2.a]",
        "    Scan t [a, x]",
        "    Scan t#2 [a, x]",
    ]


def test_windows_unions_and_first_rows() -> None:
    assert _tree("SELECT a, RANK() OVER (ORDER BY x) AS r FROM t UNION ALL SELECT a, y FROM u") == [
        "UnionAll [t.a, RANK() over]",
        "  Window by [] [RANK()]",
        "    Scan t [a, x]",
        "  Scan u [a, y]",
    ]
    assert _tree("SELECT a, x FROM t ORDER BY x DESC LIMIT 3")[0] == (
        "TopK [3 by t.x DESC NULLS LAST, t.a ASC NULLS FIRST]"
    )


def test_recursion_is_called_by_its_name() -> None:
    lines = _tree(
        "WITH RECURSIVE r(p, q) AS (SELECT a, x FROM t UNION ALL SELECT r.p, t.x FROM r JOIN t ON r.q = t.a) "
        "SELECT p, q FROM r"
    )
    assert lines[0] == "Fixpoint r UNION ALL"
    assert "    InnerJoin [r.2 = t#2.a]" in lines
    assert "  Project [r.1, t#2.x, r.3 + 1]" in lines, "the last is the level of a row"


def test_grouping_sets_are_told_by_their_branch() -> None:
    first, *_ = _tree("SELECT a, COUNT(*) AS n FROM t GROUP BY ROLLUP (a)")
    assert first == "Aggregate by [CASE WHEN branch IN (0) THEN t.a END, branch] [count(*)]"
