"""What programs read: no more than the changed sources make necessary, and in polynomial size."""

from __future__ import annotations

import pytest

from kit.reads import reads_of
from kit.typer import RuleTyper
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.model.columns import Column

_COLUMNS = (Column("a", "int"), Column("b", "int"))


def _chain(count: int, kind: str) -> CompiledQuery:
    sources = [SourceSchema(f"default.t{i}", "delta", _COLUMNS) for i in range(count)]
    joins = " ".join(f"{kind} t{i} ON t{i - 1}.b = t{i}.a" for i in range(1, count))
    query = f"SELECT t0.a, t{count - 1}.b FROM t0 {joins}"
    return compile_query(query, sources, RuleTyper())


@pytest.mark.parametrize("count", [2, 5, 8])
@pytest.mark.parametrize("place", ["first", "last"])
def test_one_changed_leaf_gives_one_term(count: int, place: str) -> None:
    changed = f"default.t{0 if place == 'first' else count - 1}"
    reads = reads_of(_chain(count, "JOIN").program(frozenset({changed})))
    assert reads.pop(f"change:{changed}") == 1
    assert f"new:{changed}" not in reads
    assert reads == {f"new:default.t{i}": 1 for i in range(count) if f"default.t{i}" != changed}


@pytest.mark.parametrize("count", [2, 5, 8])
def test_changed_leaves_are_read_at_most_twice_and_no_old_state_at_each_level(count: int) -> None:
    compiled = _chain(count, "JOIN")
    reads = reads_of(compiled.program(frozenset(compiled.kinds)))
    found = [reads[f"new:default.t{i}"] for i in range(count)]
    assert found == _reads_of_changed(count)


@pytest.mark.parametrize("changed", [{0, 1}, {3, 4}, {2, 3, 4}, {7}, set(range(7))])
def test_leaves_that_did_not_change_are_read_once(changed: set[int]) -> None:
    reads = reads_of(_chain(8, "JOIN").program(frozenset(f"default.t{i}" for i in changed)))
    others = {f"new:default.t{i}" for i in range(8) if i not in changed}
    assert {token: reads[token] for token in others} == dict.fromkeys(others, 1)
    assert not any(reads[token.replace("new:", "change:")] for token in others)
    found = [reads[f"new:default.t{i}"] for i in sorted(changed)]
    assert found == _reads_of_changed(len(changed))


def _reads_of_changed(count: int) -> list[int]:
    """Walks meet in the second of a chain: those behind it are read on the way there and back."""
    return [0] if count == 1 else [1 if i in (0, 1, count - 1) else 2 for i in range(count)]


@pytest.mark.parametrize("changed", [{0, 2}, {1, 3}])
def test_a_leaf_between_two_changed_ones_is_read_once(changed: set[int]) -> None:
    program = _chain(4, "JOIN").program(frozenset(f"default.t{i}" for i in changed))
    reads = reads_of(program)
    assert [reads[f"new:default.t{i}"] for i in range(4)] == [1, 1, 1, 1]
    assert "ON TRUE" not in str(program)


def test_of_several_leaves_between_two_changed_ones_one_is_read_once() -> None:
    program = _chain(4, "JOIN").program(frozenset({"default.t0", "default.t3"}))
    reads = reads_of(program)
    assert sorted(reads[f"new:default.t{i}"] for i in range(4)) == [1, 1, 1, 2]
    assert "ON TRUE" not in str(program)


@pytest.mark.parametrize("changed", [{0, 1}, {1, 2}, {2, 3}, {3, 0}])
def test_two_neighbours_of_a_ring_meet_before_they_go_on(changed: set[int]) -> None:
    reads = reads_of(_ring(4).program(frozenset(f"default.t{i}" for i in changed)))
    assert [reads[f"new:default.t{i}"] for i in range(4)] == [1, 1, 1, 1]


@pytest.mark.parametrize("changed", [{0, 2}, {1, 3}])
def test_on_both_ways_round_a_ring_leaves_are_read_once(changed: set[int]) -> None:
    reads = reads_of(_ring(4).program(frozenset(f"default.t{i}" for i in changed)))
    assert [reads[f"new:default.t{i}"] for i in range(4)] == [1, 1, 1, 1]


def _ring(count: int) -> CompiledQuery:
    sources = [SourceSchema(f"default.t{i}", "delta", _COLUMNS) for i in range(count)]
    tables = ", ".join(f"t{i}" for i in range(count))
    ties = " AND ".join(f"t{i}.b = t{(i + 1) % count}.a" for i in range(count))
    return compile_query(f"SELECT t0.a FROM {tables} WHERE {ties}", sources, RuleTyper())


_SPENT = "WITH s AS (SELECT a, SUM(b) AS total FROM t0 GROUP BY a)"


@pytest.mark.parametrize(
    ("query", "most"),
    [
        (f"{_SPENT} SELECT x.a FROM s x JOIN s y ON x.total < y.total", 2),
        (f"{_SPENT} SELECT x.a FROM s x JOIN s y ON x.a = y.a JOIN s z ON x.total = z.total", 2),
        (f"{_SPENT} SELECT a FROM s WHERE total = (SELECT MAX(total) FROM s)", 2),
        (f"{_SPENT} SELECT a FROM s WHERE a > 1 UNION ALL SELECT total FROM s", 1),
        (f"{_SPENT} SELECT x.a FROM s x WHERE EXISTS (SELECT 1 FROM s y WHERE y.total = x.a)", 2),
    ],
)
def test_a_cte_that_is_used_several_times_is_computed_once(query: str, most: int) -> None:
    compiled = compile_query(query, [SourceSchema("default.t0", "delta", _COLUMNS)], RuleTyper())
    program = compiled.program(frozenset({"default.t0"}))
    assert len([s for s in program.steps if "change:default.t0" in s.reads]) == 1
    assert len([s for s in program.steps if "GROUP BY" in s.sql and "⟦step:keys" in s.sql]) == 1
    # Once for the groups that the change touches, and once for all.
    assert reads_of(program)["new:default.t0"] == most


