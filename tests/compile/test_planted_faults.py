"""Faults planted in the laws: a fuzzer that would not find them proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from kit.check import Mismatch
from kit.duck import connection
from kit.generate.cases import Tally, case, check
from kit.generate.dice import Seeded
from runnel.compile.differentiate import aggregate, linear, root_aggregate, semi_join
from runnel.compile.differentiate.emitter import Emitter
from runnel.compile.differentiate.state import Kind

_TRIES = 400


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connection()
    yield made
    made.close()


def _new_for_old(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Emitter, "old", Emitter.new)


def _partners_never_change(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(semi_join, "_partners_before", lambda *args: args[1])


def _padding_never_flips(patch: pytest.MonkeyPatch) -> None:
    real = semi_join._touched

    def none_touched(emitter: Emitter, *args: Any) -> str | None:
        name = real(emitter, *args)
        if name is not None:
            step = emitter.steps[name]
            emitter.steps[name] = replace(step, sql=f"{step.sql} AND FALSE")
        return name

    patch.setattr(semi_join, "_touched", none_touched)


def _traces_read_as_consolidated(patch: pytest.MonkeyPatch) -> None:
    real = linear.new_scan
    patch.setattr(linear, "new_scan", lambda *args: replace(real(*args), is_unit=True))


def _extremes_never_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(root_aggregate, "_hits", lambda *_: None)


def _nulls_counted(patch: pytest.MonkeyPatch) -> None:
    real = root_aggregate.additive_sql

    def counted(column: Any, weight: str | None) -> str:
        return real(
            replace(column, kind=Kind.ROWS) if column.kind is Kind.COUNT else column, weight
        )

    patch.setattr(root_aggregate, "additive_sql", counted)


def _old_groups_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = aggregate.both_ends
    patch.setattr(
        aggregate, "both_ends", lambda *args: real(*args).replace("-__w AS __o", "__w AS __o")
    )


@pytest.mark.parametrize(
    "plant",
    [
        _new_for_old,
        _partners_never_change,
        _padding_never_flips,
        _traces_read_as_consolidated,
        _extremes_never_lost,
        _nulls_counted,
        _old_groups_forgotten,
    ],
    ids=lambda plant: plant.__name__.strip("_"),
)
def test_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    con: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    with pytest.raises(Mismatch) as found:
        _check_many(con)
    assert not isinstance(found.value.__cause__, duckdb.Error), "the plant broke the SQL"


def _check_many(con: duckdb.DuckDBPyConnection) -> None:
    tally = Tally()
    for seed in range(_TRIES):
        check(con, case(Seeded(seed), 1), tally)
