"""What WITH RECURSIVE accepts and refuses, and how its bound is told."""

from __future__ import annotations

import duckdb
import pytest

from kit.dialect import replace_words
from kit.duck import DuckQuery, DuckSources, Moment, Table, connection
from kit.typer import RuleTyper
from runnel.algebra.nodes import Fixpoint, walk
from runnel.compile.dialect import SparkSql
from runnel.compile.parse import parse
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.compile.recursion import recursive_union, with_union_all
from runnel.errors import InvalidQuery, NotDifferentiable, QueryFailed
from runnel.model.columns import Column

_EDGE = Table("edge", (Column("a", "int"), Column("b", "int")))
_REACH = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT e.b FROM r JOIN edge e ON e.a = r.n) SELECT n FROM r"
_REFUSED = {
    "grouping": ("SELECT MAX(e.b) FROM r JOIN edge e ON e.a = r.n GROUP BY r.n", "under grouping"),
    "distinct": ("SELECT DISTINCT e.b FROM r JOIN edge e ON e.a = r.n", "under grouping"),
    "exists": (
        "SELECT e.b FROM edge e WHERE EXISTS (SELECT 1 FROM r WHERE r.n = e.a)",
        "EXISTS or IN",
    ),
    "not_in": ("SELECT e.b FROM edge e WHERE e.a NOT IN (SELECT n FROM r)", "EXISTS or IN"),
    "optional_side": ("SELECT e.b FROM edge e LEFT JOIN r ON e.a = r.n", "optional side"),
    "full_join": ("SELECT e.b FROM r FULL JOIN edge e ON e.a = r.n", "optional side"),
    "with_itself": ("SELECT x.n FROM r x JOIN r y ON x.n = y.n", "joined with itself"),
    "half_a_step": (
        "SELECT n FROM (SELECT n FROM r UNION ALL SELECT a FROM edge) x",
        "does not read r",
    ),
    "nested": (
        "SELECT n FROM (WITH RECURSIVE s(n) AS (SELECT n FROM r UNION SELECT e.b FROM s JOIN edge e ON e.a = s.n) SELECT n FROM s) x",
        "Fixpoint",
    ),
    "inner_with": ("SELECT n FROM (WITH r2 AS (SELECT COUNT(*) AS n FROM r) SELECT n FROM r2) x", "grouping"),
}  # fmt: skip


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    return connection()


@pytest.mark.parametrize("name", _REFUSED)
def test_a_step_that_does_not_add_up_is_refused(name: str) -> None:
    step, construct = _REFUSED[name]
    with pytest.raises(NotDifferentiable) as caught:
        _compile(
            f"WITH RECURSIVE r(n) AS (SELECT CAST(1 AS BIGINT) UNION ALL {step}) SELECT n FROM r"
        )
    assert construct in caught.value.primary
    assert caught.value.hint is not None


def test_two_that_read_each_other_are_refused() -> None:
    query = (
        "WITH RECURSIVE p(n) AS (SELECT 1 UNION SELECT n FROM q), "
        "q(n) AS (SELECT 2 UNION SELECT n FROM p) SELECT n FROM p JOIN edge ON n = a"
    )
    with pytest.raises(NotDifferentiable, match="q, read where its rows are not known yet"):
        _compile(query)


def test_an_anchor_that_reads_itself_is_refused() -> None:
    with pytest.raises(NotDifferentiable, match="r, read where its rows are not known yet"):
        _compile(
            "WITH RECURSIVE r(n) AS (SELECT n FROM r UNION ALL SELECT a FROM edge) SELECT n FROM r"
        )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("WITH RECURSIVE r AS (SELECT n FROM r) SELECT n FROM r", "is not made by UNION"),
        (
            "WITH RECURSIVE r(n) AS (SELECT a FROM edge UNION ALL SELECT n, n FROM r) SELECT n FROM r",
            "1 columns here and 2 there",
        ),
        (
            "WITH RECURSIVE r(n) AS (SELECT a FROM edge UNION ALL SELECT CAST(n AS BIGINT) FROM r) SELECT n FROM r",
            "column n of r is int in its anchor, bigint in its step",
        ),
    ],
)
def test_an_invalid_recursion_is_told(query: str, words: str) -> None:
    with pytest.raises(InvalidQuery, match=words):
        _compile(query)


def test_a_cte_that_does_not_read_itself_is_a_plain_one() -> None:
    compiled = _compile("WITH RECURSIVE r AS (SELECT a FROM edge) SELECT a FROM r")
    assert not any(isinstance(n, Fixpoint) for n in walk(compiled.tree))


def test_a_cte_inside_may_hide_the_name() -> None:
    compiled = _compile(
        "WITH RECURSIVE r AS (WITH r AS (SELECT a FROM edge) SELECT a FROM r) SELECT a FROM r"
    )
    assert not any(isinstance(n, Fixpoint) for n in walk(compiled.tree))


def test_recursion_level_of_the_text() -> None:
    query = _REACH.replace("r(n) AS", "r(n) MAX RECURSION LEVEL 7 AS")
    program = _compile(query).full_program()
    assert [s.max_level for s in program.steps if s.again] == [7]
    assert "r(n) MAX RECURSION LEVEL 7 AS (" in parse(query).sql(SparkSql)


def test_the_form_that_spark_can_analyse() -> None:
    text = "WITH RECURSIVE r AS (SELECT 'a UNION b' UNION SELECT 1 union distinct SELECT 2 UNION ALL SELECT 3) ..."
    expected = "WITH RECURSIVE r AS (SELECT 'a UNION b' UNION ALL SELECT 1 union ALL SELECT 2 UNION ALL SELECT 3) ..."
    assert with_union_all(text) == expected


def test_recursion_by_union_is_found() -> None:
    assert recursive_union(parse(_REACH)) is None
    assert recursive_union(parse(_REACH.replace("UNION ALL", "UNION"))) == "r"
    assert (
        recursive_union(
            parse("WITH RECURSIVE r AS (SELECT 1 UNION SELECT a FROM edge) SELECT * FROM r")
        )
        is None
    )


def test_a_walk_without_end_is_an_error(con: duckdb.DuckDBPyConnection) -> None:
    query = _query(con, _REACH, [(1, 2), (2, 1)])
    with pytest.raises(QueryFailed, match="more than 100 levels"):
        query.full()


def test_union_ends_in_a_cycle(con: duckdb.DuckDBPyConnection) -> None:
    query = _query(con, _REACH.replace("UNION ALL", "UNION"), [(1, 2), (2, 1)])
    query.initialize()
    assert sorted(query.readout().elements()) == [(1,), (2,)]


def test_only_inserts_have_no_walk_of_what_goes() -> None:
    compiled = _compile(_REACH)
    everything = frozenset(compiled.kinds)
    assert "gone" in {s.name for s in compiled.program(everything).steps}
    assert "gone" not in {s.name for s in compiled.program(everything, everything).steps}


def _compile(query: str) -> CompiledQuery:
    return compile_query(query, [_EDGE.schema], RuleTyper())


def _query(con: duckdb.DuckDBPyConnection, query: str, edges: list[tuple[int, int]]) -> DuckQuery:
    sources = DuckSources(con, [_EDGE])
    sources.load(_EDGE.schema.key, 0, [Moment(list(edges), [(e, 1) for e in edges])])
    sources.set_round(0)
    return DuckQuery(sources, _compile(query), replace_words)