_JOINED = "WITH q AS (SELECT t0.a, t1.b FROM t0 JOIN t1 ON t0.b = t1.a)"
_RANKED = "WITH q AS (SELECT a, b, RANK() OVER (PARTITION BY a ORDER BY b) AS r FROM t0)"


@pytest.mark.parametrize(
    ("query", "reads"),
    [
        # A change of t1 is followed to the keys that t0 has for it.
        (f"{_JOINED} SELECT q.a, g.n FROM q JOIN (SELECT a, COUNT(*) AS n FROM q GROUP BY a) g ON g.a = q.a", [2, 1]),
        (f"{_JOINED} SELECT a FROM q x WHERE EXISTS (SELECT 1 FROM q y WHERE y.a = x.a AND y.b > x.b)", [2, 1]),
        (f"{_RANKED} SELECT x.a, y.b FROM q x JOIN q y ON x.a = y.a AND x.r = y.r + 1", [1, 0]),
        (f"{_RANKED} SELECT a FROM q x WHERE NOT EXISTS (SELECT 1 FROM q y WHERE y.a = x.a AND y.r > x.r)", [1, 0]),
        # Once for the change, and once for the rows that both uses ask for.
        (f"{_JOINED} SELECT x.a, y.b FROM q x JOIN q y ON x.a = y.a AND x.b < y.b", [2, 2]),
        # Nothing but the change.
        (f"{_JOINED} SELECT a FROM q WHERE b = 1 UNION ALL SELECT b FROM q", [1, 1]),
        (f"{_RANKED} SELECT a FROM q WHERE r = 1 UNION ALL SELECT b FROM q WHERE r = 2", [1, 0]),
    ],
)  # fmt: skip
def test_uses_of_a_cte_that_ask_for_the_same_rows_read_them_once(
    query: str, reads: list[int]
) -> None:
    compiled = _of_four(query)
    found = reads_of(compiled.program(frozenset(compiled.kinds)))
    assert [found[f"new:default.t{i}"] for i in range(2)] == reads


def test_rows_that_two_uses_of_a_join_ask_for_are_joined_in_one_step() -> None:
    query = f"{_JOINED} SELECT x.a, y.b FROM q x JOIN q y ON x.a = y.a WHERE x.b = 1 AND y.b = 2"
    steps = _of_four(query).program(frozenset({"default.t0"})).steps
    [joined] = [s for s in steps if s.purpose.startswith("rows that are asked for")]
    assert sum(f"step:{joined.name}" in s.reads for s in steps) == 2


_WITH_OTHERS = f"{_JOINED} SELECT q.a FROM q JOIN t2 ON q.b = t2.a UNION ALL SELECT q.a FROM q JOIN t3 ON q.a = t3.a"


@pytest.mark.parametrize(("changed", "first"), [("t2", "t1"), ("t3", "t0")])
def test_of_a_cte_of_a_join_only_rows_that_meet_a_change_are_joined(
    changed: str, first: str
) -> None:
    """A walk begins with the input that is tied to the change, and goes on to the other."""
    program = _of_four(_WITH_OTHERS).program(frozenset({f"default.{changed}"}))
    met = program.step("met")
    assert met.reads == (f"near:default.{first}", "step:change")
    assert "EXISTS" in met.sql
    reads = reads_of(program)
    assert [reads[f"new:default.t{i}"] for i in range(4)] == [1, 1, 0, 0]


def test_uses_of_a_cte_that_ask_for_other_rows_read_their_own() -> None:
    """Those near a change of t2, and those near one of t3."""
    reads = reads_of(_of_four(_WITH_OTHERS).program(frozenset({"default.t2", "default.t3"})))
    assert [reads[f"new:default.t{i}"] for i in range(4)] == [2, 2, 0, 0]


def _of_four(query: str) -> CompiledQuery:
    names = [f"t{i}" for i in range(4) if f"t{i}" in query]
    sources = [SourceSchema(f"default.{name}", "delta", _COLUMNS) for name in names]
    return compile_query(query, sources, RuleTyper())


def test_what_only_reads_and_filters_is_not_shared() -> None:
    query = "WITH s AS (SELECT a, b FROM t0) SELECT a FROM s WHERE b = 1 UNION ALL SELECT b FROM s"
    compiled = compile_query(query, [SourceSchema("default.t0", "delta", _COLUMNS)], RuleTyper())
    assert compiled.shared == ()


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "FULL JOIN"])
def test_programs_of_long_chains_stay_small(kind: str) -> None:
    compiled = _chain(8, kind)
    reads = reads_of(compiled.program(frozenset(compiled.kinds)))
    assert sum(reads.values()) < 3 * 8 * 8


def test_sources_that_did_not_change_leave_no_program() -> None:
    compiled = _chain(3, "JOIN")
    assert compiled.program(frozenset()).steps == ()


def test_programs_are_cached_by_what_changed() -> None:
    compiled = _chain(2, "JOIN")
    changed = frozenset({"default.t0"})
    assert compiled.program(changed) is compiled.program(changed, frozenset({"default.t1"}))
    assert compiled.program(changed) is not compiled.program(changed, changed)
