"""The list of hazards says what proves each of them; nothing in it may be missing or out of date."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kit import faults
from kit.backend import run_step
from kit.duck import connection
from kit.duck_backend import DuckBackend
from kit.step import parse_step

_HERE = Path(__file__).parent
_TESTS = _HERE.parent
_LIST: dict[str, list[dict[str, Any]]] = tomllib.loads((_HERE / "hazards.toml").read_text())
_BY_STEPS = ("joins", "aggregates", "sets_and_subqueries")
# Faults of the laws for several operators at once.
_OF_SEVERAL = {"changed_rows_are_only_new", "only_changed_rows_touch_keys", "null_keys_are_lost"}
_ALL = [(section, entry) for section, entries in _LIST.items() for entry in entries]


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connection()
    yield made
    made.close()


def _defined(path: str) -> set[str]:
    return set(re.findall(r"^def (\w+)\(", (_TESTS / path).read_text(), re.MULTILINE))


def test_every_section_is_there() -> None:
    assert list(_LIST) == [*_BY_STEPS, "delta_changes", "graph", "spark"]
    names = [entry["hazard"] for _, entry in _ALL]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("section", "entry"), _ALL, ids=lambda v: v if isinstance(v, str) else "")
def test_every_hazard_has_its_proof(section: str, entry: dict[str, Any]) -> None:
    assert set(entry) <= {"hazard", "steps", "tests", "fault", "open"}
    assert entry.get("steps") or section not in _BY_STEPS, "a step file is missing"
    assert entry.get("steps") or entry.get("tests") or entry.get("open")
    missing = [s for s in entry.get("steps", []) if not (_HERE / f"{s}.step").exists()]
    for test in entry.get("tests", []):
        path, _, name = test.partition("::")
        if name not in _defined(path):
            missing.append(test)
    assert not missing


@pytest.mark.parametrize(
    "entry", [e for _, e in _ALL if "fault" in e], ids=lambda entry: str(entry["fault"])
)
def test_a_wrong_law_fails_the_first_step_file(
    entry: dict[str, Any], con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    if entry["fault"] not in _OF_SEVERAL:
        faults.operator_by_operator(monkeypatch)
    getattr(faults, entry["fault"])(monkeypatch)
    backend = DuckBackend(con)
    with pytest.raises(AssertionError):
        run_step(parse_step(_HERE / f"{entry['steps'][0]}.step"), backend)
    backend.close()
