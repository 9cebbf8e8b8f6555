"""A chosen part of the step files through the real lake; all of them with `make test-slow`."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import pytest

from kit.backend import run_step
from kit.lake_backend import LakeBackend
from kit.step import parse_step
from runnel.api import Lake

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
# One file in forty, by its name: the choice does not depend on taste, nor on what other files there
# are. All of `by_keys`, which reads differently on a lake. And those that only Spark can judge.
_FOLDERS = ("as_spark_does", "by_keys")
_ONE_IN = 40


def _is_chosen(path: Path) -> bool:
    name = f"{path.parent.name}/{path.stem}"
    return path.parent.name in _FOLDERS or crc32(name.encode()) % _ONE_IN == 0


def _case(path: Path) -> object:
    marks = [] if _is_chosen(path) else [pytest.mark.slow]
    return pytest.param(path, id=str(path.relative_to(_STEPS).with_suffix("")), marks=marks)


@pytest.mark.parametrize("path", [_case(path) for path in _FILES])
def test_step(path: Path, lake: Lake) -> None:
    backend = LakeBackend(lake)
    try:
        step = parse_step(path)
        assert run_step(step, backend) > 0
        if step.refusal is None:
            backend.verify()
    finally:
        backend.close()
