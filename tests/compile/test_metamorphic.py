"""Ways of refreshing that must come to the same: split or at once, one source after the other, back.

RUNNEL_METAMORPHIC_CASES sets how many generated cases are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import duckdb
import pytest

from kit.bags import Bag, Row, netted
from kit.check import Round, compare, refresh
from kit.duck import DuckQuery, DuckSources, Moment, connection
from kit.generate.cases import Case, case, is_too_large
from kit.generate.dice import Seeded
from kit.typer import RuleTyper
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.compile.rewrites.quantified import without_quantifiers
from runnel.errors import NotDifferentiable

_ASKED = int(os.environ.get("RUNNEL_METAMORPHIC_CASES", "80"))
_LARGEST = 12_000
_State = tuple[tuple[Row, ...], ...]
"""The contents of every table at one moment."""


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connection()
    yield made
    made.close()


def _run(
    con: duckdb.DuckDBPyConnection, made: Case, compiled: CompiledQuery, states: Sequence[_State]
) -> Bag:
    """Refresh from state to state; what the table shows in the end."""
    sources = DuckSources(con, made.tables)
    for place, table in enumerate(made.tables):
        moments = [_moment(states, number, place) for number in range(len(states))]
        sources.load(table.schema.key, 0, moments)
    query = DuckQuery(sources, compiled)
    query.set_round(0)
    query.initialize()
    for number in range(1, len(states)):
        query.set_round(number)
        changed = frozenset(
            table.schema.key
            for place, table in enumerate(made.tables)
            if states[number][place] != states[number - 1][place]
        )
        refresh(query, Round(changed), f"state {number}")
    return query.readout()


def _moment(states: Sequence[_State], number: int, place: int) -> Moment:
    rows = list(states[number][place])
    old = list(states[number - 1][place]) if number else rows
    # In this order rows that stay do not cancel here: the program has to net them.
    change = [(row, -1) for row in old] + [(row, 1) for row in rows] if old != rows else []
    return Moment(rows, [(row, 1) for row in rows], change)


def _states(made: Case) -> list[_State]:
    last = len(made.rounds)
    return [
        tuple(tuple(moments[number].contents) for moments in made.moments)
        for number in range(last + 1)
    ]


def _one_by_one(first: _State, last: _State, order: Sequence[int]) -> list[_State]:
    """The way from one state to the other, a table at a time."""
    states, current = [first], list(first)
    for place in order:
        current[place] = last[place]
        states.append(tuple(current))
    return states


@pytest.mark.timeout(0)
def test_every_way_comes_to_the_same(con: duckdb.DuckDBPyConnection) -> None:
    checked = moved = refused = 0
    seed = 0
    while checked < _ASKED:
        seed += 1
        made = case(Seeded(seed), seed % 3, max_rounds=3)
        try:
            schemas = [table.schema for table in made.tables]
            text = without_quantifiers(made.query)
            compiled = compile_query(text, schemas, RuleTyper())
        except NotDifferentiable:
            refused += 1
            continue
        if is_too_large(compiled, _LARGEST):
            refused += 1
            continue
        try:
            moved += _check(con, made, compiled)
        except (duckdb.OutOfRangeException, duckdb.NotImplementedException):
            refused += 1
            continue
        checked += 1
    assert moved >= checked * 0.3, f"most cases change nothing: {moved} of {checked}"
    assert refused < checked, f"most cases are refused: {refused} beside {checked}"


def _check(con: duckdb.DuckDBPyConnection, made: Case, compiled: CompiledQuery) -> bool:
    states = _states(made)
    first, last = states[0], states[-1]
    places = range(len(made.tables))
    start = _run(con, made, compiled, [first])
    at_once = _run(con, made, compiled, [first, last])
    ways = {
        "split into several refreshes": states,
        "one table after the other": _one_by_one(first, last, places),
        "the tables the other way round": _one_by_one(first, last, places[::-1]),
        "there, back and there again": [first, last, first, last],
    }
    for label, way in ways.items():
        compare(_run(con, made, compiled, way), at_once, f"{label}\n{made}")
    back = _run(con, made, compiled, [first, last, first])
    compare(back, start, f"the inverse change does not bring the old contents back\n{made}")
    return netted(at_once.items()) != netted(start.items())
