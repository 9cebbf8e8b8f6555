"""Faults planted in the laws: a fuzzer that would not find them proves nothing."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from kit import faults
from kit.check import Mismatch
from kit.duck import connection
from kit.faults import Plant
from kit.generate.cases import Tally, case, check
from kit.generate.dice import Seeded

_TRIES = 4_000


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connection()
    yield made
    made.close()


@pytest.mark.parametrize(
    "plant",
    [
        faults.new_for_old,
        faults.pairs_of_changes_not_counted,
        faults.partners_never_change,
        faults.padding_never_flips,
        faults.traces_read_as_consolidated,
        faults.copies_are_one_row,
        faults.every_deleted_copy_is_the_last,
        faults.extremes_never_lost,
        faults.nulls_counted,
        faults.old_groups_forgotten,
        faults.groups_that_fail_are_forgotten,
        faults.partitions_that_lost_rows_forgotten,
    ],
    ids=lambda plant: plant.__name__,
)
def test_planted_fault_is_found(
    plant: Plant, con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(Mismatch) as found:
        _check_many(con)
    assert not isinstance(found.value.__cause__, duckdb.Error), "the plant broke the SQL"


def _check_many(con: duckdb.DuckDBPyConnection) -> None:
    tally = Tally()
    for seed in range(_TRIES):
        check(con, case(Seeded(seed), 1), tally)
