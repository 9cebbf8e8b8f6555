"""Compaction: the epochs up to `since` become one netted run, and nothing changes logically."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deltalake.transaction import AddAction
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from runnel.errors import InternalFault
from runnel.lake.commits import Run, TraceCommit, rewrite, state_at, state_of_epoch, write_run
from runnel.lake.in_order import Parts, file_by_file, has_unique_keys, parts_of
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


@dataclass(frozen=True, slots=True)
class Netting:
    """How the rows of a task are computed: all of them, or the two sides of its last compaction."""

    whole: Callable[[], DataFrame]
    sides: Callable[[Parts], tuple[DataFrame, DataFrame]]


@dataclass(frozen=True, slots=True)
class Written:
    """The runs that take the place of a task's files, and what is known of their rows."""

    runs: tuple[Run, ...]
    adds: list[AddAction]
    is_unique: bool
    apart: int = 0

    @property
    def rows(self) -> int:
        return sum(json.loads(action.stats)["numRecords"] for action in self.adds)

    def discard(self) -> None:
        for run in self.runs:
            run.discard()


def compact(task: Task, layout: Layout, netting: Netting) -> CompactStats:
    """Rewrite the task's files, netted, without a data change."""
    last = state_at(task.log, task.snapshot.version)
    if last is None or task.since <= last.since:
        return task.left_alone()
    _check(task, last)
    if not task.log.is_local:
        return _rewrite_by_delta(task, _arranged(netting.whole(), layout, task), last)
    written = _written_in_order(task, layout, netting, last) or _written(task, layout, netting)
    reach("trace.compact.written")
    if not rewrite(task.log, task.files, written.adds, lambda last: _state(task, last, written)):
        written.discard()
        return task.left_alone()
    reach("trace.compact.committed")
    return CompactStats(len(task.files), len(written.adds), _rows(task.files), written.rows)


def _written(task: Task, layout: Layout, netting: Netting) -> Written:
    run = write_run(_arranged(netting.whole(), layout, task), task.log)
    is_unique = bool(layout.key) and run.has_unique_keys()
    return Written((run,), run.adds(data_change=False), is_unique)


def _written_in_order(
    task: Task, layout: Layout, netting: Netting, last: TraceCommit
) -> Written | None:
    """The base without what went, and what came; None where all rows are to be netted."""
    if task.is_small:
        return None
    state = last if last.epoch == task.since else state_of_epoch(task.log, task.since)
    parts = parts_of(task.files, last, layout, state.rows if state is not None else None)
    if parts is None:
        return None
    kept, added = (_with_trace_columns(rows, layout, task) for rows in netting.sides(parts))
    with file_by_file(kept.sparkSession):
        runs = [write_run(kept, task.log)]
    try:
        runs.append(write_run(added.coalesce(1).sortWithinPartitions(KEY), task.log))
    except BaseException:
        runs[0].discard()
        raise
    is_unique = layout.is_state or has_unique_keys(*runs)
    adds = [action for run in runs for action in run.adds(data_change=False)]
    written = Written(tuple(runs), adds, is_unique, parts.apart)
    if written.rows == parts.rows:
        return written
    # A row was taken away that is not there: summing all of them tells which.
    written.discard()
    return None


def _rewrite_by_delta(task: Task, frame: DataFrame, last: TraceCommit) -> CompactStats:
    # Delta refuses dataChange=false together with a filter; nobody reads a trace's dataChange.
    writer = frame.write.format("delta").mode("overwrite")
    writer = writer.option("replaceWhere", f"{EPOCH} <= {task.since}")
    state = _state(task, last, Written((), [], is_unique=False))
    writer.option("userMetadata", state.to_json()).save(task.log.path)
    live = task.log.snapshot(task.log.latest_version()).files
    written = [file for file in live if file.maximum.get(EPOCH, 0) <= task.since]
    return CompactStats(len(task.files), len(written), _rows(task.files), _rows(written))


def _state(task: Task, last: TraceCommit, written: Written) -> TraceCommit:
    # The last refresh stays the last commit's subject: its frontier must be found here.
    extra = {"compaction": dict(task.metadata)} if task.metadata else {}
    metadata = last.metadata | extra
    return replace(
        last, since=task.since, metadata=metadata, is_unique=written.is_unique, apart=written.apart
    )


def _check(task: Task, last: TraceCommit) -> None:
    if task.since > last.epoch:
        raise InternalFault(f"compaction to epoch {task.since}, but the newest is {last.epoch}")
    for file in task.files:
        if file.maximum.get(EPOCH, task.since) > task.since:
            raise InternalFault(f"{file.path} holds epochs on both sides of {task.since}")


def _arranged(rows: DataFrame, layout: Layout, task: Task) -> DataFrame:
    """Trace columns, each file a range of `__key`."""
    frame = _with_trace_columns(rows, layout, task)
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


def _with_trace_columns(rows: DataFrame, layout: Layout, task: Task) -> DataFrame:
    weight, epoch = sf.lit(1).cast("bigint"), sf.lit(task.since).cast("bigint")
    stored = [column.name for column in layout.stored]
    return rows.select(KEY, weight.alias(WEIGHT), epoch.alias(EPOCH), *stored)


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
