"""A trace: epochs in, weighted rows and readouts out."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lake.helpers import bag, layout, netted, weighted
from runnel.errors import InternalFault
from runnel.lake import compaction
from runnel.lake.log import HistoryLost
from runnel.lake.trace import Trace
from runnel.lake.translate import translate
from runnel.lake.weights import net
from runnel.model.columns import EPOCH, KEY, WEIGHT, Column, Layout

pytestmark = pytest.mark.spark


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return Trace(str(tmp_path / "trace"), "life-1", layout("int", "string"))


def filled(trace: Trace, spark: SparkSession, *, with_base: bool = False) -> Trace:
    """Three epochs: duplicates, a delete of one copy, an update, a row that comes and goes."""
    write = trace.replace if with_base else trace.append
    write(spark, weighted(spark, "(1, 'x', 3), (2, 'y', 1), (NULL, 'n', 1)"), 1, {"e": 1})
    trace.append(spark, weighted(spark, "(1, 'x', -2), (2, 'y', -1), (2, 'z', 1)"), 2, {"e": 2})
    trace.append(spark, weighted(spark, "(3, 'w', 2), (2, 'z', -1)"), 3, {"e": 3})
    return trace


def test_an_append_counts_and_keeps_its_metadata(spark: SparkSession, trace: Trace) -> None:
    assert not trace.exists()
    assert trace.last_commit() is None
    stats = trace.append(spark, weighted(spark, "(1, 'x', 3), (2, 'y', -4)"), 5, {"plan": "p"})
    assert (stats.rows_inserted, stats.rows_deleted, stats.is_new) == (3, 4, True)
    last = trace.last_commit()
    assert last is not None
    assert (last.version, last.epoch, last.since, last.metadata) == (0, 5, 4, {"plan": "p"})
    assert DeltaTable(trace.path).transaction_version("life-1") == 5


def test_columns_come_in_the_agreed_order_and_types(spark: SparkSession, trace: Trace) -> None:
    trace.append(spark, weighted(spark, "(1L, 'x', 2)", "c0, c1, __weight"), 1, {})
    frame = trace.contents(spark, 1)
    expected = [(KEY, "bigint"), (WEIGHT, "bigint"), (EPOCH, "bigint"), ("c0", "int")]
    assert frame.dtypes == [*expected, ("c1", "string")]
    key = spark.sql("SELECT xxhash64(1)").first()[0]
    assert bag(frame) == {(key, 1, 1, 1, "x"): 2}


def test_a_replayed_epoch_is_a_no_op(spark: SparkSession, trace: Trace) -> None:
    frame = weighted(spark, "(1, 'x', 1)")
    trace.append(spark, frame, 1, {})
    again = trace.append(spark, frame, 1, {})
    assert (again.rows_inserted, again.is_new) == (1, False)
    assert trace.log.latest_version() == 0
    assert bag(trace.readout(spark)) == {(1, "x"): 1}


def test_an_empty_epoch_moves_the_epoch_only(spark: SparkSession, trace: Trace) -> None:
    nothing = weighted(spark, "(1, 'x', 1)").where("false")
    trace.append(spark, nothing, 1, {})
    assert bag(trace.readout(spark)) == {}
    stats = trace.append(spark, nothing, 2, {"e": 2})
    assert (stats.rows_inserted, stats.rows_deleted) == (0, 0)
    last = trace.last_commit()
    assert last is not None
    assert last.epoch == 2
    assert trace.row_estimate(2) == 0


def test_contents_and_windows_at_each_epoch(spark: SparkSession, trace: Trace) -> None:
    filled(trace, spark)

    def at(epoch: int) -> dict[tuple[object, ...], int]:
        return netted(trace.contents(spark, epoch).select("c0", "c1", WEIGHT), WEIGHT)

    assert at(1) == {(1, "x"): 3, (2, "y"): 1, (None, "n"): 1}
    assert at(3) == {(1, "x"): 1, (None, "n"): 1, (3, "w"): 2}
    window = trace.window(spark, 1, 3).select("c0", "c1", WEIGHT)
    assert netted(window, WEIGHT) == {(1, "x"): -2, (2, "y"): -1, (3, "w"): 2}
    assert trace.window_rows(1, 3) == 6
    assert trace.window_rows(3, 3) == 0
    assert trace.row_estimate(1) == 5


@pytest.mark.parametrize("way", ["touched keys", "sum everything", "overlay"])
def test_readout_shows_each_row_as_often_as_its_weight(
    spark: SparkSession, trace: Trace, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr("runnel.lake.weights._SMALL", 10**6 if way == "sum everything" else 0)
    filled(trace, spark, with_base=way != "overlay")
    last = trace.last_commit()
    assert last is not None
    assert last.is_unique == (way == "overlay")
    assert bag(spark.sql(trace.readout_sql())) == bag(trace.readout(spark))
    assert bag(trace.readout(spark)) == {(1, "x"): 1, (None, "n"): 1, (3, "w"): 2}
    assert bag(trace.readout(spark, 1)) == {(1, "x"): 3, (2, "y"): 1, (None, "n"): 1}
    assert trace.readout(spark).columns == ["a", "b"]


def test_readout_sql_and_deltas_own_reader_agree(spark: SparkSession, trace: Trace) -> None:
    filled(trace, spark)
    assert bag(spark.sql(trace.readout_sql())) == bag(trace.readout(spark))
    by_delta = spark.read.format("delta").load(trace.path)
    assert bag(by_delta) == bag(trace.contents(spark, 3))
    trace.compact(spark, 3)
    assert bag(spark.sql(trace.readout_sql())) == bag(trace.readout(spark))


def test_visible_when_hides_rows(spark: SparkSession, tmp_path: Path) -> None:
    trace = Trace(str(tmp_path / "t"), "i", layout("int", "string", visible_when="c0 > 1"))
    filled(trace, spark)
    assert bag(trace.readout(spark)) == {(3, "w"): 2}
    assert bag(spark.sql(trace.readout_sql())) == {(3, "w"): 2}


def test_a_negative_total_never_shows(spark: SparkSession, trace: Trace) -> None:
    trace.append(spark, weighted(spark, "(1, 'x', 1), (2, 'y', -1)"), 1, {})
    assert bag(trace.readout(spark)) == bag(spark.sql(trace.readout_sql())) == {(1, "x"): 1}
    with pytest.raises(PySparkException) as caught:
        trace.compact(spark, 1)
    assert isinstance(translate(caught.value), InternalFault)


def test_a_negative_total_over_a_base_stops_the_read(spark: SparkSession, trace: Trace) -> None:
    trace.replace(spark, weighted(spark, "(1, 'x', 1)"), 1, {})
    trace.append(spark, weighted(spark, "(2, 'y', -1)"), 2, {})
    with pytest.raises(PySparkException) as caught:
        trace.readout(spark).collect()
    assert isinstance(translate(caught.value), InternalFault)
    with pytest.raises(PySparkException):
        spark.sql(trace.readout_sql()).collect()


@pytest.mark.parametrize("copies", [1, 2])
def test_a_base_without_duplicates_is_read_once(
    spark: SparkSession, trace: Trace, copies: int
) -> None:
    rows = f"(1, 'x', {copies}), (2, 'y', 1), (3, 'z', 1), (NULL, NULL, 1)"
    trace.replace(spark, weighted(spark, rows), 1, {})
    trace.append(spark, weighted(spark, "(4, 'w', 1)"), 2, {})
    trace.compact(spark, 2)
    last = trace.last_commit()
    assert last is not None
    assert last.is_unique == (copies == 1)
    trace.append(spark, weighted(spark, "(1, 'x', -1), (2, 'y', -1), (NULL, NULL, -1)"), 3, {})
    trace.append(spark, weighted(spark, "(2, 'y', 1), (3, 'z', 2), (5, 'v', 1)"), 4, {})
    trace.append(spark, weighted(spark, "(5, 'v', -1), (3, 'z', -1)"), 5, {})
    expected = {(2, "y"): 1, (3, "z"): 2, (4, "w"): 1}
    if copies == 2:
        expected[(1, "x")] = 1
    view = trace.readout_sql()
    assert bag(trace.readout(spark)) == bag(spark.sql(view)) == expected
    assert bag(trace.readout(spark, 3)) == {
        **({(1, "x"): 1} if copies == 2 else {}), (3, "z"): 1, (4, "w"): 1,
    }  # fmt: skip
    trace.compact(spark, 5)
    assert bag(spark.sql(view)) == bag(spark.sql(trace.readout_sql())) == expected


def test_a_state_shows_the_newest_row_of_each_key(spark: SparkSession, tmp_path: Path) -> None:
    state = replace(layout("int", "string"), is_state=True)
    trace = Trace(str(tmp_path / "state"), "life-1", state)
    epochs = [
        ("(1, 'a', 1), (2, 'b', 1), (NULL, 'n', 1), (4, 'd', 1)", {1: "a", 2: "b", None: "n", 4: "d"}),
        ("(1, 'a', -1), (1, 'a2', 1), (NULL, 'n', -1)", {1: "a2", 2: "b", 4: "d"}),
        ("(1, 'a2', -1), (1, 'a', 1), (NULL, 'm', 1)", {1: "a", 2: "b", None: "m", 4: "d"}),
        ("(2, 'b', -1), (5, 'e', 1), (NULL, 'm', -1), (NULL, 'n', 1)", {1: "a", None: "n", 4: "d", 5: "e"}),
        ("(2, 'b', 1), (5, 'e', -1), (5, 'e2', 1), (4, 'd', -1)", {1: "a", 2: "b", None: "n", 5: "e2"}),
    ]  # fmt: skip
    for number, (rows, expected) in enumerate(epochs, 1):
        trace.append(spark, weighted(spark, rows), number, {})
        assert bag(trace.readout(spark)) == Counter(expected.items())
        assert bag(spark.sql(trace.readout_sql())) == Counter(expected.items())
    view = trace.readout_sql()
    for change in (lambda: trace.merge(spark), lambda: trace.compact(spark, 3)):
        change()
        for number, (_, expected) in enumerate(epochs, 1):
            if trace.last_commit().since <= number:  # type: ignore[union-attr]
                assert bag(trace.readout(spark, number)) == Counter(expected.items())
        assert bag(spark.sql(view)) == Counter(epochs[-1][1].items())


def test_replace_starts_history_again(spark: SparkSession, trace: Trace) -> None:
    filled(trace, spark)
    rows = sum(bag(trace.readout(spark)).values())
    assert rows > 0
    stats = trace.replace(spark, weighted(spark, "(9, 'q', 2)"), 4, {"e": 4})
    assert (stats.rows_inserted, stats.rows_deleted) == (2, rows)
    assert bag(trace.readout(spark)) == {(9, "q"): 2}
    last = trace.last_commit()
    assert last is not None
    assert (last.epoch, last.since) == (4, 4)
    with pytest.raises(HistoryLost):
        trace.contents(spark, 3)
    with pytest.raises(HistoryLost):
        trace.window(spark, 3, 4)


def test_merging_keeps_every_epoch_apart(spark: SparkSession, trace: Trace) -> None:
    filled(trace, spark)
    epochs = [bag(trace.readout(spark, epoch)) for epoch in (1, 2, 3)]
    window = bag(trace.window(spark, 1, 3))
    assert trace.small_files(3) > 1
    assert trace.merge(spark)
    assert trace.small_files(3) == trace.file_count(3) == 1
    assert [bag(trace.readout(spark, epoch)) for epoch in (1, 2, 3)] == epochs
    assert bag(trace.window(spark, 1, 3)) == window
    assert bag(spark.sql(trace.readout_sql())) == epochs[2]
    last = trace.last_commit()
    assert last is not None
    assert (last.epoch, last.since, last.metadata) == (3, 0, {"e": 3})
    assert not trace.merge(spark)


def test_files_that_cannot_be_read_one_by_one_are_not_merged(
    spark: SparkSession, tmp_path: Path
) -> None:
    trace = filled(Trace(str(tmp_path / "t[1]"), "i", layout("int", "string")), spark)
    before = bag(trace.readout(spark))
    assert not trace.merge(spark)
    assert bag(trace.readout(spark)) == before


def test_compaction_stops_before_a_merged_file_that_reaches_beyond(
    spark: SparkSession, trace: Trace
) -> None:
    filled(trace, spark)
    trace.merge(spark)
    assert not trace.compact(spark, 2).is_done
    trace.append(spark, weighted(spark, "(5, 'v', 1)"), 4, {})
    trace.append(spark, weighted(spark, "(5, 'v', -1)"), 5, {})
    before = [bag(trace.readout(spark, epoch)) for epoch in (4, 5)]
    assert trace.compact(spark, 4).is_done
    last = trace.last_commit()
    assert last is not None
    assert last.since == 4
    assert [bag(trace.readout(spark, epoch)) for epoch in (4, 5)] == before


@pytest.mark.parametrize("in_one_task", [500_000, 0])
def test_compaction_changes_nothing_that_can_be_seen(
    spark: SparkSession, trace: Trace, in_one_task: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runnel.lake.compaction._ONE_TASK_ROWS", in_one_task)
    filled(trace, spark)
    before = bag(trace.readout(spark))
    stats = trace.compact(spark, 2, {"why": "test"})
    assert stats.is_done
    assert (stats.rows_before, stats.rows_after, stats.files_after) == (8, 3, 1)
    last = trace.last_commit()
    assert last is not None
    assert (last.epoch, last.since) == (3, 2)
    assert last.metadata == {"e": 3, "compaction": {"why": "test"}}
    assert bag(trace.readout(spark)) == before
    assert bag(trace.readout(spark, 2)) == {(1, "x"): 1, (2, "z"): 1, (None, "n"): 1}
    window = trace.window(spark, 2, 3).select("c0", "c1", WEIGHT)
    assert netted(window, WEIGHT) == {(2, "z"): -1, (3, "w"): 2}
    commit = trace.log.commit(last.version)
    assert not any(action.data_change for action in (*commit.adds, *commit.removes))
    assert not trace.compact(spark, 2).is_done


def test_compacted_files_are_ranges_of_the_key(
    spark: SparkSession, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runnel.lake.compaction._FILE_BYTES", 2000)
    many = spark.range(1000).selectExpr("CAST(id AS INT) AS c0", "'v' AS c1", "1 AS __weight")
    trace.append(spark, many, 1, {})
    trace.compact(spark, 1)
    trace.append(spark, weighted(spark, "(1, 'v', -1)"), 2, {})
    trace.compact(spark, 2)
    files = sorted(
        (file.minimum[KEY], file.maximum[KEY])
        for file in trace.log.snapshot(trace.log.latest_version()).files
    )
    assert len(files) > 2
    assert all(high < low for (_, high), (low, _) in itertools.pairwise(files))
    key = spark.sql("SELECT xxhash64(7)").first()[0]
    narrowed = trace.contents_for_keys(spark, 2, [key])
    assert narrowed.where(f"{KEY} = {key}").count() == 1
    assert narrowed.count() < 999
    assert trace.contents(spark, 2).count() == 999


def test_an_append_that_overtakes_a_compaction(spark: SparkSession, trace: Trace) -> None:
    filled(trace, spark)
    late = Trace(trace.path, "life-1", trace.layout)
    snapshot, files = late._files(None, 3)
    trace.append(spark, weighted(spark, "(5, 'v', 1)"), 4, {"e": 4})
    task = compaction.Task(late.log, snapshot, files, 3, {})
    rows = late._netted(spark, snapshot, files, 3)
    netting = compaction.Netting(lambda: rows, lambda parts: late._sides(spark, task, parts))
    assert compaction.compact(task, late.layout, netting).is_done
    last = trace.last_commit()
    assert last is not None
    assert (last.epoch, last.since, last.metadata) == (4, 3, {"e": 4})
    assert bag(trace.readout(spark)) == {(1, "x"): 1, (None, "n"): 1, (3, "w"): 2, (5, "v"): 1}


def test_appends_and_compactions_side_by_side(spark: SparkSession, trace: Trace) -> None:
    trace.append(spark, weighted(spark, "(0, 'x', 1)"), 1, {"e": 1})

    def append() -> None:
        for epoch in range(2, 7):
            change = weighted(spark, f"({epoch - 2}, 'x', -1), ({epoch - 1}, 'x', 1)")
            trace.append(spark, change, epoch, {"e": epoch}, rows_hint=2)

    def compact() -> None:
        mine = Trace(trace.path, "life-1", trace.layout)
        for _ in range(4):
            last = mine.last_commit()
            assert last is not None
            assert last.metadata["e"] == last.epoch
            mine.compact(spark, last.epoch)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(append), pool.submit(compact)]:
            done.result()
    last = trace.last_commit()
    assert last is not None
    assert (last.epoch, last.metadata["e"]) == (6, 6)
    assert bag(trace.readout(spark)) == {(5, "x"): 1}


def test_vacuum_keeps_what_is_live_or_young(spark: SparkSession, trace: Trace) -> None:
    filled(trace, spark)
    held = trace.contents(spark, 3)
    trace.compact(spark, 3)
    orphan = Path(trace.path, "run-of-a-dead-process", "part-0.parquet")
    orphan.parent.mkdir()
    orphan.write_bytes(b"half")
    assert trace.vacuum() == 0
    assert held.count() == 11
    assert trace.vacuum(timedelta(0)) > 0
    assert not orphan.parent.exists()
    assert len([p for p in os.listdir(trace.path) if p.startswith("run-")]) == 1
    assert bag(trace.readout(spark)) == {(1, "x"): 1, (None, "n"): 1, (3, "w"): 2}


def test_all_types_come_back(spark: SparkSession, tmp_path: Path) -> None:
    values = {
        "boolean": "true", "tinyint": "1Y", "smallint": "2S", "int": "3", "bigint": "4L",
        "float": "CAST('NaN' AS FLOAT)", "double": "CAST('-Infinity' AS DOUBLE)",
        "decimal(38,10)": "CAST(1.5 AS DECIMAL(38,10))", "string": "'ünï'", "binary": "X'00FF'",
        "date": "DATE'1582-10-04'", "timestamp": "TIMESTAMP'1900-01-01 00:00:00.123456 UTC'",
        "timestamp_ntz": "TIMESTAMP_NTZ'2020-01-01 00:00:00'",
        "struct<x:int,y:array<date>>": "named_struct('x', 1, 'y', array(DATE'2020-01-01'))",
        "array<struct<k:string>>": "array(named_struct('k', 'v'))", "map<string,int>": "map('k', 1)",
    }  # fmt: skip
    stored = tuple(Column(f"c{n}", type_) for n, type_ in enumerate(values))
    shape = Layout(stored, ("c3",), tuple((Column(f"v {c.name}", c.type), c.name) for c in stored))
    trace = Trace(str(tmp_path / "t"), "i", shape)
    chosen = ", ".join(f"{sql} AS c{n}" for n, sql in enumerate(values.values()))
    nulls = ", ".join(f"CAST(NULL AS {type_}) AS c{n}" for n, type_ in enumerate(values))
    frame = spark.sql(f"SELECT {chosen}, 1 AS __weight UNION ALL SELECT {nulls}, 2")
    trace.append(spark, frame, 1, {})
    columns = [column.name for column in shape.stored]
    same = trace.contents(spark, 1).select(columns)
    assert [type_ for _, type_ in same.dtypes] == list(values)
    assert sorted(map(repr, same.collect())) == sorted(
        map(repr, [*frame.select(columns).collect(), frame.select(columns).collect()[1]])
    )
    trace.append(spark, spark.sql(f"SELECT {nulls}, -1 AS __weight"), 2, {})
    assert trace.readout(spark).count() == 2
    assert spark.sql(trace.readout_sql()).count() == 2


def test_a_layout_without_key_and_with_odd_names(spark: SparkSession, tmp_path: Path) -> None:
    stored = (Column("c0", "int"),)
    names = ("a b", "`q`", "__weight", "sélect", "x.y")
    shape = Layout(stored, (), tuple((Column(name, "int"), "c0") for name in names))
    trace = Trace(str(tmp_path / "o'dd folder ü"), "i", shape)
    trace.append(spark, spark.sql("SELECT 1 AS c0, 2 AS __weight"), 1, {})
    trace.append(spark, spark.sql("SELECT 1 AS c0, -1 AS __weight"), 2, {})
    for frame in (trace.readout(spark), spark.sql(trace.readout_sql())):
        assert frame.columns == list(names)
        assert bag(frame) == {(1,) * 5: 1}


def test_a_folder_that_looks_like_a_pattern(spark: SparkSession, tmp_path: Path) -> None:
    trace = Trace(str(tmp_path / "my [lake]{1}*"), "i", layout("int", "string"))
    filled(trace, spark)
    assert bag(trace.readout(spark)) == {(1, "x"): 1, (None, "n"): 1, (3, "w"): 2}
    trace.compact(spark, 3)
    assert bag(trace.readout(spark)) == {(1, "x"): 1, (None, "n"): 1, (3, "w"): 2}


def test_where_delta_rs_cannot_write_deltas_writer_does(spark: SparkSession, trace: Trace) -> None:
    trace.log.is_local = False
    filled(trace, spark)
    again = trace.append(spark, weighted(spark, "(3, 'w', 2)"), 3, {"e": 3})
    assert not again.is_new
    before = {(1, "x"): 1, (None, "n"): 1, (3, "w"): 2}
    assert bag(trace.readout(spark)) == before
    assert trace.compact(spark, 2).is_done
    last = trace.last_commit()
    assert last is not None
    assert (last.epoch, last.since, last.metadata) == (3, 2, {"e": 3})
    assert bag(trace.readout(spark)) == before
    trace.replace(spark, weighted(spark, "(9, 'q', 1)"), 4, {})
    assert bag(trace.readout(spark)) == {(9, "q"): 1}


CRASH = """
import sys
from pathlib import Path
from lake.helpers import layout, weighted
from runnel.lake.session import open_session
from runnel.lake.trace import Trace
folder, action = Path(sys.argv[1]), sys.argv[2]
spark = open_session(folder, {"spark.master": "local[2]", "spark.driver.memory": "1g"}).spark
trace = Trace(str(folder / "trace"), "life-1", layout("int", "string"))
frame = weighted(spark, "(7, 'new', 1)")
if action == "append":
    trace.append(spark, frame, 4, {"e": 4})
