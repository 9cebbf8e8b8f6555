"""Generated cases on Spark: many in memory, some through the real lake. More with `make fuzz`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import runnel
from kit.generate.cases import Case, Tally, case
from kit.generate.dice import Draws
from kit.generate.on_lake import check_on_lake
from kit.spark_query import check_on_spark
from runnel.lake.session import worker_session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(0)]

_IN_MEMORY = int(os.environ.get("RUNNEL_FUZZ_SPARK_CASES", "30"))
_ON_LAKE = int(os.environ.get("RUNNEL_FUZZ_LAKE_CASES", "8"))
_IS_RANDOM = os.environ.get("RUNNEL_FUZZ_SEED") == "random"


def test_in_memory(spark: SparkSession, record_property: Callable[[str, object], None]) -> None:
    session = worker_session(spark, {}, adaptive=False)
    tally = _generate(_IN_MEMORY, lambda made, tally: check_on_spark(session, made, tally))
    record_property("tally", str(tally))
    print(tally)


def test_on_the_lake(
    spark: SparkSession,
    tmp_path: Path,
    clean_names: None,
    record_property: Callable[[str, object], None],
) -> None:
    with runnel.connect(tmp_path / "lake", spark=spark) as lake:
        tally = _generate(_ON_LAKE, lambda made, tally: check_on_lake(lake, made, tally))
    record_property("tally", str(tally))
    print(tally)


def _generate(asked: int, check: Callable[[Case, Tally], bool]) -> Tally:
    """Run `check` on generated cases; fails when fewer were checked than asked for."""
    tally = Tally()

    @settings(
        max_examples=asked,
        deadline=None,
        derandomize=not _IS_RANDOM,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    @given(_cases())
    def run(made: Case) -> None:
        if tally.checked < asked and not check(made, tally):
            reject()

    run()
    assert tally.checked >= asked, f"asked for {asked}: {tally}"
    assert tally.moved >= tally.rounds * 0.3, f"most rounds change nothing: {tally}"
    return tally


@st.composite
def _cases(draw: Callable[..., int]) -> Case:
    return case(Draws(draw), draw(st.integers(0, 2)))
