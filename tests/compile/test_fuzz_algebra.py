"""Generated queries and change sequences, checked on DuckDB against the query itself.

A case is one query and one round of changes after which the contents were compared. RUNNEL_FUZZ_CASES
sets how many are asked for, RUNNEL_FUZZ_SEED=random draws new ones each time, a number the same ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import duckdb
import pytest
from hypothesis import HealthCheck, assume, find, given, note, settings
from hypothesis import strategies as st

from kit.duck import connection
from kit.generate.cases import Case, Tally, case, check
from kit.generate.dice import Drawn, Replayed, Seeded
from kit.generate.run import judge, run_rounds
from kit.generate.shrink import shrink

_ASKED = int(os.environ.get("RUNNEL_FUZZ_CASES", "10000"))
# Share of the cases for each depth of nesting.
_SHARES = {0: 0.2, 1: 0.3, 2: 0.3, 3: 0.15, 4: 0.05}
_IS_RANDOM = os.environ.get("RUNNEL_FUZZ_SEED") == "random"

# Run side by side where tests are.
_PARTS = 4
# The least number of different queries in a part; one has up to twenty rounds.
_QUERIES = _ASKED // _PARTS // 12
# Hypothesis takes longer to choose than the rest does, so it makes few.
_DRAWN = 1000 if _IS_RANDOM else 200


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connection()
    yield made
    made.close()


@pytest.mark.timeout(0)
@pytest.mark.parametrize("part", range(_PARTS))
def test_generated_cases(
    part: int, con: duckdb.DuckDBPyConnection, record_property: Callable[[str, object], None]
) -> None:
    tally = Tally()
    for depth, share in _SHARES.items():
        asked = max(1, round(_ASKED * share / _PARTS))
        run_rounds(asked, depth, lambda made, tally: check(con, made, tally), tally, part)
    record_property("tally", str(tally))
    judge(tally, _QUERIES)


@st.composite
def _drawn(draw: st.DrawFn) -> Case:
    dice = Drawn(draw)
    return case(dice, dice.number(0, 2), max_rounds=3)


def test_drawn_cases(
    con: duckdb.DuckDBPyConnection, record_property: Callable[[str, object], None]
) -> None:
    """Cases by Hypothesis: it makes a failing one smaller, and with RUNNEL_FUZZ_SEED=random keeps it."""
    tally = Tally()

    @settings(
        max_examples=_DRAWN,
        derandomize=not _IS_RANDOM,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(made=_drawn())
    def check_drawn(made: Case) -> None:
        note(str(made))
        # What is refused does not count: Hypothesis draws another in its place.
        before = tally.checked
        check(con, made, tally)
        assume(tally.checked > before)

    check_drawn()
    record_property("tally", str(tally))
    assert tally.checked >= _DRAWN
    # What it draws is often small, and then changes nothing.
    judge(tally, _DRAWN // 4, moved=0.1)


def test_hypothesis_makes_a_case_smaller() -> None:
    def is_wanted(made: Case) -> bool:
        return "GROUP BY" in made.query and len(made.rounds) > 1

    smallest = find(_drawn(), is_wanted, settings=settings(derandomize=True, database=None))
    assert len(smallest.rounds) == 2
    # What it cannot take away in one step may stay, a WITH clause that nothing reads for one.
    assert len(smallest.query) < 200


def test_a_failure_is_told_by_a_small_case() -> None:
    dice = Seeded(1)
    made = case(dice, 2)

    def fails(choices: Sequence[int]) -> bool:
        return "SELECT" in case(Replayed(choices), 2).query

    assert str(case(Replayed(dice.choices), 2)) == str(made)
    smallest = case(Replayed(shrink(dice.choices, fails)), 2)
    assert len(smallest.query) < len(made.query) / 2
    assert len(smallest.rounds) == 1