elif action == "replace":
    trace.replace(spark, frame, 4, {"e": 4})
else:
    trace.compact(spark, 3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", ["written", "committed"])
@pytest.mark.parametrize("action", ["append", "replace", "compact"])
def test_killed_between_two_steps(
    spark: SparkSession, tmp_path: Path, action: str, step: str
) -> None:
    trace = filled(Trace(str(tmp_path / "trace"), "life-1", layout("int", "string")), spark)
    old = bag(trace.readout(spark))
    environment = os.environ | {"RUNNEL_FAILPOINT": f"trace.{action}.{step}"}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", CRASH, str(tmp_path), action], env=environment, check=False
    )
    assert done.returncode == -9
    new = {"append": old + bag(weighted(spark, "(7, 'new')", "a, b")), "compact": old}
    expected = new.get(action, {(7, "new"): 1}) if step == "committed" else old
    assert bag(trace.readout(spark)) == expected
    trace.vacuum(timedelta(0))
    assert bag(trace.readout(spark)) == expected
    trace.append(spark, weighted(spark, "(8, 'next', 1)"), 5, {})
    assert bag(trace.readout(spark)) == expected | {(8, "next"): 1}


def test_net_of_nothing_negative_is_a_plain_scan(spark: SparkSession, trace: Trace) -> None:
    trace.append(spark, weighted(spark, "(1, 'x', 1)"), 1, {})
    assert trace.superseded_rows(1) == 0
    frame = trace.contents(spark, 1)
    assert net(frame, None, trace.layout.stored, 1, 0).columns == [KEY, "c0", "c1"]
