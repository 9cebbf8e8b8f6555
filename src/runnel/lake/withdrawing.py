"""Taking back the last epoch of a trace: its files leave the log, its number stays used up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import SparkSession

from runnel.lake.commits import Proposal, TraceCommit, commit, remove_action
from runnel.lake.log import DataFile, DeltaLog
from runnel.model.columns import EPOCH
from runnel.model.failpoints import reach


def withdraw(
    log: DeltaLog,
    spark: Callable[[], SparkSession],
    pending: TraceCommit,
    before: TraceCommit | None,
) -> bool:
    """Put the state `before` (None: nothing) in the place of `pending`, in one commit.

    False when `pending` is not the last epoch any more: then it is no longer ours to take back.
    """
    base = before or TraceCommit(-1, 0, 0, {}, rows=0)
    state = replace(base, used=max(base.used, pending.epoch))
    snapshot = log.snapshot(log.latest_version())
    files = [file for file in snapshot.files if _reaches(file, state.epoch)]
    if not log.is_local or any(file.minimum.get(EPOCH, 0) <= state.epoch for file in files):
        return _withdraw_by_delta(log, spark(), pending, state)

    def propose(last: TraceCommit | None) -> Proposal | None:
        if last is None or (last.epoch, last.group) != (pending.epoch, pending.group):
            return None
        return Proposal([], state, [remove_action(log, file) for file in files])

    is_done = commit(log, snapshot.schema_json, propose)
    reach("trace.withdrawn")
    return is_done


def _reaches(file: DataFile, epoch: int) -> bool:
    """Whether a file holds rows of a later epoch."""
    return bool(file.maximum.get(EPOCH, epoch + 1) > epoch)


def _withdraw_by_delta(
    log: DeltaLog, spark: SparkSession, pending: TraceCommit, state: TraceCommit
) -> bool:
    # Where Delta itself writes, or someone rewrote files of several epochs into one.
    last = TraceCommit.from_json(log.latest_version(), log.user_metadata(log.latest_version()))
    if last is not None and (last.epoch, last.group) != (pending.epoch, pending.group):
        return False
    empty = spark.read.format("delta").load(log.path).where("false")
    writer = empty.write.format("delta").mode("overwrite")
    writer = writer.option("replaceWhere", f"{EPOCH} > {state.epoch}")
    writer.option("userMetadata", state.to_json()).save(log.path)
    return True
