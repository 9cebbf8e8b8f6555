"""The operator tree and the change program of representative queries, as text; `pytest tests/compile --rewrite` renews them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.typer import RuleTyper
from runnel.algebra.printing import print_tree
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.model.columns import Column

_FOLDER = Path(__file__).parents[1] / "fixtures" / "programs"
_SOURCES = {
    "orders": "id bigint, cust int, status string, amount decimal(12,2)",
    "customers": "id int, name string, region int",
    "regions": "id int, name string",
}
_QUERIES = {
    "filter": "SELECT id, amount FROM orders WHERE status = 'open'",
    "inner_join": "SELECT o.id, c.name FROM orders o JOIN customers c ON o.cust = c.id",
    "three_way_join": "SELECT o.id, c.name, r.name AS region FROM orders o JOIN customers c ON o.cust = c.id "
    "JOIN regions r ON c.region = r.id WHERE r.name <> 'x'",
    "self_join": "SELECT a.id AS a, b.id AS b FROM orders a JOIN orders b ON a.cust = b.cust AND a.id < b.id",
    "left_join": "SELECT c.name, o.id FROM customers c LEFT JOIN orders o ON c.id = o.cust",
    "full_join": "SELECT c.name, r.name AS region FROM customers c FULL JOIN regions r ON c.region = r.id",
    "union_all": "SELECT id, name FROM customers UNION ALL SELECT id, name FROM regions",
    "union": "SELECT name FROM customers UNION SELECT name FROM regions",
    "distinct": "SELECT DISTINCT cust, status FROM orders",
    "aggregate": "SELECT cust, COUNT(*) AS n, SUM(amount) AS total, AVG(amount) AS mean FROM orders GROUP BY cust",
    "deviation": "SELECT cust, STDDEV(amount) AS s, COUNT(amount) AS n FROM orders GROUP BY cust",
    "min_max": "SELECT cust, MIN(amount) AS lo, MAX(amount) AS hi FROM orders GROUP BY cust",
    "global_aggregate": "SELECT COUNT(*) AS n, MAX(amount) AS hi FROM orders WHERE status = 'open'",
    "having": "SELECT cust, SUM(amount) AS total FROM orders GROUP BY cust HAVING COUNT(*) > 1",
    "count_distinct": "SELECT cust, COUNT(DISTINCT status) AS n FROM orders GROUP BY cust",
    "aggregate_over_join": "SELECT c.region, SUM(o.amount) FILTER (WHERE o.status = 'open') AS total "
    "FROM orders o JOIN customers c ON o.cust = c.id GROUP BY c.region",
    "lateral_view": "SELECT id, word FROM regions LATERAL VIEW OUTER explode(split(name, ' ')) w AS word WHERE id > 1",
    "words_counted": "SELECT word, COUNT(*) AS n FROM (SELECT explode(split(name, ' ')) AS word FROM regions) GROUP BY word",
    "pivot": "SELECT * FROM (SELECT cust, status, amount FROM orders) PIVOT (SUM(amount) AS total, COUNT(*) AS n "
    "FOR status IN ('open', 'done'))",
    "unpivot": "SELECT * FROM customers UNPIVOT (number FOR kind IN (id, region))",
    "values": "SELECT o.id, v.name FROM orders o JOIN VALUES ('open', 'is open'), ('done', NULL) AS v(status, name) "
    "ON o.status = v.status",
    "join_of_aggregate": "SELECT c.name, t.total FROM customers c JOIN "
    "(SELECT cust, SUM(amount) AS total FROM orders GROUP BY cust) t ON c.id = t.cust",
    "cte_used_twice": "WITH spent AS (SELECT cust, SUM(amount) AS total FROM orders GROUP BY cust) SELECT c.name, s.total "
    "FROM customers c JOIN spent s ON c.id = s.cust WHERE s.total = (SELECT MAX(total) FROM spent)",
    "cte_of_a_join_used_twice": "WITH j AS (SELECT o.id, c.name, c.region FROM orders o JOIN customers c ON o.cust = c.id) "
    "SELECT id FROM j WHERE region = 1 UNION ALL SELECT id FROM j WHERE name = 'x'",
    "checked_scalar_subquery": "SELECT c.id, (SELECT r.name FROM regions r WHERE r.id = c.region) AS region FROM customers c",
    "recursion_union_all": "WITH RECURSIVE r(id, depth) AS (SELECT id, 0 FROM regions UNION ALL "
    "SELECT c.id, r.depth + 1 FROM r JOIN customers c ON c.region = r.id) SELECT id, depth FROM r",
    "recursion_union": "WITH RECURSIVE r(id) AS (SELECT id FROM regions UNION SELECT c.id FROM r JOIN customers c ON c.region = r.id) SELECT id FROM r",
}


@pytest.mark.parametrize("name", _QUERIES)
def test_program(name: str, rewrite: bool) -> None:
    path = _FOLDER / f"{name}.sql"
    text = _printed(_QUERIES[name])
    if rewrite:
        path.write_text(text)
    assert text == path.read_text(), "run pytest tests/compile --rewrite and read the difference"


def test_no_golden_file_is_left_over() -> None:
    assert {p.stem for p in _FOLDER.glob("*.sql")} == set(_QUERIES)


def _printed(query: str) -> str:
    compiled = compile_query(query, _sources(query), RuleTyper())
    program = compiled.program(frozenset(compiled.kinds))
    parts = [query, print_tree(compiled.tree), _stored(compiled), str(program)]
    return "\n\n".join([*(_comment(p) for p in parts[:3]), parts[3]]) + "\n"


def _sources(query: str) -> list[SourceSchema]:
    return [
        SourceSchema(f"default.{name}", "delta", _columns(text))
        for name, text in _SOURCES.items()
        if name in query
    ]


def _columns(text: str) -> tuple[Column, ...]:
    return tuple(Column(*part.split(" ")) for part in text.split(", "))


def _stored(compiled: CompiledQuery) -> str:
    layout = compiled.layout
    lines = ["stored  " + ", ".join(f"{c.name} {c.type}" for c in layout.stored)]
    lines += ["visible " + ", ".join(f"{c.name} = {sql}" for c, sql in layout.visible)]
    return "\n".join(lines + ([f"where   {layout.visible_when}"] if layout.visible_when else []))


def _comment(text: str) -> str:
    return "\n".join(f"-- {line}" for line in text.splitlines())
