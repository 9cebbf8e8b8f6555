"""Stream tables that read each other, on random graphs with random changes, against plain iteration."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import duckdb
import pytest

from kit.bags import Bag, Row, netted
from kit.cycles import DuckCycle, component_of
from kit.dialect import replace_words
from kit.duck import Table, Weighted, connection
from kit.duck_backend import DuckBackend
from kit.step import Change, TableSpec
from kit.typer import RuleTyper
from runnel.algebra.nodes import Fixpoint, walk
from runnel.compile.cycle_places import refuse_at
from runnel.compile.differentiate.adding_up import adds_up
from runnel.compile.pipeline import compile_query
from runnel.errors import InvalidQuery
from runnel.model.columns import Column

_TABLES = [
    Table("edge", (Column("a", "int"), Column("b", "int"))),
    Table("label", (Column("n", "int"), Column("t", "int"))),
]
_REACH = {
    "reach_a": "SELECT DISTINCT e.a, rb.b FROM edge e JOIN reach_b rb ON e.b = rb.a",
    "reach_b": "SELECT a, b FROM edge UNION SELECT ra.a, e.b FROM reach_a ra JOIN edge e ON ra.b = e.a",
}
_CASES = {
    "reach": _REACH,
    "itself": {"p": "SELECT a, b FROM edge UNION SELECT p.a, e.b FROM p JOIN edge e ON p.b = e.a"},
    "with_itself": {
        "p": "SELECT a, b FROM edge UNION SELECT x.a, y.b FROM p x JOIN p y ON x.b = y.a"
    },
    "three_of_itself": {
        "p": "SELECT a, b FROM edge UNION SELECT x.a, z.b FROM p x JOIN p y ON x.b = y.a JOIN p z ON y.b = z.a"
    },
    "odd_and_even": {
        "odd": "SELECT a, b FROM edge UNION SELECT v.a, e.b FROM even v JOIN edge e ON v.b = e.a",
        "even": "SELECT DISTINCT x.a, y.b FROM odd x JOIN odd y ON x.b = y.a",
    },
    "through_a_bag": {
        "hop": "SELECT r.a, e.b FROM reach r JOIN edge e ON r.b = e.a",
        "reach": "SELECT a, b FROM edge UNION SELECT a, b FROM hop",
    },
    "exists": {
        "good": "SELECT n FROM label WHERE t = 0 UNION SELECT e.a FROM edge e WHERE EXISTS (SELECT 1 FROM good g WHERE g.n = e.b)"
    },
    "in_and_distinct": {
        "good": "SELECT DISTINCT x.n FROM (SELECT n FROM label WHERE t = 0 UNION ALL SELECT a FROM edge WHERE b IN (SELECT n FROM fine)) x",
        "fine": "SELECT n FROM good INTERSECT SELECT n FROM label",
    },
    "inside_a_join": {
        "p": "SELECT DISTINCT l.n, x.b FROM label l JOIN (SELECT a, b FROM edge UNION ALL SELECT n, b FROM p) x ON x.a = l.n OR x.b = l.n"
    },
    "left_join": {
        "p": "SELECT n, t FROM label UNION SELECT e.b, l.t FROM p JOIN edge e ON e.a = p.n LEFT JOIN label l ON l.n = e.b"
    },
    "not_exists_beside": {
        "p": "SELECT a, b FROM edge UNION SELECT x.a, y.b FROM p x JOIN p y ON x.b = y.a WHERE NOT EXISTS (SELECT 1 FROM label l WHERE l.n = x.b)"
    },
    "counts_beside": {
        "p": "SELECT n, CAST(0 AS BIGINT) AS c FROM label UNION SELECT g.b, g.c FROM p JOIN p q ON p.n = q.n "
        "JOIN (SELECT a, b, COUNT(*) AS c FROM edge GROUP BY a, b) g ON g.a = p.n"
    },
    "other_columns": {
        "nodes": "SELECT n, CAST('x' AS STRING) AS s FROM label UNION SELECT w.b, 'y' FROM way w",
        "way": "SELECT DISTINCT e.a, e.b FROM nodes m JOIN edge e ON e.a = m.n",
    },
}
_SEEDS = 2
_ROUNDS = 4


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connection()
    yield made
    made.close()


class _Rows:
    """Tables that change at random."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.size = rng.randint(3, 6)
        self.rows: dict[str, list[Row]] = {
            "edge": [self._row() for _ in range(rng.randint(2, 8))],
            "label": [self._row() for _ in range(3)],
        }

    def change(self) -> dict[str, list[Weighted]]:
        changed = self.rng.sample(list(self.rows), self.rng.choice((1, 1, 2)))
        return {name: self._changes(name) for name in changed}

    def _changes(self, name: str) -> list[Weighted]:
        rows, found = self.rows[name], []
        for _ in range(self.rng.randint(1, 3)):
            if rows and self.rng.random() < 0.6:
                found.append((rows.pop(self.rng.randrange(len(rows))), -1))
            if self.rng.random() < 0.5:
                rows.append(self._row())
                found.append((rows[-1], 1))
        return found

    def _row(self) -> Row:
        values = [self.rng.randrange(self.size) for _ in range(2)]
        return tuple(None if self.rng.random() < 0.05 else v for v in values)


