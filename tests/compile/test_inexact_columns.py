"""Which columns may have other last digits: sums of floats and what is computed from them alone."""

from __future__ import annotations

import pytest

from kit.typer import RuleTyper
from runnel.compile.build import SourceSchema
from runnel.compile.inexact_columns import may_be_inexact
from runnel.compile.pipeline import compile_query
from runnel.model.columns import Column

_COLUMNS = (
    Column("k", "int"), Column("x", "double"), Column("d", "decimal(10,2)"), Column("b", "bigint"),
)  # fmt: skip
_SOURCES = [SourceSchema(f"default.{name}", "delta", _COLUMNS) for name in "tu"]


def _marks(query: str, sources: dict[str, frozenset[str]] | None = None) -> str:
    compiled = compile_query(query, _SOURCES, RuleTyper())
    return "".join("~" if mark else "=" for mark in compiled.inexact(sources or {}))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT k, x, x * 2 AS y FROM t", "==="),
        ("SELECT x, SUM(x) AS s, SUM(x) + 1 AS p, COUNT(*) AS n FROM t GROUP BY x", "=~~="),
        ("SELECT k, MIN(x) AS low, MAX(x) AS high, COUNT(DISTINCT x) AS n FROM t GROUP BY k", "===="),
        ("SELECT k, SUM(d) AS s, SUM(b) AS c FROM t GROUP BY k", "==="),
        # Spark adds doubles for it, Runnel divides an exact sum.
        ("SELECT k, AVG(b) AS a, AVG(d) AS e FROM t GROUP BY k", "=~="),
        ("SELECT k, STDDEV(b) AS a, CORR(x, b) AS c, MEDIAN(x) AS m FROM t GROUP BY k", "=~~="),
        ("SELECT DISTINCT x FROM t", "="),
        # Below another operator they are added up in the order of the values.
        ("SELECT x FROM t UNION ALL SELECT SUM(x) FROM u", "="),
        ("SELECT x FROM t UNION ALL SELECT AVG(b) FROM u", "~"),
        ("SELECT t.x, SUM(u.x) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.x", "=~"),
        ("SELECT x, LAG(x) OVER (PARTITION BY k ORDER BY b, x, d) AS l FROM t", "=="),
        ("SELECT x, SUM(x) OVER (PARTITION BY k) AS s FROM t", "=~"),
        ("SELECT x FROM t ORDER BY x, k, d, b LIMIT 3", "="),
        ("SELECT t.x, g.s FROM t JOIN (SELECT k, SUM(x) AS s FROM u GROUP BY k) g ON t.k = g.k", "=="),
    ],
)  # fmt: skip
def test_of_a_compiled_query(query: str, expected: str) -> None:
    assert _marks(query) == expected


def test_what_a_part_adds_up_is_followed() -> None:
    parts = {"default.u": frozenset({"x"})}
    assert _marks("SELECT t.x, u.x AS y, u.k FROM t JOIN u ON t.k = u.k", parts) == "=~="
    assert _marks("SELECT u.x, MAX(u.b) AS b FROM u GROUP BY u.x", parts) == "~="


def test_through_a_recursion() -> None:
    query = (
        "WITH RECURSIVE r(k, x) AS (SELECT k, x FROM u UNION ALL "
        "SELECT t.k, r.x + t.x FROM r JOIN t ON t.k = r.k + 1) SELECT k, x FROM r"
    )
    assert _marks(query) == "=="
    assert _marks(query, {"default.t": frozenset({"x"})}) == "=~"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT k, x FROM t", False),
        ("SELECT * FROM (SELECT x FROM t) LIMIT 3", False),
        ("SELECT x, SUM(x) AS s, s * 2 AS t FROM t GROUP BY x", (False, True, True)),
        ("SELECT x, my_function(x) AS s FROM t", (False, True)),
        ("SELECT x, SUM(x) OVER (ORDER BY k) AS s FROM t", (False, True)),
        # Where a column comes from is not looked for.
        ("SELECT s FROM (SELECT SUM(x) AS s FROM t)", True),
        ("WITH g AS (SELECT SUM(x) AS s FROM t) SELECT s FROM g", True),
        ("SELECT *, SUM(x) OVER (ORDER BY k) AS s FROM t", True),
        ("SELECT x FROM t UNION ALL SELECT SUM(x) FROM t", True),
        ("SELECT a FROM t PIVOT (SUM(x) FOR k IN (1 AS a))", True),
    ],
)
def test_of_a_query_that_is_not_compiled(query: str, expected: tuple[bool, ...] | bool) -> None:
    assert may_be_inexact(query) == expected
