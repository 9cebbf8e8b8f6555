"""Generated queries and change sequences, checked on DuckDB against the query itself.

RUNNEL_FUZZ_CASES sets how many cases are asked for, RUNNEL_FUZZ_SEED=random draws new ones each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

from kit.duck import connection
from kit.generate.cases import Case, Tally, case, check
from kit.generate.dice import Draws

_ASKED = int(os.environ.get("RUNNEL_FUZZ_CASES", "2000"))
_IS_RANDOM = os.environ.get("RUNNEL_FUZZ_SEED") == "random"
# Share of the cases for each depth of nesting.
_SHARES = {0: 0.35, 1: 0.4, 2: 0.2, 3: 0.05}


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connection()
    yield made
    made.close()


@pytest.mark.timeout(0)
@pytest.mark.parametrize("depth", _SHARES)
def test_generated_cases(
    depth: int, con: duckdb.DuckDBPyConnection, record_property: Callable[[str, object], None]
) -> None:
    asked = max(1, round(_ASKED * _SHARES[depth]))
    tally = Tally()

    @settings(
        max_examples=asked,
        deadline=None,
        derandomize=not _IS_RANDOM,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(cases(depth))
    def run(made: Case) -> None:
        if not check(con, made, tally):
            reject()

    run()
    record_property("tally", str(tally))
    print(f"depth {depth}: {tally}")
    assert tally.checked >= asked, f"asked for {asked}: {tally}"
    assert sum(tally.refused.values()) < tally.checked, f"most are refused: {tally}"
    assert tally.moved >= tally.rounds * 0.3, f"most rounds change nothing: {tally}"


@st.composite
def cases(draw: Callable[..., int], depth: int) -> Case:
    return case(Draws(draw), depth)
