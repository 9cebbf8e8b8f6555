"""Every step file of this folder, run on DuckDB; but where Spark's own answer is another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from kit.backend import run_step
from kit.duck import connection
from kit.duck_backend import DuckBackend
from kit.faults import laws_for_several, operator_by_operator
from kit.step import ON_SPARK, parse_step

_HERE = Path(__file__).parent
# Spark's own answer, or functions that only Spark has: these run on the lake.
_FILES = sorted(p for p in _HERE.rglob("*.step") if p.parent.name not in ON_SPARK)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connection()
    yield made
    made.close()


@pytest.mark.parametrize("path", _FILES, ids=lambda p: str(p.relative_to(_HERE).with_suffix("")))
def test_step(path: Path, con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    used = laws_for_several(monkeypatch)
    _run(path, con)
    if used:
        # The laws of single operators serve wherever a law for several cannot.
        operator_by_operator(monkeypatch)
        _run(path, con)


def _run(path: Path, con: duckdb.DuckDBPyConnection) -> None:
    backend = DuckBackend(con)
    try:
        assert run_step(parse_step(path), backend) > 0
    finally:
        backend.close()


def test_there_are_step_files() -> None:
    assert len(_FILES) >= 400
