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
from kit.generate.cases import Case, Tally
from kit.generate.on_lake import check_on_lake
from kit.generate.run import Check, judge, run_rounds
from kit.spark_query import check_on_spark
from runnel.lake.session import worker_session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(0)]

_IN_MEMORY = int(os.environ.get("RUNNEL_FUZZ_SPARK_CASES", "180"))
_ON_LAKE = int(os.environ.get("RUNNEL_FUZZ_LAKE_CASES", "20"))
# Of one query; fewer than on DuckDB, so that there are more queries.
_ROUNDS = 6
_SHARES = {0: 0.4, 1: 0.35, 2: 0.2, 3: 0.05}


def _run(
    asked: int, distinct: int, check: Check, record: Callable[[str, object], None], moved: float
) -> None:
    tally = Tally()
    for depth, share in _SHARES.items():
        wanted = max(1, round(asked * share))
        run_rounds(wanted, depth, check, tally, rounds=_ROUNDS, for_spark=True)
    record("tally", str(tally))
    judge(tally, distinct, moved)


def test_in_memory(spark: SparkSession, record_property: Callable[[str, object], None]) -> None:
    session = worker_session(spark, {}, adaptive=False)

    def check(made: Case, tally: Tally) -> bool:
        return check_on_spark(session, made, tally)

    _run(_IN_MEMORY, _IN_MEMORY * 2 // 9, check, record_property, 0.2)


def test_on_the_lake(
    spark: SparkSession,
    tmp_path: Path,
    clean_names: None,
    record_property: Callable[[str, object], None],
) -> None:
    with runnel.connect(tmp_path / "lake", spark=spark) as lake:

        def check(made: Case, tally: Tally) -> bool:
            return check_on_lake(lake, made, tally)

        # So few queries that one which sees no change that matters is much of them.
        _run(_ON_LAKE, _ON_LAKE * 2 // 5, check, record_property, 0.1)
