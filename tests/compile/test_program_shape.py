"""What programs read: no more than the changed sources make necessary, and in polynomial size."""

from __future__ import annotations

from collections import Counter

import pytest

from kit.typer import RuleTyper
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.compile.program import Keep, Program, Step
from runnel.model.columns import Column


def _chain(count: int, kind: str) -> CompiledQuery:
    sources = [
        SourceSchema(f"default.t{i}", "delta", (Column("a", "int"), Column("b", "int")))
        for i in range(count)
    ]
    joins = " ".join(f"{kind} t{i} ON t{i - 1}.b = t{i}.a" for i in range(1, count))
    query = f"SELECT t0.a, t{count - 1}.b FROM t0 {joins}"
    return compile_query(query, sources, RuleTyper())


def _reads(program: Program) -> Counter[str]:
    """How often each source is read, steps that are not materialised counted at each place."""

    def of(step: Step) -> Counter[str]:
        found: Counter[str] = Counter()
        for token in step.reads:
            if not token.startswith("step:"):
                found[token] += 1
            elif (inner := program.step(token.removeprefix("step:"))).keep is Keep.NEVER:
                found += of(inner)
        return found

    total: Counter[str] = Counter()
    for step in program.steps:
        if step.keep is not Keep.NEVER or step is program.output:
            total += of(step)
    return total


@pytest.mark.parametrize("count", [2, 5, 8])
@pytest.mark.parametrize("place", ["first", "last"])
def test_one_changed_leaf_gives_one_term(count: int, place: str) -> None:
    changed = f"default.t{0 if place == 'first' else count - 1}"
    reads = _reads(_chain(count, "JOIN").program(frozenset({changed})))
    assert reads.pop(f"change:{changed}") == 1
    assert f"new:{changed}" not in reads
    assert reads == {f"new:default.t{i}": 1 for i in range(count) if f"default.t{i}" != changed}


@pytest.mark.parametrize("count", [2, 5, 8])
def test_a_term_for_each_changed_leaf_and_no_old_state_at_each_level(count: int) -> None:
    compiled = _chain(count, "JOIN")
    reads = _reads(compiled.program(frozenset(compiled.kinds)))
    assert sum(n for token, n in reads.items() if token.startswith("new:")) == count * (count - 1)


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "FULL JOIN"])
def test_programs_of_long_chains_stay_small(kind: str) -> None:
    compiled = _chain(8, kind)
    reads = _reads(compiled.program(frozenset(compiled.kinds)))
    assert sum(reads.values()) < 3 * 8 * 8


def test_sources_that_did_not_change_leave_no_program() -> None:
    compiled = _chain(3, "JOIN")
    assert compiled.program(frozenset()).steps == ()


def test_programs_are_cached_by_what_changed() -> None:
    compiled = _chain(2, "JOIN")
    changed = frozenset({"default.t0"})
    assert compiled.program(changed) is compiled.program(changed, frozenset({"default.t1"}))
    assert compiled.program(changed) is not compiled.program(changed, changed)
