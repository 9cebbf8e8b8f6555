"""The log without Spark."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from runnel.errors import SourceError
from runnel.lake.log import DeltaLog, HistoryLost


def rows(*values: int) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int64())})


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    path = str(tmp_path / "my table")
    note = CommitProperties(custom_metadata={"userMetadata": "note"})
    write_deltalake(path, rows(1, 2))
    write_deltalake(path, rows(3), mode="append", commit_properties=note)
    return DeltaLog(path)


def test_a_missing_table_is_a_source_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no Delta table"):
        DeltaLog(str(tmp_path / "nothing")).latest_version()
    with pytest.raises(SourceError):
        DeltaLog(str(tmp_path / "nothing")).snapshot(0)


def test_snapshots_hold_files_and_statistics(log: DeltaLog) -> None:
    first, second = log.snapshot(0), log.snapshot(1)
    assert [f.rows for f in first.files] == [2]
    assert sorted(f.minimum["a"] for f in second.files) == [1, 3]
    assert all(Path(f.path).is_file() for f in second.files)
    assert first.table_id == second.table_id == log.table_id(1)
    assert log.snapshot(1) is second


def test_commits_hold_what_was_attached(log: DeltaLog) -> None:
    (commit,) = log.commits(0, 1)
    assert (commit.version, commit.operation, commit.user_metadata) == (1, "WRITE", "note")
    assert [action.rows for action in commit.adds] == [1]
    assert abs(time.time() * 1000 - log.timestamp(1)) < 600_000
    assert log.commits(1, 1) == ()


def test_new_versions_and_a_new_table_are_noticed(log: DeltaLog) -> None:
    assert log.latest_version() == 1
    old = log.table_id(1)
    for _ in range(3):
        write_deltalake(log.path, rows(4), mode="append")
    assert log.latest_version() == 4
    shutil.rmtree(log.path)
    with pytest.raises(SourceError):
        log.latest_version()
    for _ in range(6):
        write_deltalake(log.path, rows(5), mode="append")
    assert log.latest_version() == 5
    assert log.table_id(1) != old


def test_what_is_gone_is_history_lost(log: DeltaLog) -> None:
    Path(log.path, "_delta_log", f"{1:020d}.json").unlink()
    with pytest.raises(HistoryLost):
        log.commits(0, 1)
    with pytest.raises(HistoryLost):
        log.snapshot(7)


def test_a_file_uri_names_the_same_table(log: DeltaLog) -> None:
    other = DeltaLog(Path(log.path).as_uri())
    assert other.path == log.path
    assert other.latest_version() == 1


def test_asking_again_costs_next_to_nothing(log: DeltaLog) -> None:
    log.latest_version()
    start = time.perf_counter()
    for _ in range(100):
        log.latest_version()
    assert (time.perf_counter() - start) / 100 < 0.001
