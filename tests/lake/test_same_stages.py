"""What differs from refresh to refresh is no part of a stage, or Spark would compile it each time."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import DataFrame, SparkSession

from runnel.lake.session import worker_session
from runnel.lake.weights import with_trace_columns
from runnel.model.columns import WEIGHT, Column, Layout

pytestmark = pytest.mark.spark

_LAYOUT = Layout((Column("c0", "bigint"),), ("c0",), ((Column("a", "bigint"), "c0"),))


def plan_of(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    frame.explain()
    # Without the numbers that Spark gives to columns and operators.
    return re.sub(r"#\d+L?|plan_id=\d+", "", capsys.readouterr().out)


@pytest.mark.parametrize("weight", ["1L", "id"])
def test_the_epoch(spark: SparkSession, capsys: pytest.CaptureFixture[str], weight: str) -> None:
    """Also where all weights are the same number, as in what FULL writes."""
    rows = spark.range(3).selectExpr("id AS c0", f"{weight} AS {WEIGHT}")
    plan = plan_of(with_trace_columns(rows, _LAYOUT, 4711), capsys)
    assert "[4711]" in plan, "an array is handed to a stage, not written into it"
    assert re.search(r"(?<!\[)\b4711\b", plan) is None
    assert with_trace_columns(rows, _LAYOUT, 4711).first()["__epoch"] == 4711  # type: ignore[index]


def test_the_counter_of_a_limit(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Spark gives each limit inside a stage a new number."""
    text = "SELECT id FROM range(9) UNION ALL SELECT id FROM range(5)"
    assert "LocalLimit" in plan_of(spark.sql(text).limit(4), capsys)
    worker = worker_session(spark, {}, adaptive=False)
    assert "LocalLimit" not in plan_of(worker.sql(text).limit(4), capsys)


def test_rules_that_the_user_excludes_stay_excluded(spark: SparkSession) -> None:
    rule = "org.apache.spark.sql.catalyst.optimizer.CombineUnions"
    worker = worker_session(spark, {"spark.sql.optimizer.excludedRules": rule}, adaptive=False)
    excluded = worker.conf.get("spark.sql.optimizer.excludedRules")
    assert excluded == f"{rule},org.apache.spark.sql.catalyst.optimizer.LimitPushDown"
