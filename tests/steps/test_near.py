"""Every step file whose program says what rows it needs, with readings that hold no other rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from zlib import crc32

import duckdb
import pytest

from kit import faults
from kit.backend import run_step
from kit.duck import Table, connection
from kit.duck_backend import DuckBackend
from kit.near import near_only, near_or_all
from kit.step import ON_SPARK, StepFile, parse_step
from kit.typer import RuleTyper
from runnel.compile.pipeline import compile_query
from runnel.compile.program import Program
from runnel.compile.rewrites.quantified import without_quantifiers

_HERE = Path(__file__).parent
_FILES = sorted(p for p in _HERE.rglob("*.step") if p.parent.name not in ON_SPARK)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connection()
    yield made
    made.close()


@pytest.fixture(scope="module")
def declared() -> list[str]:
    """The step files whose programs say what they need."""
    return []


def _case(path: Path) -> object:
    """A third of the files, chosen by nobody; all of them with the slow tests."""
    name = str(path.relative_to(_HERE).with_suffix(""))
    return pytest.param(path, id=name, marks=[pytest.mark.slow] if crc32(name.encode()) % 3 else [])


@pytest.mark.parametrize("path", [_case(path) for path in _FILES])
def test_no_other_rows_are_needed(
    path: Path,
    con: duckdb.DuckDBPyConnection,
    declared: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used = faults.laws_for_several(monkeypatch)
    if _declares(parse_step(path)):
        declared.append(path.stem)
        _run(path, con)
    if used:
        faults.operator_by_operator(monkeypatch)
        if _declares(parse_step(path)):
            _run(path, con)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("path", sorted((_HERE / "by_keys").glob("*.step")), ids=lambda p: p.stem)
def test_small_sources_may_be_read_as_a_whole(
    path: Path, first: int, con: duckdb.DuckDBPyConnection
) -> None:
    _run(path, con, partial(near_or_all, first=first))


def test_many_programs_say_what_they_need(declared: list[str]) -> None:
    assert len(declared) >= 20


@pytest.mark.parametrize(
    ("plant", "name"),
    [
        (faults.a_tie_is_forgotten, "join_inner/a_star_of_which_every_table_changes"),
        (faults.ties_lead_to_changed_rows_only, "by_keys/change_behind_another_table"),
        (faults.near_keys_are_never_null, "by_keys/null_is_a_value_of_the_key"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_a_tie_that_is_wrong_is_found(
    plant: faults.Plant, name: str, con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        _run(_HERE / f"{name}.step", con)


def _declares(file: StepFile) -> bool:
    """Whether a program for a change of everything says what it needs."""
    if file.refusal is not None:
        return False
    schemas = [Table(t.name, t.columns, t.kind).schema for t in file.tables.values()]
    compiled = compile_query(without_quantifiers(file.query), schemas, RuleTyper())
    program = compiled.program(frozenset(compiled.kinds))
    return any(step.near is not None for step in program.steps)


def _run(
    path: Path,
    con: duckdb.DuckDBPyConnection,
    rewrite: Callable[[Program], Program] = near_only,
) -> None:
    backend = DuckBackend(con, rewrite=rewrite)
    try:
        assert run_step(parse_step(path), backend) > 0
    finally:
        backend.close()
