"""Generated cases on Spark: some in memory, fewer through the real lake.

RUNNEL_FUZZ_SPARK_CASES and RUNNEL_FUZZ_LAKE_CASES set how many are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import runnel
from kit.generate.on_lake import check_on_lake
from kit.generate.run import run_cases
from kit.spark_query import check_on_spark
from runnel.lake.session import worker_session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(0)]

_IN_MEMORY = int(os.environ.get("RUNNEL_FUZZ_SPARK_CASES", "30"))
_ON_LAKE = int(os.environ.get("RUNNEL_FUZZ_LAKE_CASES", "8"))


def test_in_memory(spark: SparkSession, record_property: Callable[[str, object], None]) -> None:
    session = worker_session(spark, {}, adaptive=False)
    tally = run_cases(
        _IN_MEMORY,
        (0, 2),
        lambda made, tally: check_on_spark(session, made, tally),
        for_spark=True,
    )
    record_property("tally", str(tally))


def test_on_the_lake(
    spark: SparkSession,
    tmp_path: Path,
    clean_names: None,
    record_property: Callable[[str, object], None],
) -> None:
    with runnel.connect(tmp_path / "lake", spark=spark) as lake:
        tally = run_cases(
            _ON_LAKE,
            (0, 2),
            lambda made, tally: check_on_lake(lake, made, tally),
            for_spark=True,
        )
    record_property("tally", str(tally))
