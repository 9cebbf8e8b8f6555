"""What a trace's log says when the catalog does not know it yet, taken over or taken back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from runnel.catalog import Lease, StreamTable
from runnel.catalog.records import AttemptFields
from runnel.errors import NotFound, SourceError
from runnel.lake.frames import SparkSession
from runnel.lake.trace import TraceCommit
from runnel.model.frontier import Frontier
from runnel.model.refresh import RefreshAction
from runnel.refresh.workspace import Workspace


def current(workspace: Workspace, table_id: str) -> StreamTable:
    """The table as the catalog has it now."""
    table = workspace.catalog.get(table_id)
    if table is None:
        raise NotFound("the stream table was dropped meanwhile")
    return table


def recover(
    workspace: Workspace,
    table: StreamTable,
    lease: Lease | None,
    spark: Callable[[], SparkSession] | None = None,
) -> StreamTable:
    """Bring catalog and trace in step; for who holds the table's lease (None: nobody else can).

    An epoch whose group did not become visible is taken back: with the lease in hand nobody is
    working on it any more, and the next refresh computes it again from the same sources or newer.
    """
    if (last := pending(workspace, table)) is not None:
        # Lost meanwhile, it is the epoch of whoever works on the table now.
        if lease is not None:
            lease.check()
        workspace.trace(table).withdraw(spark or (lambda: workspace.nameless_spark), last)
    return catch_up(workspace, table)


def pending(workspace: Workspace, table: StreamTable) -> TraceCommit | None:
    """The last commit, when it waits for a group that did not become visible."""
    if _version(workspace, table) == table.trace_version:
        return None
    trace = workspace.trace(table)
    last = trace.last_commit()
    return last if last is not None and trace.is_pending(last, table.epoch) else None


def catch_up(workspace: Workspace, table: StreamTable) -> StreamTable:
    """Take over what became visible by its commit alone; readers may do this without a lease."""
    trace = workspace.trace(table)
    if _version(workspace, table) == table.trace_version:
        return table
    last = trace.last_commit()
    if last is None or last.epoch == 0 or trace.is_pending(last, table.epoch):
        return table
    return _take_over(workspace, table, last)


def _take_over(workspace: Workspace, table: StreamTable, last: TraceCommit) -> StreamTable:
    frontier = Frontier.from_json(last.metadata["frontier"])
    is_known = table.frontier and table.frontier.data_timestamp >= frontier.data_timestamp
    if is_known and last.epoch == table.epoch:
        is_noticed = table.grouped
        workspace.catalog.record_tidied(table, last.since, last.version, is_noticed=is_noticed)
        return current(workspace, table.id)
    is_anew = last.epoch > table.epoch and last.metadata.get("action") == RefreshAction.REINITIALIZE
    is_new = workspace.catalog.record_progress(
        table.id, frontier, last.epoch, last.since, last.version,
        incarnation=table.incarnation, is_noticed=table.grouped, known_epoch=table.epoch,
        done=last.metadata["reason"] if is_anew else None,
    )  # fmt: skip
    if is_new and last.epoch > table.epoch and "attempt" in last.metadata:
        _complete(workspace, table, last, frontier)
    return current(workspace, table.id)


def _complete(
    workspace: Workspace, table: StreamTable, last: TraceCommit, frontier: Frontier
) -> None:
    """Close the attempt of a refresh that ended, by a kill for one, before it could do so."""
    is_counted = last.rows is not None
    fields: AttemptFields = {
        "action": RefreshAction(last.metadata["action"]), "reason": last.metadata["reason"],
        "rows_inserted": last.rows_inserted if is_counted else None,
        "rows_deleted": last.rows_deleted if is_counted else None,
        "frontier": frontier, "epoch": last.epoch,
    }  # fmt: skip
    at = _committed_at(workspace, table, last)
    workspace.catalog.complete_attempt(last.metadata["attempt"], table.id, at, fields)


def _committed_at(workspace: Workspace, table: StreamTable, last: TraceCommit) -> datetime:
    try:
        milliseconds = workspace.trace(table).log.timestamp(last.version)
    except SourceError:
        # Only logs on a local disk are read entry by entry.
        return datetime.now(UTC)
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _version(workspace: Workspace, table: StreamTable) -> int | None:
    """The newest version of the trace; None when a table that was never filled has none."""
    trace = workspace.trace(table)
    try:
        return trace.log.latest_version()
    except SourceError:
        if table.epoch == 0:
            return None
        raise SourceError(
            f"the storage of {table.name} is gone",
            detail=f"there is no Delta table at {trace.path}",
            hint=f"DROP STREAM TABLE {table.name} and create it again",
        ) from None
