"""When and how far a trace is compacted: never past an epoch that a consumer still needs."""

from __future__ import annotations

from datetime import timedelta
from time import perf_counter

from runnel.catalog import StreamTable
from runnel.errors import Busy
from runnel.model.results import CompactResult
from runnel.refresh.attempt import lease_of, recover
from runnel.refresh.workspace import Workspace

_SMALL = 100_000


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
            incarnation=table.incarnation,
        )  # fmt: skip
        trace.vacuum(timedelta(hours=workspace.settings.trace_retention_hours))
        return CompactResult(
            str(table.name), stats.is_done, f"epochs up to {since}", since,
            stats.files_before, stats.files_after, stats.rows_before, stats.rows_after,
            perf_counter() - start,
        )  # fmt: skip


def compact_when_due(workspace: Workspace, table_id: str) -> CompactResult | None:
    """Compact after a refresh when reading has become dear; never waits, never fails a refresh."""
    table = workspace.catalog.get(table_id)
    if table is None or not is_due(workspace, table):
        return None
    try:
        return compact_table(workspace, table, wait=0.0)
    except Busy:
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
