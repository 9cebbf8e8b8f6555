"""A trace: the append-only Delta table of weighted rows in which a stream table is stored."""

from __future__ import annotations

import bisect
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from runnel.errors import SourceError
from runnel.lake import compaction, merging, readout, weights, withdrawing
from runnel.lake.appending import AppendStats, NewEpoch, write_epoch
from runnel.lake.commits import TraceCommit, newest_state, state_at, state_before, state_of_epoch
from runnel.lake.compaction import CompactStats
from runnel.lake.in_order import Parts
from runnel.lake.log import DataFile, DeltaLog, HistoryLost, Snapshot
from runnel.lake.reading import has_plain_paths, scan_files
from runnel.lake.vacuum import vacuum
from runnel.model.columns import EPOCH, KEY, WEIGHT, Layout

__all__ = ["AppendStats", "CompactStats", "Trace", "TraceCommit"]

_DAY = timedelta(hours=24)


class Trace:
    """One trace at one path; `incarnation` names this life of the stream table."""

    def __init__(self, path: str, incarnation: str, layout: Layout) -> None:
        self.log = DeltaLog(path)
        self.path = self.log.path
        self.incarnation = incarnation
        self.layout = layout
        self._is_long = False

    def exists(self) -> bool:
        """Whether anything was ever committed."""
        try:
            self.log.latest_version()
        except SourceError:
            return False
        return True

    def last_commit(self) -> TraceCommit | None:
        """The newest epoch and what its refresh recorded, from the log."""
        return newest_state(self.log)

    def commit_of(self, epoch: int) -> TraceCommit | None:
        """What the refresh of an epoch recorded, as far back as the log goes."""
        return state_of_epoch(self.log, epoch)

    def next_epoch(self) -> int:
        """The number of the epoch that is written next; one that was taken back is not reused."""
        last = self.last_commit()
        return last.newest + 1 if last else 1

    def is_pending(self, last: TraceCommit, visible: int) -> bool:
        """Whether the last commit waits for its group: appended directly on what is visible."""
        if last.group is None or last.epoch <= visible:
            return False
        if last.since > visible > 0:
            # Compacted since, which is only done to what was visible.
            return False
        before = state_before(self.log, last)
        return (before.epoch if before else 0) == visible

    def withdraw(self, spark: Callable[[], SparkSession], pending: TraceCommit) -> bool:
        """Take an epoch back that never became visible; False when it is not the last one."""
        before = state_before(self.log, pending)
        return withdrawing.withdraw(self.log, spark, pending, before)

    def append(
        self, spark: SparkSession, df: DataFrame, epoch: int, metadata: Mapping[str, Any],
        rows_hint: int | None = None,
    ) -> AppendStats:  # fmt: skip
        """Add one epoch: `df` has the stored columns and `__weight`, netted, in one commit.

        An epoch that is already there is left alone. `rows_hint` lets a small result be one file.
        """
        return self._write(df, NewEpoch(epoch, metadata, False, rows_hint, not self._is_long))

    def replace(
        self, spark: SparkSession, df: DataFrame, epoch: int, metadata: Mapping[str, Any],
        rows_hint: int | None = None,
    ) -> AppendStats:  # fmt: skip
        """Like append, but everything before goes in the same commit; history starts here."""
        return self._write(df, NewEpoch(epoch, metadata, True, rows_hint, not self._is_long))

    def _write(self, df: DataFrame, new: NewEpoch) -> AppendStats:
        stats = write_epoch(self.log, self.incarnation, self.layout, df, new)
        # Not tried again: the rows would be computed twice each time.
        self._is_long = self._is_long or stats.is_long
        return stats

    def contents(self, spark: SparkSession, epoch: int) -> DataFrame:
        """All rows up to an epoch, weighted and not summed."""
        return self.contents_for_keys(spark, epoch, None)

    def contents_for_keys(
        self, spark: SparkSession, epoch: int, keys: Sequence[int] | None
    ) -> DataFrame:
        """Like contents, without the files that cannot hold any of the keys (a superset)."""
        self._require(epoch, "contents")
        snapshot, files = self._files(None, epoch)
        if keys is not None:
            ordered = sorted(keys)
            files = [file for file in files if _may_hold(file, ordered)]
        return self._within(spark, snapshot, files, None, epoch)

    def past_contents(self, spark: SparkSession, epoch: int) -> DataFrame:
        """Like contents, also of an epoch that was compacted, while its files are still there."""
        snapshot, files = self._files(None, epoch, self._holding(epoch).version)
        return self._within(spark, snapshot, files, None, epoch)

    def window(self, spark: SparkSession, after: int, upto: int) -> DataFrame:
        """The change over (after, upto], weighted and not summed."""
        self._require(after, "changes")
        snapshot, files = self._files(after, upto)
        return self._within(spark, snapshot, files, after, upto)

    def window_rows(self, after: int, upto: int) -> int:
        """An upper bound of the rows in a window, from statistics."""
        return _rows(self._files(after, upto)[1])

    def row_estimate(self, epoch: int) -> int:
        """An upper bound of the stored rows up to an epoch, from statistics."""
        return _rows(self._files(None, epoch)[1])

    def file_count(self, epoch: int) -> int:
        """How many files a read up to an epoch opens."""
        return len(self._files(None, epoch)[1])

    def superseded_rows(self, epoch: int) -> int:
        """How many of the stored rows up to an epoch only cancel others.

        Where rows were not counted it is an upper bound, from statistics.
        """
        files = self._files(None, epoch)[1]
        last = self._last()
        state = last if last.epoch == epoch else self.commit_of(epoch)
        if state is None or state.rows is None:
            return min(_rows(files), 2 * _rows(_negative(files)))
        return max(0, _rows(files) - state.rows)

    def readout(self, spark: SparkSession, epoch: int | None = None) -> DataFrame:
        """What the user sees at an epoch (None: the newest)."""
        last = self._last()
        upto = last.epoch if epoch is None else epoch
        self._require(upto, "contents")
        return self._readout(spark, last, upto)

    def past_readout(self, spark: SparkSession, epoch: int) -> DataFrame:
        """Like readout, also of an epoch that was compacted, while its files are still there."""
        return self._readout(spark, self._holding(epoch), epoch)

    def is_readable(self, epoch: int) -> bool:
        """Whether `past_readout` of an epoch would work."""
        if epoch >= self._last().since:
            return True
        return self._then(epoch) is not None

    def _holding(self, epoch: int) -> TraceCommit:
        """The newest state in which an epoch can be told apart from later ones."""
        last = self._last()
        then = last if epoch >= last.since else self._then(epoch)
        if then is None:
            raise _lost("contents", epoch, last.since)
        return then

    def _then(self, epoch: int) -> TraceCommit | None:
        """The state in which an epoch was the last one, when nothing of it was deleted yet."""
        try:
            state = state_of_epoch(self.log, epoch)
            files = self.log.snapshot(state.version).files if state else ()
        except HistoryLost:
            return None
        is_whole = not self.log.is_local or all(os.path.exists(file.path) for file in files)
        return state if is_whole else None

    def _readout(self, spark: SparkSession, last: TraceCommit, upto: int) -> DataFrame:
        snapshot, files = self._files(None, upto, last.version)
        since = self._unique_upto(last)
        if since is None or not _negative(files):
            rows = self._netted(spark, snapshot, files, upto)
        elif self.layout.is_state:
            rows = self._newest(spark, snapshot, files, upto)
        else:
            rows = self._overlaid(spark, snapshot, files, since, upto)
        return readout.visible(rows, self.layout)

    def readout_sql(self, version: int | None = None) -> str:
        """The readout of whatever is newest, as SQL text for a permanent view; or of one version.

        It stays right whatever happens to the trace; renewed after a compaction it is faster.
        """
        last = self._last() if version is None else state_at(self.log, version)
        assert last is not None
        rows = _rows(self._files(None, last.epoch, last.version)[1])
        return readout.sql(self.path, self.layout, rows, self._unique_upto(last), version)

    def compact(
        self, spark: SparkSession, since: int, metadata: Mapping[str, Any] | None = None
    ) -> CompactStats:
        """Rewrite the epochs up to `since` as one netted run sorted by key, in one commit.

        It stops before a merged file that reaches beyond `since`. `metadata` is recorded next to
        that of the last refresh, which stays the last commit's.
        """
        snapshot, files = self._files(None, since)
        since = _aligned(files, since)
        files = [file for file in files if _overlaps(file, None, since)]
        task = compaction.Task(self.log, snapshot, files, since, metadata or {})
        netting = compaction.Netting(
            lambda: self._to_compact(spark, task), lambda parts: self._sides(spark, task, parts)
        )
        return compaction.compact(task, self.layout, netting)

    def _sides(
        self, spark: SparkSession, task: compaction.Task, parts: Parts
    ) -> tuple[DataFrame, DataFrame]:
        """What is left of the rows up to the last compaction, and what came since."""
        sides = (parts.base, parts.later)
        base, later = (self._within(spark, task.snapshot, s, None, task.since) for s in sides)
        gone = _rows(parts.later) // 2
        if not self.layout.is_state:
            return weights.overlaid(base, later, self.layout.stored, gone)
        kept, added = (
            weights.newest(side, later, self.layout.stored, self.layout.key, gone)
            for side in (base, later)
        )
        return kept, added

    def _to_compact(self, spark: SparkSession, task: compaction.Task) -> DataFrame:
        if not task.is_small:
            return self._netted(spark, task.snapshot, task.files, task.since)
        rows = self._within(spark, task.snapshot, task.files, None, task.since).coalesce(1)
        return weights.net_at_once(rows, self.layout.stored, bool(_negative(task.files)))

    def net_rows(self, spark: SparkSession, epoch: int) -> int:
        """How many rows there are at an epoch, all of them summed; fails for a negative total."""
        snapshot, files = self._files(None, epoch)
        return self._netted(spark, snapshot, files, epoch).count()

    def merge(self, spark: SparkSession) -> bool:
        """Put one file in the place of the small ones; epochs stay apart."""
        snapshot, files = self._files(None, self._last().epoch)
        if not has_plain_paths(snapshot):
            # Read by Delta's own reader, which cannot be given some files of a table.
            return False
        small = merging.small_files(files)
        return merging.merge(self.log, small, lambda: self._scan(spark, snapshot, small))

    def small_files(self, epoch: int) -> int:
        """How many files up to an epoch cost more to open than to read."""
        return len(merging.small_files(self._files(None, epoch)[1]))

    def vacuum(self, retention: timedelta = _DAY) -> int:
        """Delete files that no version younger than `retention` names; returns how many."""
        return vacuum(self.log, retention)

    def _netted(
        self, spark: SparkSession, snapshot: Snapshot, files: Sequence[DataFile], upto: int
    ) -> DataFrame:
        negative = _negative(files)
        frame = self._within(spark, snapshot, files, None, upto)
        touched = self._within(spark, snapshot, negative, None, upto) if negative else None
        return weights.net(frame, touched, self.layout.stored, _rows(files), _rows(negative))

    def _overlaid(
        self, spark: SparkSession, snapshot: Snapshot, files: Sequence[DataFile], since: int,
        upto: int,
    ) -> DataFrame:  # fmt: skip
        old = [file for file in files if _overlaps(file, None, since)]
        new = [file for file in files if _overlaps(file, since, upto)]
        base = self._within(spark, snapshot, old, None, since)
        later = self._within(spark, snapshot, new, since, upto)
        return weights.overlay(base, later, self.layout.stored, _rows(new) // 2)

    def _newest(
        self, spark: SparkSession, snapshot: Snapshot, files: Sequence[DataFile], upto: int
    ) -> DataFrame:
        negative = _negative(files)
        frame, negatives = (
            self._within(spark, snapshot, part, None, upto) for part in (files, negative)
        )
        return weights.newest(
            frame, negatives, self.layout.stored, self.layout.key, _rows(negative) // 2
        )

    def _unique_upto(self, last: TraceCommit) -> int | None:
        """Up to which epoch no row is there twice, if that is known; a state has a row a group."""
        return last.since if self.layout.is_state or last.is_unique else None

    def _last(self) -> TraceCommit:
        last = self.last_commit()
        if last is None:
            raise SourceError(f"there is no trace at {self.path}")
        return last

    def _require(self, epoch: int, what: str) -> None:
        since = self._last().since
        if epoch < since:
            raise _lost(what, epoch, since)

    def _files(
        self, after: int | None, upto: int, version: int | None = None
    ) -> tuple[Snapshot, list[DataFile]]:
        snapshot = self.log.snapshot(self.log.latest_version() if version is None else version)
        return snapshot, [file for file in snapshot.files if _overlaps(file, after, upto)]

    def _within(
        self, spark: SparkSession, snapshot: Snapshot, files: Sequence[DataFile],
        after: int | None, upto: int,
    ) -> DataFrame:  # fmt: skip
        """The rows of some files whose epoch is in (after, upto].

        Files that hold no others are read as they are: a number that is another one in every
        refresh would make Spark compile the stage again, and run it cold.
        """
        frame = self._scan(spark, snapshot, files)
        if has_plain_paths(snapshot) and all(_is_inside(file, after, upto) for file in files):
            return frame
        frame = frame.where(sf.col(EPOCH) <= upto)
        return frame if after is None else frame.where(sf.col(EPOCH) > after)

    def _scan(
        self, spark: SparkSession, snapshot: Snapshot, files: Sequence[DataFile]
    ) -> DataFrame:
        if has_plain_paths(snapshot):
            return scan_files(spark, snapshot, [file.path for file in files])
        reader = spark.read.format("delta").option("versionAsOf", snapshot.version)
        return reader.load(self.path)


def _lost(what: str, epoch: int, since: int) -> HistoryLost:
    return HistoryLost(
        f"the {what} at epoch {epoch} can no longer be told apart",
        detail=f"everything up to epoch {since} was compacted or replaced",
    )


def _overlaps(file: DataFile, after: int | None, upto: int) -> bool:
    low, high = file.minimum.get(EPOCH), file.maximum.get(EPOCH)
    return (low is None or low <= upto) and (after is None or high is None or high > after)


def _is_inside(file: DataFile, after: int | None, upto: int) -> bool:
    low, high = file.minimum.get(EPOCH), file.maximum.get(EPOCH)
    if low is None or high is None:
        return False
    return high <= upto and (after is None or low > after)


def _aligned(files: Sequence[DataFile], since: int) -> int:
    """The newest epoch up to `since` behind which a file ends and none reaches across."""
    for file in sorted(files, key=lambda f: f.minimum.get(EPOCH, 0), reverse=True):
        low, high = file.minimum.get(EPOCH, 0), file.maximum.get(EPOCH, since)
        if low <= since < high:
            since = low - 1
    return since


def _may_hold(file: DataFile, ordered: Sequence[int]) -> bool:
    low, high = file.minimum.get(KEY), file.maximum.get(KEY)
    if low is None or high is None:
        return True
    position = bisect.bisect_left(ordered, low)
    return position < len(ordered) and ordered[position] <= high


def _negative(files: Sequence[DataFile]) -> list[DataFile]:
    return [file for file in files if file.minimum.get(WEIGHT, -1) < 0]


def _rows(files: Sequence[DataFile]) -> int:
    return sum(file.size // 8 if file.rows is None else file.rows for file in files)
