"""Which parts of a query fall apart by a key, and what their programs read."""

from __future__ import annotations

import pytest

from kit.reads import reads_of
from kit.typer import RuleTyper
from runnel.compile.build import SourceSchema
from runnel.compile.explaining import explained_tree
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.model.columns import Column

_COLUMNS = (Column("k", "int"), Column("j", "int"), Column("v", "int"), Column("f", "double"))
_TABLES = [SourceSchema(f"default.{name}", "delta", _COLUMNS) for name in ("t", "u", "w")]


def _compiled(query: str) -> CompiledQuery:
    return compile_query(query, _TABLES, RuleTyper())


def _is_keyed(compiled: CompiledQuery) -> bool:
    return any(s.name == "keyed" for s in compiled.program(frozenset(compiled.kinds)).steps)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
        "SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.v > t.v)",
        "SELECT t.k, u.v FROM t LEFT JOIN u ON u.k = t.k",
        "SELECT t.k, u.v FROM t FULL JOIN u ON u.k = t.k",
        "SELECT t.k FROM t JOIN (SELECT k, SUM(v) AS s FROM u GROUP BY k) q ON q.k = t.k",
        "SELECT t.k FROM t WHERE v < (SELECT AVG(v) FROM t x WHERE x.k = t.k)",
        "SELECT n, COUNT(*) FROM (SELECT t.k, COUNT(u.v) AS n FROM t LEFT JOIN u ON u.k = t.k GROUP BY t.k) GROUP BY n",
        # One source and its groups, or its windows, used twice.
        "WITH g AS (SELECT k, SUM(v) AS s FROM t GROUP BY k) SELECT x.s FROM g x JOIN g y ON x.k = y.k",
        "WITH w AS (SELECT k, v, RANK() OVER (PARTITION BY k ORDER BY v) AS r FROM t) "
        "SELECT x.v FROM w x JOIN w y ON x.k = y.k AND x.r = y.r + 1",
        # A table without the key, tied to one that has it.
        "SELECT t.k FROM t JOIN w ON w.j = t.j WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    ],
)
def test_ties_and_groupings_keep_the_values_of_a_key_apart(query: str) -> None:
    compiled = _compiled(query)
    assert _is_keyed(compiled)
    assert "for the touched values of t" in explained_tree(compiled.tree, compiled.root)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k > t.k)",
        "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.f = t.f)",
        "SELECT t.k FROM t JOIN (SELECT j, SUM(v) AS s FROM u GROUP BY j) q ON q.s = t.k",
        # One grouping mixes the rows of different keys, and so does a table that nothing ties.
        "SELECT q.j FROM (SELECT t.j, COUNT(*) AS n FROM t LEFT JOIN u ON u.k = t.k GROUP BY t.j) q JOIN w ON w.v = q.n",
        "SELECT t.k FROM t CROSS JOIN w WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
        "SELECT x.k FROM t x FULL JOIN u ON u.k = x.k FULL JOIN w ON w.j = x.j",
        "WITH w AS (SELECT k, v, RANK() OVER (PARTITION BY v ORDER BY k) AS r FROM t) "
        "SELECT x.v FROM w x JOIN w y ON x.k = y.k AND x.r = y.r + 1",
        # A window reads its input once, for both ends.
        "SELECT w.r FROM u JOIN (SELECT k, RANK() OVER (PARTITION BY k ORDER BY v) AS r FROM t) w ON w.k = u.k",
        # One source, or nothing that reads both ends.
        "SELECT n FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) WHERE n > 1",
        "SELECT t.k FROM t JOIN u ON u.k = t.k JOIN w ON w.k = u.k",
    ],
)
def test_what_mixes_values_is_kept_operator_by_operator(query: str) -> None:
    compiled = _compiled(query)
    root_only = "for the touched values" not in explained_tree(compiled.tree, compiled.root)
    assert root_only or not _top_is_keyed(compiled)


def _top_is_keyed(compiled: CompiledQuery) -> bool:
    first = next(line for line in _joins(compiled))
    return "for the touched values" in first


def _joins(compiled: CompiledQuery) -> list[str]:
    lines = explained_tree(compiled.tree, compiled.root).splitlines()
    return [line for line in lines if "Join" in line]


def test_a_source_is_read_once_for_all_that_ask_for_its_rows() -> None:
    compiled = _compiled(
        "SELECT x.k, x.v FROM t x WHERE EXISTS (SELECT 1 FROM t y WHERE y.k = x.k AND y.v <> x.v) "
        "AND NOT EXISTS (SELECT 1 FROM t z WHERE z.k = x.k AND z.v > 3)"
    )
    assert reads_of(compiled.program(frozenset({"default.t"})))["new:default.t"] == 1


def test_an_aggregate_that_did_not_change_is_computed_once_for_both_ends() -> None:
    compiled = _compiled(
        "SELECT k FROM t WHERE v > (SELECT AVG(v) FROM w) AND NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)"
    )
    reads = reads_of(compiled.program(frozenset({"default.u"})))
    assert reads == {
        "change:default.u": 1,
        "new:default.t": 1,
        "new:default.u": 1,
        "new:default.w": 1,
    }
