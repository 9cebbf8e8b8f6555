"""Generated cases on Spark: some in memory, fewer through the real lake.

A case is a query and one round of changes, several of which share a query.
RUNNEL_FUZZ_SPARK_CASES and RUNNEL_FUZZ_LAKE_CASES set how many are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import runnel
from kit.generate.cases import Tally
from kit.generate.on_lake import check_on_lake
from kit.generate.run import Check, judge, run_rounds
from kit.spark_query import check_on_spark
from runnel.lake.session import worker_session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(0)]

_IN_MEMORY = int(os.environ.get("RUNNEL_FUZZ_SPARK_CASES", "180"))
_ON_LAKE = int(os.environ.get("RUNNEL_FUZZ_LAKE_CASES", "20"))
_SHARES = {0: 0.5, 1: 0.4, 2: 0.1}


def _run(asked: int, check: Check, record: Callable[[str, object], None], moved: float) -> None:
    tally = Tally()
    for depth, share in _SHARES.items():
        run_rounds(max(1, round(asked * share)), depth, check, tally, for_spark=True)
    record("tally", str(tally))
    judge(tally, asked // 8, moved)


def test_in_memory(spark: SparkSession, record_property: Callable[[str, object], None]) -> None:
    session = worker_session(spark, {}, adaptive=False)
    _run(_IN_MEMORY, lambda made, tally: check_on_spark(session, made, tally), record_property, 0.2)


def test_on_the_lake(
    spark: SparkSession,
    tmp_path: Path,
    clean_names: None,
    record_property: Callable[[str, object], None],
) -> None:
    with runnel.connect(tmp_path / "lake", spark=spark) as lake:
        # So few queries that one which sees no change that matters is much of them.
        _run(_ON_LAKE, lambda made, tally: check_on_lake(lake, made, tally), record_property, 0.1)
