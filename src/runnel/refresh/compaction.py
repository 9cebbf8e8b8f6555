"""When and how far a trace is tidied: compacted, but never past an epoch that a consumer needs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from time import perf_counter, time

from runnel.catalog import StreamTable, holds_on
from runnel.errors import Busy, InternalFault
from runnel.lake.frames import SparkSession
from runnel.lake.session import translate
from runnel.lake.trace import CompactStats, TraceCommit
from runnel.model.results import TIDYING, CompactResult
from runnel.refresh.attempt import lease_of
from runnel.refresh.recovery import recover
from runnel.refresh.superseded import is_much
from runnel.refresh.workspace import Workspace
from runnel.refresh.wrong_contents import note_wrong

_log = logging.getLogger("runnel")
# Opening a file takes about 5 ms, and a read opens each up to three times.
MANY_FILES = 8


def compact_table(workspace: Workspace, known: StreamTable, wait: float) -> CompactResult:
    """Rewrite what no consumer tells apart any more into one run."""
    with _held(workspace, known, wait) as table:
        start = perf_counter()
        since = safe_epoch(workspace, table)
        if table.epoch == 0 or since <= 0:
            return CompactResult(str(table.name), False, "nothing is stored yet")
        trace = workspace.trace(table)
        stats = _compacted(workspace, table, since)
        done = _record(workspace, table, is_noticed=True)
        trace.vacuum(_retention(workspace, table))
        return CompactResult(
            str(table.name), stats.is_done, f"epochs up to {done.since}", done.since,
            stats.files_before, stats.files_after, stats.rows_before, stats.rows_after,
            perf_counter() - start,
        )  # fmt: skip


def merge_table(workspace: Workspace, known: StreamTable, wait: float) -> None:
    """Make one file of the small ones that refreshes left; all epochs can still be told apart."""
    with _held(workspace, known, wait) as table:
        with workspace.worker(table.settings, adaptive=False) as spark:
            is_merged = workspace.trace(table).merge(spark)
        if is_merged:
            _record(workspace, table, is_noticed=table.grouped)


def _compacted(workspace: Workspace, table: StreamTable, since: int) -> CompactStats:
    """The one place where all rows are netted: here it shows when a total is negative."""
    with workspace.worker(table.settings, adaptive=True) as spark:
        try:
            return workspace.trace(table).compact(spark, since)
        except Exception as error:
            told = translate(error)
            if isinstance(told, InternalFault):
                _note_if_lasting(workspace, spark, table, told)
            raise told from error


def _note_if_lasting(
    workspace: Workspace, spark: SparkSession, table: StreamTable, fault: InternalFault
) -> None:
    """A later epoch that consumers have not read yet may have put it right already."""
    try:
        workspace.trace(table).net_rows(spark, table.epoch)
    except Exception:
        note_wrong(workspace, table, fault)


def tidy_when_due(workspace: Workspace, table_id: str) -> None:
    """Compact or merge after a refresh when reading has become dear; never waits.

    The refresh is done and stays so: what goes wrong here is told to the log, and tried again; what
    it shows to be wrong with the contents is noted with the table. How
    long it took is noted with the refresh that it follows.
    """
    table = workspace.catalog.get(table_id)
    if table is None or table.epoch == 0:
        return
    start = perf_counter()
    try:
        if is_due(workspace, table):
            compact_table(workspace, table, wait=0.0)
        elif workspace.trace(table).small_files(table.epoch) >= MANY_FILES:
            merge_table(workspace, table, wait=0.0)
        else:
            return
        workspace.catalog.note_phase(table_id, table.epoch, TIDYING, perf_counter() - start)
    except Busy:
        pass
    except Exception as error:
        _log.warning("%s was refreshed but not tidied: %s", table.name, translate(error))


@contextmanager
def _held(workspace: Workspace, known: StreamTable, wait: float) -> Iterator[StreamTable]:
    """The table as it is now, under its lease."""
    with workspace.leases.hold(lease_of(known.id), wait=wait) as lease:
        yield recover(workspace, workspace.catalog.get(known.id) or known, lease)


def _record(workspace: Workspace, table: StreamTable, is_noticed: bool) -> TraceCommit:
    last = workspace.trace(table).last_commit()
    assert last is not None
    workspace.catalog.record_tidied(table, last.since, last.version, is_noticed=is_noticed)
    return last


def is_due(workspace: Workspace, table: StreamTable) -> bool:
    """Many epochs, or many rows that only cancel others; small tables read fast as they are."""
    settings = workspace.settings
    if table.epoch - table.since < 2:
        return False
    # What lies behind it, such as all that this refresh brought to a table with consumers, a
    # compaction would rewrite and keep.
    upto = safe_epoch(workspace, table)
    if upto - table.since >= settings.compact_after_epochs:
        return True
    trace = workspace.trace(table)
    superseded = trace.superseded_rows(upto)
    return upto > table.since and is_much(settings, superseded, trace.row_estimate(upto))


def _retention(workspace: Workspace, table: StreamTable) -> timedelta:
    """How long replaced files stay: as long as is set, and as any snapshot is open."""
    retention = timedelta(hours=workspace.settings.trace_retention_hours)
    open_since = [h.opened_at for h in holds_on(workspace.catalog, workspace.leases, table)]
    margin = timedelta(hours=1)
    return max([retention, *(timedelta(seconds=time() - at) + margin for at in open_since)])


def safe_epoch(workspace: Workspace, table: StreamTable) -> int:
    """The newest epoch that every consumer and every open snapshot has passed."""
    needed = [table.epoch]
    needed += [hold.epoch for hold in holds_on(workspace.catalog, workspace.leases, table)]
    for consumer in workspace.catalog.dependents(table.id):
        pin = consumer.frontier.pins.get(table.name.key) if consumer.frontier else None
        if pin is not None and pin.identity == table.incarnation:
            needed.append(pin.version)
    return min(needed)