@pytest.mark.parametrize("seed", range(_SEEDS))
@pytest.mark.parametrize("name", _CASES)
def test_random_changes(name: str, seed: int, con: duckdb.DuckDBPyConnection) -> None:
    rows = _Rows(random.Random(f"{name} {seed}"))
    cycle = DuckCycle(con, _CASES[name], _TABLES, rows.rows)
    for _ in range(_ROUNDS):
        cycle.refresh(rows.change())


def test_rows_that_only_support_each_other_go(con: duckdb.DuckDBPyConnection) -> None:
    rows: dict[str, list[Row]] = {"edge": [(1, 2), (2, 3), (3, 2)], "label": []}
    cycle = DuckCycle(con, _CASES["with_itself"], _TABLES, rows)
    rows["edge"].remove((1, 2))
    cycle.refresh({"edge": [((1, 2), -1)]})
    assert cycle.contents(cycle.component.sets[0]) == {(2, 3): 1, (3, 2): 1, (2, 2): 1, (3, 3): 1}


def test_members_that_read_their_rows_once_are_followed_row_by_row(
    con: duckdb.DuckDBPyConnection,
) -> None:
    def is_plain(name: str) -> bool:
        rows: dict[str, list[Row]] = {"edge": [], "label": []}
        tree = DuckCycle(con, _CASES[name], _TABLES, rows).compiled.tree
        return all(adds_up(n.step, n.name) for n in walk(tree) if isinstance(n, Fixpoint))

    assert is_plain("reach")
    assert is_plain("exists")
    assert not is_plain("odd_and_even")


def test_a_member_that_is_no_set_is_kept_apart() -> None:
    component = component_of(_CASES["through_a_bag"], _TABLES)
    assert [(str(m.name), m.is_set) for m in component.members] == [("reach", True), ("hop", False)]
    assert "UNION ALL\nSELECT 1" not in component.recursion()


def test_a_bag_counts_its_rows_from_changes(con: duckdb.DuckDBPyConnection) -> None:
    """Its own query is kept over the set members, whose changes come with those of the base tables."""
    rows = _Rows(random.Random("bag"))
    cycle = DuckCycle(con, _CASES["through_a_bag"], _TABLES, rows.rows)
    reach, hop = cycle.component.members
    beside = DuckBackend(connection(), replace_words)
    beside.create_table(_spec(_TABLES[0], rows.rows["edge"]))
    beside.create_table(_spec(Table("reach", reach.columns, "trace"), [*cycle.contents(reach)]))
    beside.create_stream_table(hop.text)
    seen = Bag()
    for _ in range(8):
        changes, before = rows.change(), cycle.contents(reach)
        cycle.refresh(changes)
        moved = netted([*cycle.contents(reach).items(), *((r, -n) for r, n in before.items())])
        beside.commit([_change("edge", *row) for row in changes.get("edge", [])])
        beside.commit([_change("reach", *row) for row in moved.items()])
        beside.refresh()
        assert beside.contents() == cycle.iterated()["hop"]
        seen |= beside.contents()
    assert max(seen.values()) > 1


def _spec(table: Table, rows: list[Row]) -> TableSpec:
    return TableSpec(table.name, table.columns, table.kind, keyless=True, rows=list(rows))


