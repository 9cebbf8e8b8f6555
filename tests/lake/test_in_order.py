"""Compaction that keeps the base in its order, and when all rows are put in order anew."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lake.helpers import bag, layout, weighted
from runnel.errors import InternalFault
from runnel.lake import compaction
from runnel.lake import trace as traces
from runnel.lake.trace import Trace
from runnel.lake.translate import translate
from runnel.model.columns import KEY, Layout

pytestmark = pytest.mark.spark

_PAIRS = layout("int", "string", key=("c0", "c1"))


@pytest.fixture(
    params=[_PAIRS, replace(layout("int", "string"), is_state=True)], ids=["rows", "state"]
)
def trace(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Trace:  # fmt: skip
    """A compacted base of 100 rows; whatever is compacted is taken for large."""
    monkeypatch.setattr(compaction, "_ONE_TASK_ROWS", 0)
    made = Trace(str(tmp_path / "trace"), "life-1", request.param)
    _add(spark, made, 1, 0, 100)
    made.append(spark, weighted(spark, "(0, 'v0', -1), (100, 'v100', 1)"), 2, {})
    made.compact(spark, 2)
    return made


def _add(spark: SparkSession, made: Trace, epoch: int, first: int, end: int) -> None:
    rows = f"SELECT CAST(id AS INT) AS c0, concat('v', id) AS c1, 1 AS __weight FROM range({first}, {end})"
    made.append(spark, spark.sql(rows), epoch, {})


def _expected(*changes: tuple[int, str, int]) -> Counter[tuple[int, str]]:
    found = Counter({(number, f"v{number}"): 1 for number in range(1, 101)})
    for number, text, weight in changes:
        found[(number, text)] += weight
    return +found


def _change(spark: SparkSession, made: Trace, epoch: int, *rows: tuple[int, str, int]) -> None:
    made.append(spark, weighted(spark, ", ".join(map(str, rows))), epoch, {})


def _runs(made: Trace) -> list[list[int]]:
    """The keys of each live file, the largest file first."""
    files = made.log.snapshot(made.log.latest_version()).files
    keys = [pq.read_table(file.path, columns=[KEY])[KEY].to_pylist() for file in files]
    return sorted(keys, key=len, reverse=True)


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The epochs up to which all rows were netted together."""
    found: list[int] = []
    real = Trace._to_compact

    def noted(self: Trace, spark: SparkSession, task: compaction.Task) -> object:
        found.append(task.since)
        return real(self, spark, task)

    monkeypatch.setattr(traces.Trace, "_to_compact", noted)
    return found


def test_the_base_keeps_its_order(spark: SparkSession, trace: Trace, whole: list[int]) -> None:
    before = _runs(trace)[0]
    changed = [(7, "v7", -1), (7, "new", 1), (9, "v9", -1), (200, "come", 1)]
    _change(spark, trace, 3, *changed)
    _change(spark, trace, 4, (200, "come", -1), (201, "stays", 1))
    expected = _expected(*changed, (200, "come", -1), (201, "stays", 1))
    stats = trace.compact(spark, 4)
    assert (stats.is_done, stats.rows_after) == (True, 100)
    kept, added = _runs(trace)
    assert kept == [key for key in before if key in set(kept)]
    assert (len(kept), len(added)) == (98, 2)
    assert all(low <= high for run in (kept, added) for low, high in pairwise(run))
    last = trace.last_commit()
    assert last is not None
    assert (last.since, last.is_unique, last.apart, last.rows) == (4, True, 6, 100)
    assert bag(trace.readout(spark)) == bag(spark.sql(trace.readout_sql())) == expected
    assert whole == []


def test_nothing_of_the_base_is_shuffled(spark: SparkSession, trace: Trace) -> None:
    _change(spark, trace, 3, (7, "v7", -1), (7, "new", 1))
    snapshot, files = trace._files(None, 3)
    task = compaction.Task(trace.log, snapshot, files, 3, {})
    last = trace.last_commit()
    assert last is not None
    parts = compaction.parts_of(files, last, trace.layout, 100)
    assert parts is not None
    kept, _ = trace._sides(spark, task, parts)
    plan = kept._jdf.queryExecution().executedPlan().toString()
    base = plan.partition("BroadcastExchange")[0]
    assert "FileScan" in plan
    assert "Exchange hashpartitioning" not in base


def test_a_row_that_is_there_twice_is_noticed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: list[int]
) -> None:
    monkeypatch.setattr(compaction, "_ONE_TASK_ROWS", 0)
    for name, rows in (("base", [(7, "v7", 1)]), ("later", [(300, "x", 2)])):
        trace = Trace(str(tmp_path / name), "life-1", _PAIRS)
        _add(spark, trace, 1, 0, 100)
        trace.compact(spark, 1)
        _change(spark, trace, 2, *rows)
        trace.compact(spark, 2)
        last = trace.last_commit()
        assert last is not None
        assert not last.is_unique
        count = sum(bag(trace.readout(spark))[row[:2]] for row in rows)
        assert count == 2
        _change(spark, trace, 3, *((a, b, -1) for a, b, _ in rows))
        trace.compact(spark, 3)
        assert bag(trace.readout(spark))[rows[0][:2]] == 1
    assert whole == [1, 3, 1, 3], "a base with copies is netted as a whole"


def test_when_much_lies_apart_all_is_put_in_order_again(
    spark: SparkSession, trace: Trace, whole: list[int]
) -> None:
    for epoch, first in ((3, 1000), (4, 1020), (5, 1040)):
        _add(spark, trace, epoch, first, first + 12)
        assert trace.compact(spark, epoch).is_done
    last = trace.last_commit()
    assert last is not None
    assert (last.apart, whole) == (0, [5])
    (run,) = _runs(trace)
    assert len(run) == 136
    assert run == sorted(run)


def test_contents_that_were_replaced_are_put_in_order_first(
    spark: SparkSession, trace: Trace, whole: list[int]
) -> None:
    rows = spark.sql("SELECT CAST(id AS INT) AS c0, 'v' AS c1, 1 AS __weight FROM range(50)")
    trace.replace(spark, rows, 3, {})
    _change(spark, trace, 4, (3, "v", -1))
    trace.compact(spark, 4)
    assert whole == [4]
    assert trace.readout(spark).count() == 49


def test_a_total_below_zero_is_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_ONE_TASK_ROWS", 0)
    trace = Trace(str(tmp_path / "trace"), "life-1", _PAIRS)
    _add(spark, trace, 1, 0, 100)
    trace.compact(spark, 1)
    _change(spark, trace, 2, (500, "never there", -1))
    with pytest.raises(Exception) as caught:  # noqa: PT011
        trace.compact(spark, 2)
    assert isinstance(translate(caught.value), InternalFault)
    last = trace.last_commit()
    assert last is not None
    assert last.since == 1


def test_without_a_key_there_is_no_order(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: list[int]
) -> None:
    monkeypatch.setattr(compaction, "_ONE_TASK_ROWS", 0)
    keyless = Layout(_PAIRS.stored, (), _PAIRS.visible)
    trace = Trace(str(tmp_path / "trace"), "life-1", keyless)
    for epoch in (1, 2):
        _add(spark, trace, epoch, epoch * 100, epoch * 100 + 3)
        trace.compact(spark, epoch)
    assert whole == [1, 2]
    assert trace.readout(spark).count() == 6
