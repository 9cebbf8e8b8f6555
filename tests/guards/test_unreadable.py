"""Storage that fails: a clear error that may be tried again, and the failure is on record."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from guards.conftest import Bench
from runnel.errors import SourceError, SystemFault
from runnel.lake.log import DeltaLog
from runnel.lake.translate import translate
from runnel.schedule.passes import refresh_pass

MEMORY = """An error occurred while calling o91.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 7.0 failed 1 \
times, most recent failure: Lost task 3.0 in stage 7.0 (TID 12): java.lang.OutOfMemoryError: Java heap space
\tat java.base/java.util.Arrays.copyOf(Arrays.java:3537)
"""
PAGES = """[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes of memory, got 0. SQLSTATE: 53200
\tat org.apache.spark.memory.MemoryConsumer.throwOom(MemoryConsumer.java:171)"""
BROADCAST = """An error occurred while calling o44.parquet.
: org.apache.spark.SparkException: Not enough memory to build and broadcast the table to all worker nodes."""
DISK = """An error occurred while calling o52.parquet.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/lake/x. SQLSTATE: 58030
Caused by: java.io.IOException: No space left on device
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)"""


def unreadable(folder: str) -> None:
    """A folder that cannot be read by anyone, root included: a link to itself."""
    shutil.rmtree(folder)
    os.symlink(folder, folder)


@pytest.mark.parametrize(
    ("text", "said"),
    [(MEMORY, "memory"), (PAGES, "memory"), (BROADCAST, "memory"), (DISK, "disk is full")],
)
def test_shortages_are_told_as_such(text: str, said: str) -> None:
    told = translate(Exception(text))
    assert type(told) is SystemFault
    assert said in told.primary
    assert told.retryable
    assert told.hint


def test_a_full_disk_in_python() -> None:
    told = translate(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert (type(told), told.primary) == (SystemFault, "the disk is full")


def test_a_statement_that_quotes_such_words_is_not_meant() -> None:
    text = (
        "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n"
        "== SQL (line 1, position 8) ==\nSELECT 'OutOfMemoryError', 1/0\n       ^^^"
    )
    assert "memory" not in translate(Exception(text)).primary


def test_an_unreadable_folder_is_no_missing_table(bench: Bench) -> None:
    path = bench.base("orders")
    log = DeltaLog(path)
    assert log.latest_version() == 0
    unreadable(f"{path}/_delta_log")
    with pytest.raises(SystemFault, match="cannot be read") as caught:
        log.latest_version()
    assert caught.value.retryable
    with pytest.raises(SystemFault, match="cannot be read"):
        DeltaLog(path).snapshot(0)


def test_a_damaged_commit_is_told(bench: Bench) -> None:
    path = bench.base("orders")
    bench.append("orders")
    Path(f"{path}/_delta_log/{1:020d}.json").write_text('{"add": {"path')
    with pytest.raises(SourceError, match="damaged"):
        DeltaLog(path).commit(1)


@pytest.mark.parametrize("kind", ["unreadable", "gone"])
def test_a_source_that_cannot_be_read_is_on_record(bench: Bench, kind: str) -> None:
    path = bench.base("orders")
    bench.base("other")
    bench.stream("sales", "orders")
    bench.stream("fine", "other")
    unreadable(f"{path}/_delta_log") if kind == "unreadable" else shutil.rmtree(path)
    with pytest.raises((SystemFault, SourceError), match="read"):
        refresh_pass(bench.workspace, {"default.sales"})
    table = bench.workspace.catalog.find("default.sales")
    assert table is not None
    assert table.consecutive_errors == 1
    assert "read" in (table.last_error or "")
    assert (table.epoch, table.frontier is not None) == (1, True)
    (attempt,) = bench.workspace.catalog.history("default.sales")
    assert attempt.outcome == "FAILED"
