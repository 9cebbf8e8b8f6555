"""Comparisons that Spark makes by padding, and that a change query would make as they are."""

from __future__ import annotations

import pytest

from kit.typer import RuleTyper
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import compile_query
from runnel.errors import NotDifferentiable
from runnel.model.columns import Column

_COLUMNS = (Column("id", "int"), Column("c", "string"), Column("v", "string"))
_SOURCES = [
    SourceSchema("default.t", "delta", _COLUMNS, frozenset({"c"})),
    SourceSchema("default.u", "delta", _COLUMNS),
]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t WHERE C = 'p'",
        "SELECT id FROM t WHERE 'p' < (t.c)",
        "SELECT id FROM t WHERE NOT c <=> v",
        "SELECT id FROM t WHERE c IN ('p', 'q')",
        "SELECT id FROM t WHERE (id, c) IN ((1, 'p'))",
        "SELECT id FROM t WHERE c BETWEEN 'a' AND 'p'",
        "SELECT CASE c WHEN 'p' THEN 1 END AS x FROM t",
        "SELECT decode(c, 'p', 1) AS y FROM t",
        "SELECT equal_null(c, 'p') AS x FROM t",
        "SELECT t.id FROM t JOIN u ON t.c = u.v",
        "SELECT t.id FROM t JOIN u USING (c)",
        "SELECT v FROM t NATURAL JOIN u",
        "SELECT k FROM (SELECT c AS j FROM t) AS s(k) WHERE k = 'p'",
        "SELECT k FROM (SELECT j AS k FROM (SELECT c AS j FROM t)) WHERE k = 'p'",
        "WITH q(k) AS (SELECT c FROM t) SELECT k FROM q WHERE k > 'p'",
        "SELECT id FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.c = u.v)",
        "SELECT c, COUNT(*) AS n FROM t GROUP BY c HAVING c <> 'p'",
    ],
)
def test_refused(query: str) -> None:
    with pytest.raises(NotDifferentiable, match=r"CHAR\(n\)") as caught:
        compile_query(query, _SOURCES, RuleTyper())
    assert caught.value.place
    assert "rtrim" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT c, COUNT(*) AS n, MAX(c) AS m FROM t WHERE id > 1 GROUP BY c",
        "SELECT DISTINCT c FROM t WHERE rtrim(c) = 'p'",
        "SELECT CASE WHEN id = 1 THEN c END AS x FROM t WHERE v = 'p'",
        "SELECT t.id, t.c FROM t JOIN u ON t.v = u.v",
        "SELECT id FROM u WHERE c = 'p'",
    ],
)
def test_taken(query: str) -> None:
    sources = _SOURCES[1:] if " t" not in query else _SOURCES
    assert compile_query(query, sources, RuleTyper())
