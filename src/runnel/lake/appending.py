"""Adding one epoch to a trace: one Spark job that writes and counts, one commit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from runnel.lake.commits import (
    PROPERTIES,
    Proposal,
    Run,
    TraceCommit,
    commit,
    newest_state,
    write_run,
)
from runnel.lake.log import DeltaLog
from runnel.lake.small_epochs import fetched_epoch, is_expected, is_few, weights_of, write_rows
from runnel.lake.weights import with_trace_columns
from runnel.model.columns import WEIGHT, Layout
from runnel.model.failpoints import reach

_ONE_FILE_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class AppendStats:
    """How many rows an epoch inserted and deleted; `is_new` is False for a replay.

    `seconds` are those in which it was computed and written. `is_long`: it was not fetched although
    its rows are few, since their texts are long.
    """

    rows_inserted: int
    rows_deleted: int
    is_new: bool = True
    seconds: float = 0.0
    is_long: bool = False


@dataclass(frozen=True, slots=True)
class NewEpoch:
    """One epoch to be written: by append, or in place of everything before it."""

    number: int
    metadata: Mapping[str, Any] = field(hash=False)
    overwrite: bool
    rows_hint: int | None = None
    may_be_fetched: bool = False
    """Whether to try and write it here, if it may well be small."""

    @property
    def point(self) -> str:
        return "trace.replace" if self.overwrite else "trace.append"

    def is_in(self, state: TraceCommit) -> bool:
        """Whether a state is the one that this epoch made."""
        mine = json.loads(json.dumps(dict(self.metadata)))
        return (state.epoch, state.metadata) == (self.number, mine)

    def state(self, last: TraceCommit | None, stats: AppendStats) -> TraceCommit:
        """The state of the trace once this epoch is committed."""
        since = self.number if self.overwrite else last.since if last else self.number - 1
        before = last.rows if last else 0
        rows = None if before is None else before + stats.rows_inserted - stats.rows_deleted
        # Nothing is there before the first epoch, so nothing is there twice.
        is_unique = not self.overwrite and (last is None or last.is_unique)
        counts = (stats.rows_inserted, stats.rows_deleted, rows)
        apart = stats.rows_inserted if self.overwrite else last.apart if last else 0
        return TraceCommit(
            -1, self.number, since, dict(self.metadata), *counts, is_unique, apart=apart
        )


@dataclass(frozen=True, slots=True)
class _Written:
    """The files of an epoch that is not committed yet."""

    run: Run
    stats: AppendStats
    schema: StructType


def write_epoch(
    log: DeltaLog, incarnation: str, layout: Layout, df: DataFrame, epoch: NewEpoch
) -> AppendStats:
    """Write and commit an epoch; one that is already there is left alone."""
    last = newest_state(log)
    if replay := _replay(last, epoch.number):
        return replay
    frame = with_trace_columns(df, layout, epoch.number)
    if not log.is_local:
        return _append_by_delta(log, incarnation, frame, epoch, last)
    written = _written(log, layout, frame, epoch, last)
    reach(f"{epoch.point}.written")
    stats = written.stats
    if epoch.overwrite and last is not None and last.rows is not None:
        stats = replace(stats, rows_deleted=last.rows)
    if not _commit_run(log, incarnation, epoch, replace(written, stats=stats)):
        written.run.discard()
        return _replay(newest_state(log), epoch.number) or AppendStats(0, 0, is_new=False)
    reach(f"{epoch.point}.committed")
    return stats


def _written(
    log: DeltaLog, layout: Layout, frame: DataFrame, epoch: NewEpoch, last: TraceCommit | None
) -> _Written:
    start = perf_counter()
    is_tried = epoch.may_be_fetched and is_expected(last, layout.stored, epoch.rows_hint)
    rows = fetched_epoch(frame, layout.stored) if is_tried else None
    if rows is not None:
        run = write_rows(rows, log)
        stats = AppendStats(*weights_of(rows), seconds=perf_counter() - start)
        return _Written(run, stats, frame.schema)
    if epoch.rows_hint is not None and epoch.rows_hint <= _ONE_FILE_ROWS:
        frame = frame.coalesce(1)
    counts = Observation()
    run = write_run(frame.observe(counts, *_counters()), log)
    stats = _counted(counts, perf_counter() - start)
    is_small = is_few(stats.rows_inserted + stats.rows_deleted)
    return _Written(run, replace(stats, is_long=is_tried and is_small), frame.schema)


def _commit_run(log: DeltaLog, incarnation: str, epoch: NewEpoch, written: _Written) -> bool:
    adds = written.run.adds(data_change=True)

    def propose(last: TraceCommit | None) -> Proposal | None:
        if last is not None and last.newest >= epoch.number:
            return None
        state = epoch.state(last, written.stats)
        return Proposal(adds, state, overwrite=epoch.overwrite, app_id=incarnation)

    return commit(log, _nullable_json(written.schema), propose)


def _append_by_delta(
    log: DeltaLog, incarnation: str, frame: DataFrame, epoch: NewEpoch, last: TraceCommit | None
) -> AppendStats:
    # Slower by a second, but goes wherever Spark can write.
    start, counts = perf_counter(), Observation()
    writer = (
        frame.observe(counts, *_counters())
        .write.format("delta")
        .mode("overwrite" if epoch.overwrite else "append")
    )
    options = {
        "txnAppId": incarnation,
        "txnVersion": str(epoch.number),
        # The counts are only known once the commit is there.
        "userMetadata": replace(epoch.state(last, AppendStats(0, 0)), rows=None).to_json(),
        **(PROPERTIES if last is None else {}),
    }
    writer.options(**options).save(log.path)
    if (found := newest_state(log)) is None or not epoch.is_in(found):
        # Delta itself passed it over: its number was used up meanwhile.
        return AppendStats(0, 0, is_new=False)
    return _counted(counts, perf_counter() - start)


def _replay(last: TraceCommit | None, epoch: int) -> AppendStats | None:
    if last is None or last.newest < epoch:
        return None
    if last.epoch != epoch:
        return AppendStats(0, 0, is_new=False)
    return AppendStats(last.rows_inserted, last.rows_deleted, is_new=False)


def _counters() -> tuple[Column, Column]:
    return (
        sf.expr(f"coalesce(sum(CASE WHEN {WEIGHT} > 0 THEN {WEIGHT} END), 0) AS inserted"),
        sf.expr(f"coalesce(-sum(CASE WHEN {WEIGHT} < 0 THEN {WEIGHT} END), 0) AS deleted"),
    )


def _counted(counts: Observation, seconds: float) -> AppendStats:
    inserted, deleted = (int(counts.get[name]) for name in ("inserted", "deleted"))
    return AppendStats(inserted, deleted, seconds=seconds)


def _nullable_json(schema: StructType) -> str:
    return StructType([StructField(f.name, f.dataType, True) for f in schema]).json()