def _change(table: str, row: Row, weight: int) -> Change:
    return Change(table, row if weight < 0 else None, row if weight > 0 else None)


def test_a_condition_of_one_word_is_no_alias() -> None:
    """Spark reads `FROM (...) WHERE (FALSE)` as a subquery that is called WHERE."""
    flagged = Table("flagged", (Column("n", "int"), Column("flag", "boolean")))
    for query in ("SELECT n FROM flagged WHERE flag", "SELECT n FROM flagged WHERE FALSE"):
        compiled = compile_query(query, [flagged.schema], RuleTyper())
        assert re.search(r"WHERE \(\w+\)", compiled.full()) is None


def test_columns_of_one_type_are_shared() -> None:
    component = component_of(_CASES["other_columns"], _TABLES)
    assert [(c.name, c.type) for c in component.values] == [
        ("v0", "int"), ("v1", "string"), ("v2", "int"),
    ]  # fmt: skip
    nodes, way = component.sets
    assert (component.places(nodes), component.places(way)) == (("v0", "v1"), ("v0", "v2"))


def test_types_are_found_from_the_parts_that_read_no_member() -> None:
    component = component_of(
        {
            "p": "SELECT q.big AS n FROM q UNION SELECT a FROM edge",
            "q": "SELECT DISTINCT CAST(p.n AS BIGINT) AS big FROM p",
        },
        _TABLES,
    )
    assert {str(m.name): m.columns for m in component.members} == {
        "p": (Column("n", "bigint"),),
        "q": (Column("big", "bigint"),),
    }


_REFUSED = {
    "count": ("SELECT a, COUNT(*) AS b FROM p GROUP BY a", r"the aggregate COUNT\(\*\)"),
    "except": ("SELECT a, b FROM edge EXCEPT SELECT a, b FROM p", "EXCEPT"),
    "not_exists": ("SELECT DISTINCT a, b FROM edge e WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.a = e.b)", "NOT EXISTS"),
    "not_in": ("SELECT DISTINCT a, b FROM edge WHERE a NOT IN (SELECT a FROM p)", "NOT IN"),
    "left_join": ("SELECT DISTINCT e.a, p.b FROM edge e LEFT JOIN p ON p.a = e.b", "optional side"),
    "full_join": ("SELECT DISTINCT e.a, p.b FROM edge e FULL JOIN p ON p.a = e.b", "FULL JOIN"),
    "window": ("SELECT DISTINCT a, ROW_NUMBER() OVER (ORDER BY a, b) AS b FROM p", "window"),
    "limit": ("SELECT DISTINCT a, b FROM (SELECT a, b FROM p ORDER BY a, b LIMIT 2) x", "LIMIT"),
    "scalar": ("SELECT DISTINCT a, (SELECT b FROM p) AS b FROM edge", "used as a value"),
    "all": ("SELECT a, b FROM edge INTERSECT ALL SELECT a, b FROM p", "INTERSECT ALL"),
}  # fmt: skip


@pytest.mark.parametrize("name", _REFUSED)
def test_what_is_not_monotone_is_named(name: str) -> None:
    query, words = _REFUSED[name]
    with pytest.raises(InvalidQuery, match=words):
        component_of({"p": f"{query} UNION SELECT a, b FROM edge"}, _TABLES)


def test_the_place_of_what_is_not_monotone() -> None:
    query = "SELECT MIN(a) AS a FROM edge UNION SELECT MAX(p.a) FROM edge e JOIN p ON p.a = e.a"
    error = refuse_at(InvalidQuery("no"), query, "the aggregate MAX", {"default.p"})
    assert error.place == "line 1, column 43: MAX(p.a)"


def test_a_cycle_without_a_set_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="p, q would be counted without end") as caught:
        component_of(
            {"p": "SELECT a FROM edge UNION ALL SELECT a FROM q", "q": "SELECT a FROM p"}, _TABLES
        )
    assert "UNION" in (caught.value.hint or "")


def test_columns_that_nothing_tells_are_refused() -> None:
    with pytest.raises(InvalidQuery, match="the columns of p, q cannot be known"):
        component_of({"p": "SELECT DISTINCT x FROM q", "q": "SELECT DISTINCT x FROM p"}, _TABLES)
