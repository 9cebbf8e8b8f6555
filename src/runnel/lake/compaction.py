"""Compaction: the epochs up to `since` become one netted run, and nothing changes logically."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from runnel.errors import InternalFault
from runnel.lake.commits import TraceCommit, rewrite, state_at, write_run
from runnel.lake.log import DataFile, DeltaLog, Snapshot
from runnel.model.columns import EPOCH, KEY, WEIGHT, Layout
from runnel.model.failpoints import reach

_FILE_BYTES = 128 * 2**20
_FILE_ROWS = 500_000
# A task does this in less time than a shuffle of it takes to set up.
_ONE_TASK_ROWS = 500_000


@dataclass(frozen=True, slots=True)
class CompactStats:
    """What a compaction did; `is_done` is False when there was nothing to do or others did it."""

    files_before: int
    files_after: int
    rows_before: int
    rows_after: int
    is_done: bool = True


@dataclass(frozen=True, slots=True)
class Task:
    """The files of a snapshot that hold the epochs up to `since`, all of them and nothing else."""

    log: DeltaLog
    snapshot: Snapshot
    files: Sequence[DataFile]
    since: int
    metadata: Mapping[str, Any] = field(hash=False)

    @property
    def is_small(self) -> bool:
        """Whether one task reads, nets, sorts and writes it all, without a shuffle."""
        return _rows(self.files) <= _ONE_TASK_ROWS and _bytes(self.files) <= _FILE_BYTES

    def left_alone(self) -> CompactStats:
        count, rows = len(self.files), _rows(self.files)
        return CompactStats(count, count, rows, rows, is_done=False)


def compact(task: Task, layout: Layout, netted: Callable[[], DataFrame]) -> CompactStats:
    """Rewrite the task's files, whose netted rows `netted` gives, without a data change."""
    last = state_at(task.log, task.snapshot.version)
    if last is None or task.since <= last.since:
        return task.left_alone()
    _check(task, last)
    rows = netted()
    frame = _arranged(rows, layout, task)
    if not task.log.is_local:
        return _rewrite_by_delta(task, frame, last)
    run = write_run(frame, task.log)
    reach("trace.compact.written")
    is_unique = bool(layout.key) and run.has_unique_keys()
    adds = run.adds(data_change=False)
    if not rewrite(task.log, task.files, adds, lambda last: _state(task, last, is_unique)):
        run.discard()
        return task.left_alone()
    reach("trace.compact.committed")
    after = sum(json.loads(action.stats)["numRecords"] for action in adds)
    return CompactStats(len(task.files), len(adds), _rows(task.files), after)


def _rewrite_by_delta(task: Task, frame: DataFrame, last: TraceCommit) -> CompactStats:
    # Delta refuses dataChange=false together with a filter; nobody reads a trace's dataChange.
    writer = frame.write.format("delta").mode("overwrite")
    writer = writer.option("replaceWhere", f"{EPOCH} <= {task.since}")
    writer.option("userMetadata", _state(task, last, is_unique=False).to_json()).save(task.log.path)
    live = task.log.snapshot(task.log.latest_version()).files
    written = [file for file in live if file.maximum.get(EPOCH, 0) <= task.since]
    return CompactStats(len(task.files), len(written), _rows(task.files), _rows(written))


def _state(task: Task, last: TraceCommit, is_unique: bool) -> TraceCommit:
    # The last refresh stays the last commit's subject: its frontier must be found here.
    extra = {"compaction": dict(task.metadata)} if task.metadata else {}
    metadata = last.metadata | extra
    return replace(last, since=task.since, metadata=metadata, is_unique=is_unique)


def _check(task: Task, last: TraceCommit) -> None:
    if task.since > last.epoch:
        raise InternalFault(f"compaction to epoch {task.since}, but the newest is {last.epoch}")
    for file in task.files:
        if file.maximum.get(EPOCH, task.since) > task.since:
            raise InternalFault(f"{file.path} holds epochs on both sides of {task.since}")


def _arranged(rows: DataFrame, layout: Layout, task: Task) -> DataFrame:
    """Trace columns with weight +1, each file a range of `__key`."""
    weight, epoch = sf.lit(1).cast("bigint"), sf.lit(task.since).cast("bigint")
    stored = [column.name for column in layout.stored]
    frame = rows.select(KEY, weight.alias(WEIGHT), epoch.alias(EPOCH), *stored)
    if task.is_small:
        return frame.coalesce(1).sortWithinPartitions(KEY)
    files = _file_count(task.files, _parallelism(rows))
    if not layout.key:
        return frame.repartition(files)
    if files == 1:
        return frame.repartition(1).sortWithinPartitions(KEY)
    # A hash is spread evenly: cutting its range needs no sampling pass over the data.
    position = sf.floor((sf.col(KEY) / sf.lit(2.0**64) + 0.5) * files)
    place = sf.least(position, sf.lit(files - 1)).cast("int")
    return frame.repartitionById(files, place).sortWithinPartitions(KEY)


def _file_count(files: Sequence[DataFile], parallelism: int) -> int:
    # Enough files for all cores to read, as long as each is worth a task.
    by_size = -(-_bytes(files) // _FILE_BYTES)
    return max(1, by_size, min(parallelism, _rows(files) // _FILE_ROWS))


def _parallelism(frame: DataFrame) -> int:
    return int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)


def _rows(files: Sequence[DataFile]) -> int:
    return sum(file.rows or 0 for file in files)


def _bytes(files: Sequence[DataFile]) -> int:
    return sum(file.size for file in files)
