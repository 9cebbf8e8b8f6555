"""Generated queries and change sequences, checked on DuckDB against the query itself.

RUNNEL_FUZZ_CASES sets how many cases are asked for, RUNNEL_FUZZ_SEED=random draws new ones each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import duckdb
import pytest

from kit.duck import connection
from kit.generate.cases import check
from kit.generate.run import run_cases

_ASKED = int(os.environ.get("RUNNEL_FUZZ_CASES", "2000"))
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
    tally = run_cases(asked, (depth, depth), lambda made, tally: check(con, made, tally))
    record_property("tally", str(tally))
