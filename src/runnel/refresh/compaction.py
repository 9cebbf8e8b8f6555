"""When and how far a trace is tidied: compacted, but never past an epoch that a consumer needs."""

from __future__ import annotations

from datetime import timedelta
from time import perf_counter

from runnel.catalog import StreamTable
from runnel.errors import Busy
from runnel.model.results import CompactResult
from runnel.refresh.attempt import lease_of, recover
from runnel.refresh.workspace import Workspace

_SMALL = 100_000
# Opening a file takes about 5 ms, and a read opens each up to three times.
MANY_FILES = 8


def compact_table(workspace: Workspace, table: StreamTable, wait: float) -> CompactResult:
    """Rewrite what no consumer tells apart any more into one run."""
    with workspace.leases.hold(lease_of(table.id), wait=wait):
        start = perf_counter()
        table = recover(workspace, workspace.catalog.get(table.id) or table)
        since = safe_epoch(workspace, table)
        if table.epoch == 0 or since <= 0:
            return CompactResult(str(table.name), False, "nothing is stored yet")
        trace = workspace.trace(table)
        with workspace.worker(table.settings, adaptive=True) as spark:
            stats = trace.compact(spark, since)
        last = trace.last_commit()
        assert last is not None
        assert table.frontier is not None
        workspace.catalog.record_progress(
            table.id, table.frontier, table.epoch, last.since, trace.log.latest_version(),
            incarnation=table.incarnation, is_noticed=True,
        )  # fmt: skip
        trace.vacuum(timedelta(hours=workspace.settings.trace_retention_hours))
        return CompactResult(
            str(table.name), stats.is_done, f"epochs up to {last.since}", last.since,
            stats.files_before, stats.files_after, stats.rows_before, stats.rows_after,
            perf_counter() - start,
        )  # fmt: skip


def merge_table(workspace: Workspace, table: StreamTable, wait: float) -> bool:
    """Make one file of the small ones that refreshes left; all epochs can still be told apart."""
    with workspace.leases.hold(lease_of(table.id), wait=wait):
        table = recover(workspace, workspace.catalog.get(table.id) or table)
        trace = workspace.trace(table)
        with workspace.worker(table.settings, adaptive=False) as spark:
            is_merged = trace.merge(spark)
        if is_merged and table.frontier is not None:
            workspace.catalog.record_progress(
                table.id, table.frontier, table.epoch, table.since, trace.log.latest_version(),
                incarnation=table.incarnation,
            )  # fmt: skip
        return is_merged


def tidy_when_due(workspace: Workspace, table_id: str) -> str | None:
    """Compact or merge after a refresh when reading has become dear; what was done, in a word.

    Never waits, never fails a refresh.
    """
    table = workspace.catalog.get(table_id)
    if table is None or table.epoch == 0:
        return None
    try:
        if is_due(workspace, table):
            return "compacted" if compact_table(workspace, table, wait=0.0).compacted else None
        if workspace.trace(table).small_files(table.epoch) >= MANY_FILES:
            return "merged" if merge_table(workspace, table, wait=0.0) else None
    except Busy:
        pass
    return None


def is_due(workspace: Workspace, table: StreamTable) -> bool:
    """Many epochs, or many rows that only cancel others; small tables read fast as they are."""
    settings = workspace.settings
    if table.epoch - table.since < 2:
        return False
    epochs = safe_epoch(workspace, table) - table.since
    if epochs >= settings.compact_after_epochs:
        return True
    trace = workspace.trace(table)
    superseded = 2 * trace.negative_rows(table.epoch)
    return (
        epochs > 0
        and superseded > _SMALL
        and superseded > settings.compact_share * trace.row_estimate(table.epoch)
    )


def safe_epoch(workspace: Workspace, table: StreamTable) -> int:
    """The newest epoch that every consumer has passed."""
    needed = [table.epoch]
    for consumer in workspace.catalog.dependents(table.id):
        pin = consumer.frontier.pins.get(table.name.key) if consumer.frontier else None
        if pin is not None and pin.identity == table.incarnation:
            needed.append(pin.version)
    return min(needed)
