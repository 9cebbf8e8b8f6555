"""A chosen part of the step files through the real lake; all of them with `make test-slow`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest
from pyspark.sql import SparkSession

import runnel
from kit.backend import run_step
from kit.lake_backend import LakeBackend
from kit.step import parse_step
from runnel.api import Lake
from runnel.lake import session

pytestmark = pytest.mark.spark

_STEPS = Path(__file__).parent.parent / "steps"
# Upstream traces are plain tables here, so what is refused only over a trace is not refused.
# Spark itself does not run what is in beyond_spark, such as references over two levels.
_ALL = sorted(p for p in _STEPS.rglob("*.step") if p.parent.name != "beyond_spark")
_FILES = [
    path
    for path in _ALL
    if (step := parse_step(path)).refusal is None
    or all(table.kind != "trace" for table in step.tables.values())
]
# What only Spark can judge: a fifth of it, and the rest with the slow tests.
_A_FIFTH = ("as_spark_does", "expressions")
_COMPILED = "aggregate/over_a_join_where_both_sides_change"


def _name(path: Path) -> str:
    return str(path.relative_to(_STEPS).with_suffix(""))


def _first_of_hazards() -> list[str]:
    """The step file that is the first proof of each known hazard."""
    entries = tomllib.loads((_STEPS / "hazards.toml").read_text()).values()
    return [e["steps"][0] for section in entries for e in section if e.get("steps")]


def _chosen() -> set[Path]:
    """Of each folder one file: the first that proves a hazard, else one that taste does not choose."""
    hazards = _first_of_hazards()
    rank = {name: place for place, name in reversed(list(enumerate(hazards)))}
    found = [p for p in _FILES if p.parent.name in _A_FIFTH and crc32(_name(p).encode()) % 5 == 0]
    for folder in {path.parent for path in _FILES} - {path.parent for path in found}:
        files = [path for path in _FILES if path.parent == folder]
        found.append(
            min(files, key=lambda p: (rank.get(_name(p), len(rank)), crc32(_name(p).encode())))
        )
    return set(found)


_CHOSEN = _chosen()


def _case(path: Path) -> object:
    marks = [] if path in _CHOSEN else [pytest.mark.slow]
    return pytest.param(path, id=_name(path), marks=marks)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """One for all files: each has a stream table and sources of its own, and drops them again."""
    with runnel.connect(tmp_path_factory.mktemp("steps") / "lake", spark=spark) as made:
        yield made


def _run(path: Path, lake: Lake) -> None:
    backend = LakeBackend(lake)
    try:
        step = parse_step(path)
        assert run_step(step, backend) > 0
        if step.refusal is None:
            backend.verify()
    finally:
        backend.close()


@pytest.mark.parametrize("path", [_case(path) for path in _FILES])
def test_step(path: Path, lake: Lake) -> None:
    _run(path, lake)


def test_stages_are_compiled_only_when_asked_for(spark: SparkSession) -> None:
    asked = bool(os.environ.get("RUNNEL_TEST_COMPILED"))
    assert (spark.conf.get("spark.sql.codegen.wholeStage") == "true") == asked


def test_with_compiled_stages(
    spark: SparkSession, tmp_path: Path, clean_names: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the product runs: the session of the tests does not compile, which takes longer."""
    compiled = {
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "CODEGEN_ONLY",
    }
    for name, value in compiled.items():
        monkeypatch.setitem(session.WORKER_SETTINGS, name, value)
    with runnel.connect(tmp_path / "lake", spark=spark) as lake:
        with lake._workspace.worker({}, adaptive=False) as worker:
            assert all(worker.conf.get(name) == value for name, value in compiled.items())
        _run(_STEPS / f"{_COMPILED}.step", lake)
