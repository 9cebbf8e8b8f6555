"""Recursive queries over random graphs and random rounds of changes, against DuckDB and plain Python.

Edges of acyclic graphs go from smaller to larger nodes; UNION also runs on graphs with cycles.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest

from kit.bags import Bag, bag
from kit.dialect import replace_words
from kit.duck import connection
from kit.duck_backend import DuckBackend
from kit.step import Change, TableSpec
from runnel.model.columns import Column

_COLUMNS = {
    "edge": (Column("a", "int"), Column("b", "int")),
    "root": (Column("n", "int"),),
    "label": (Column("n", "int"), Column("t", "int")),
}
_WALK = "WITH RECURSIVE w(n, d) AS (SELECT n, 0 FROM root UNION ALL SELECT e.b, w.d + 1 FROM w JOIN edge e ON e.a = w.n) "
_REACH = (
    "WITH RECURSIVE r(n) AS (SELECT n FROM root UNION SELECT e.b FROM r JOIN edge e ON e.a = r.n) "
)
_PAIRS = "WITH RECURSIVE p(a, b) AS (SELECT a, b FROM edge UNION SELECT p.a, e.b FROM p JOIN edge e ON p.b = e.a) "
_ACYCLIC = {
    "walk": _WALK + "SELECT n, d FROM w",
    "walk_filtered": _WALK + "SELECT n * 10 AS m FROM w WHERE d > 0 AND n <> 3",
    "without_depth": "WITH RECURSIVE w AS (SELECT n FROM root UNION ALL SELECT e.b FROM edge e, w WHERE e.a = w.n) SELECT n FROM w",
    "two_hops": "WITH RECURSIVE w AS (SELECT n FROM root UNION ALL SELECT f.b FROM w JOIN edge e ON e.a = w.n JOIN edge f ON e.b = f.a) SELECT n FROM w",
    "grouped": _WALK + "SELECT n, COUNT(*) AS c, MIN(d) AS lo FROM w GROUP BY n",
    "joined": _WALK + "SELECT w.n, w.d, l.t FROM w JOIN label l ON w.n = l.n",
    "left_joined": _WALK + "SELECT l.n, l.t, w.d FROM label l LEFT JOIN w ON w.n = l.n",
    "distinct": _WALK + "SELECT DISTINCT n FROM w",
    "twice": _WALK + "SELECT x.n, y.d FROM w x JOIN w y ON x.n = y.n AND x.d < y.d",
    "step_left_join": "WITH RECURSIVE w(n, t) AS (SELECT n, 0 FROM root UNION ALL SELECT e.b, l.t FROM w JOIN edge e ON e.a = w.n "
    "LEFT JOIN label l ON l.n = e.b) SELECT n, t FROM w",
    "step_not_exists": "WITH RECURSIVE w(n) AS (SELECT n FROM root UNION ALL SELECT e.b FROM w JOIN edge e ON e.a = w.n "
    "WHERE NOT EXISTS (SELECT 1 FROM label l WHERE l.n = e.b)) SELECT n FROM w",
    "step_joins_groups": "WITH RECURSIVE w(n, k) AS (SELECT n, CAST(0 AS BIGINT) FROM root UNION ALL "
    "SELECT g.b, w.k + g.c FROM w JOIN (SELECT a, b, COUNT(*) AS c FROM edge GROUP BY a, b) g ON g.a = w.n) SELECT n, k FROM w",
    "step_labelled": "WITH RECURSIVE w(n, t) AS (SELECT n, 0 FROM root UNION ALL SELECT e.b, l.t FROM w JOIN edge e ON e.a = w.n "
    "JOIN label l ON l.n = e.b) SELECT n, t FROM w",
}
_CYCLIC = {
    "reach": _REACH + "SELECT n FROM r",
    "reach_filtered": _REACH + "SELECT n + 1 AS m FROM r WHERE n > 1",
    "pairs": _PAIRS + "SELECT a, b FROM p",
    "pairs_from_one": _PAIRS + "SELECT b FROM p WHERE a = 1",
    "grouped": _PAIRS + "SELECT a, COUNT(*) AS c FROM p GROUP BY a",
    "not_reached": _REACH
    + "SELECT l.n, l.t FROM label l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.n = l.n)",
    "joined": _PAIRS + "SELECT p.a, l.t FROM p JOIN label l ON l.n = p.b",
    "with_itself": _PAIRS + "SELECT x.a FROM p x JOIN p y ON x.a = y.b AND x.b = y.a",
    "two_branches": "WITH RECURSIVE r(n) AS (SELECT n FROM root UNION SELECT x.b FROM (SELECT e.b FROM r JOIN edge e ON e.a = r.n) x) SELECT n FROM r",
    "one_after_the_other": "WITH RECURSIVE r(n) AS (SELECT n FROM root UNION SELECT e.b FROM r JOIN edge e ON e.a = r.n), "
    "s(n) AS (SELECT r.n FROM r JOIN label l ON l.n = r.n UNION SELECT e.a FROM s JOIN edge e ON e.b = s.n) SELECT n FROM s",
    "within_the_reached": "WITH RECURSIVE r(n) AS (SELECT n FROM root UNION SELECT e.b FROM r JOIN edge e ON e.a = r.n), "
    "s(n) AS (SELECT n FROM label UNION SELECT e.a FROM s JOIN edge e ON e.b = s.n JOIN r ON r.n = e.a) SELECT n FROM s",
    "step_exists": "WITH RECURSIVE r(n) AS (SELECT n FROM root UNION SELECT e.b FROM r JOIN edge e ON e.a = r.n "
    "WHERE EXISTS (SELECT 1 FROM label l WHERE l.n = e.b AND l.t > 0)) SELECT n FROM r",
    "step_labelled": "WITH RECURSIVE r(n, t) AS (SELECT n, 0 FROM root UNION SELECT e.b, l.t FROM r JOIN edge e ON e.a = r.n "
    "JOIN label l ON l.n = e.b) SELECT n, t FROM r",
    "bounded_depth": "WITH RECURSIVE w(n, d) AS (SELECT n, 0 FROM root UNION ALL SELECT e.b, w.d + 1 FROM w JOIN edge e ON e.a = w.n "
    "WHERE w.d < 3) SELECT n, d FROM w",
    "union_all_above": _REACH + "SELECT n FROM r UNION ALL SELECT b FROM edge",
}
_CASES = [("acyclic", n) for n in _ACYCLIC] + [("cyclic", n) for n in _CYCLIC]
_SEEDS = 2
_ROUNDS = 4


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connection()
    yield made
    made.close()


class _Graph:
    """Tables that change at random."""

    def __init__(self, rng: random.Random, *, cyclic: bool) -> None:
        self.rng = rng
        self.cyclic = cyclic
        self.size = rng.randint(3, 6)
        self.rows: dict[str, list[tuple[int | None, ...]]] = {name: [] for name in _COLUMNS}
        for name, count in (("edge", rng.randint(0, 8)), ("root", 1), ("label", 3)):
            for _ in range(count):
                self.rows[name].append(self._row(name))

    def changes(self) -> list[Change]:
        found: list[Change] = []
        for name in self.rng.sample(list(_COLUMNS), self.rng.choice((1, 1, 2, 3))):
            found += [self._change(name) for _ in range(self.rng.randint(1, 3))]
        return found

    def _change(self, name: str) -> Change:
        rows = self.rows[name]
        kind = self.rng.choice(("insert", "delete", "delete", "update")) if rows else "insert"
        old = rows.pop(self.rng.randrange(len(rows))) if kind != "insert" else None
        new = self._row(name) if kind != "delete" else None
        if new is not None:
            rows.append(new)
        return Change(name, old, new)

    def _row(self, name: str) -> tuple[int | None, ...]:
        values = [self.rng.randrange(self.size) for _ in _COLUMNS[name]]
        if name == "edge" and not self.cyclic:
            low, high = sorted(self.rng.sample(range(self.size), 2))
            return (low, high)
        return tuple(None if self.rng.random() < 0.05 else v for v in values)


@pytest.mark.parametrize(("kind", "name"), _CASES, ids=str)
def test_random_rounds(kind: str, name: str, con: duckdb.DuckDBPyConnection) -> None:
    query = (_ACYCLIC if kind == "acyclic" else _CYCLIC)[name]
    for seed in range(_SEEDS):
        _check(con, query, random.Random(f"{kind} {name} {seed}"), cyclic=kind == "cyclic")


def _check(con: duckdb.DuckDBPyConnection, query: str, rng: random.Random, *, cyclic: bool) -> None:
    graph = _Graph(rng, cyclic=cyclic)
    backend = DuckBackend(con, replace_words)
    source = rng.choice(("delta", "delta", "trace"))
    for name, columns in _COLUMNS.items():
        spec = TableSpec(name, columns, source, keyless=True, rows=list(graph.rows[name]))
        backend.create_table(spec)
    try:
        backend.create_stream_table(query)
        for _ in range(_ROUNDS):
            backend.commit(graph.changes())
            backend.refresh()
            expected = _in_python(query, graph)
            assert expected is None or backend.contents() == expected
    finally:
        backend.close()


def _in_python(query: str, graph: _Graph) -> Bag | None:
    """The answer without SQL, for the two plainest queries."""
    edges = [(a, b) for a, b in graph.rows["edge"] if a is not None]
    roots = [n for (n,) in graph.rows["root"]]
    if query == _ACYCLIC["walk"]:
        found: list[tuple[int | None, int]] = []
        last: list[tuple[int | None, int]] = [(n, 0) for n in roots]
        while last:
            found += last
            last = [(b, d + 1) for n, d in last for a, b in edges if a == n]
        return bag(found)
    if query == _CYCLIC["reach"]:
        reached, todo = set(roots), list(roots)
        while todo:
            node = todo.pop()
            for b in {b for a, b in edges if a == node} - reached:
                reached.add(b)
                todo.append(b)
        return Counter((n,) for n in reached)
    return None
