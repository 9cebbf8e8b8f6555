"""Every step file whose program says what rows it needs, with readings that hold no other rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from kit.backend import run_step
from kit.duck import connection
from kit.duck_backend import DuckBackend
from kit.faults import operator_by_operator
from kit.near import NearOnly
from kit.step import parse_step

_HERE = Path(__file__).parent
_FILES = sorted(p for p in _HERE.rglob("*.step") if p.parent.name != "as_spark_does")


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connection()
    yield made
    made.close()


@pytest.fixture(scope="module")
def declared() -> list[str]:
    """The step files whose programs said something."""
    return []


@pytest.mark.parametrize("path", _FILES, ids=lambda p: str(p.relative_to(_HERE).with_suffix("")))
def test_no_other_rows_are_needed(
    path: Path,
    con: duckdb.DuckDBPyConnection,
    declared: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if _run(path, con).seen:
        declared.append(path.stem)
    operator_by_operator(monkeypatch)
    _run(path, con)


def _run(path: Path, con: duckdb.DuckDBPyConnection) -> NearOnly:
    narrow = NearOnly()
    backend = DuckBackend(con, rewrite=narrow)
    try:
        assert run_step(parse_step(path), backend) > 0
    finally:
        backend.close()
    return narrow


def test_many_programs_say_what_they_need(declared: list[str]) -> None:
    assert len(declared) >= 30
