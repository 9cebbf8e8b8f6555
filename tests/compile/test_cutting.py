"""Groupings cut out of a query: which they are, and what stands in their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from compile.test_tpch import _schema, _Typer
from runnel.compile.build import SourceSchema
from runnel.compile.cutting import inner_groupings, read_from_tables
from runnel.compile.pipeline import compile_query
from runnel.compile.sources import source_names
from runnel.model.names import TableName

_TPCH = Path(__file__).parents[2] / "bench" / "tpch"
_KNOWN = {
    "default.t": {"k": "int", "x": "int", "n": "int"},
    "default.u": {"k": "int", "big": "bigint", "y": "int"},
}
_TABLE = TableName("default", "__part_1")


def _cut(query: str) -> tuple[list[str], str]:
    groupings = inner_groupings(query, _KNOWN)
    tables = {g: TableName("default", f"__part_{i}") for i, g in enumerate(groupings, 1)}
    return list(groupings), read_from_tables(query, _KNOWN, tables)


def test_a_subquery_of_from() -> None:
    query = (
        "SELECT u.y, s.n FROM u JOIN (SELECT k, SUM(x) AS n FROM t GROUP BY k) AS s ON u.k = s.k"
    )
    groupings, text = _cut(query)
    assert groupings == ["SELECT k, SUM(x) AS n FROM t GROUP BY k"]
    assert text == (
        "SELECT u.y, s.n FROM u JOIN (SELECT `k` AS `k`, `n` AS `n` FROM `default`.`__part_1` AS "
        "__part) AS s ON u.k = s.k"
    )


@pytest.mark.parametrize("name", ["q02", "q11", "q13", "q15", "q17", "q18", "q20", "q22"])
def test_tpch(name: str) -> None:
    query = (_TPCH / f"{name}.sql").read_text()
    schemas = [_schema(source.name) for source in source_names(query)]
    known = {s.key: {c.name.lower(): c.type for c in s.columns} for s in schemas}
    groupings = inner_groupings(query, known)
    assert len(groupings) == 1
    part = compile_query(
        groupings[0], [_schema(n.name) for n in source_names(groupings[0])], _Typer()
    )
    assert part.root.state is not None
    text = read_from_tables(query, known, {groupings[0]: _TABLE})
    read = SourceSchema(_TABLE.key, "trace", part.layout.columns)
    left = [read if n.key == _TABLE.key else _schema(n.name) for n in source_names(text)]
    compile_query(text, left, _Typer())


_NOT_TAKEN = {
    "the whole query": "SELECT k, SUM(x) FROM t GROUP BY k",
    "a CTE is named": "WITH c AS (SELECT * FROM t) SELECT * FROM u, (SELECT k, COUNT(*) AS c FROM c "
    "GROUP BY k) AS s",
    "a column without a name": "SELECT * FROM u JOIN (SELECT k, SUM(x) FROM t GROUP BY k) AS s ON u.k = s.k",
    "only whether it is there": "SELECT * FROM u WHERE k IN (SELECT DISTINCT k FROM t)",
    "a limit": "SELECT * FROM u, (SELECT k, SUM(x) AS s FROM t GROUP BY k ORDER BY s LIMIT 3) AS s",
    "a window": "SELECT * FROM u, (SELECT k, SUM(x) AS s, RANK() OVER (ORDER BY SUM(x)) AS r FROM t "
    "GROUP BY k) AS s",
    "two names alike": "SELECT 1 FROM u, (SELECT k, SUM(x) AS k FROM t GROUP BY t.k) AS s",
}


@pytest.mark.parametrize("query", _NOT_TAKEN.values(), ids=_NOT_TAKEN)
def test_not_taken(query: str) -> None:
    assert inner_groupings(query, _KNOWN) == ()


def test_only_the_innermost_is_taken() -> None:
    query = (
        "SELECT * FROM u JOIN (SELECT s, COUNT(*) AS n FROM (SELECT k, SUM(x) AS s FROM t GROUP BY k) "
        "AS i GROUP BY s) AS o ON u.k = o.n"
    )
    assert _cut(query)[0] == ["SELECT k, SUM(x) AS s FROM t GROUP BY k"]


def test_what_is_used_twice_is_one() -> None:
    part = "(SELECT k, SUM(x) AS s FROM t GROUP BY k)"
    groupings, text = _cut(f"SELECT * FROM {part} AS a JOIN {part} AS b ON a.s = b.k")
    assert len(groupings) == 1
    assert text.count("__part_1") == 2


def test_a_value_by_its_place() -> None:
    query = "SELECT * FROM u WHERE y > (SELECT AVG(x) FROM t) AND y IN (SELECT MAX(x) FROM t GROUP BY k)"
    groupings, text = _cut(query)
    assert groupings == [
        "SELECT AVG(x) AS _c0 FROM t", "SELECT MAX(x) AS _c0 FROM t GROUP BY k",
    ]  # fmt: skip
    assert "y > (SELECT `_c0` AS `_c0` FROM `default`.`__part_1` AS __part)" in text


def test_a_correlated_aggregate_is_looked_up() -> None:
    query = "SELECT * FROM u WHERE y < (SELECT 2 * SUM(t.x) + COUNT(*) FROM t WHERE t.k = u.k AND t.n > 0)"
    groupings, text = _cut(query)
    assert groupings == [
        "SELECT t.k AS __k0, SUM(t.x) AS __a0, COUNT(*) AS __a1 FROM t WHERE t.n > 0 GROUP BY t.k"
    ]
    assert text == (
        "SELECT * FROM u WHERE y < (SELECT 2 * MAX(__part.__a0) + COALESCE(MAX(__part.__a1), CAST(0 "
        "AS BIGINT)) FROM `default`.`__part_1` AS __part WHERE __part.__k0 = u.k)"
    )


_LEFT_AS_IT_IS = {
    "two types": "SELECT * FROM u WHERE y < (SELECT SUM(x) FROM t WHERE t.k = u.big)",
    "not equal": "SELECT * FROM u WHERE y < (SELECT SUM(x) FROM t WHERE t.k < u.k)",
    "an outer value inside": "SELECT * FROM u WHERE y < (SELECT SUM(x + u.y) FROM t WHERE t.k = u.k)",
    "not known of no rows": "SELECT * FROM u WHERE y < (SELECT FIRST(x) FROM t WHERE t.k = u.k)",
    "no plain table": "SELECT * FROM (SELECT k + 1 AS k, y FROM u) AS u WHERE y < (SELECT SUM(x) FROM t "
    "WHERE t.k = u.k)",
}


@pytest.mark.parametrize("query", _LEFT_AS_IT_IS.values(), ids=_LEFT_AS_IT_IS)
def test_a_correlated_aggregate_that_is_not_a_lookup(query: str) -> None:
    """It is told apart when it is compiled alone: its names mean nothing there."""
    assert all(".k" in g for g in inner_groupings(query, _KNOWN))
    assert not any("__k" in g for g in inner_groupings(query, _KNOWN))
