"""Merging: many small files of a trace become one with the same rows; no epoch is lost by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

from runnel.lake.commits import rewrite, write_run
from runnel.lake.log import DataFile, DeltaLog
from runnel.model.failpoints import reach

_SMALL_ROWS = 100_000


def small_files(files: Sequence[DataFile]) -> list[DataFile]:
    """Those that cost more to open than to read."""
    return [file for file in files if file.rows is not None and file.rows < _SMALL_ROWS]


def merge(log: DeltaLog, files: Sequence[DataFile], rows: Callable[[], DataFrame]) -> bool:
    """Put one file in the place of `files`, with the rows that `rows` gives; False if not done."""
    if len(files) < 2 or not log.is_local:
        return False
    frame = rows()
    run = write_run(frame.coalesce(1), log)
    reach("trace.merge.written")
    adds = run.adds(data_change=False)
    if not rewrite(log, files, adds, lambda last: last):
        run.discard()
        return False
    reach("trace.merge.committed")
    return True
