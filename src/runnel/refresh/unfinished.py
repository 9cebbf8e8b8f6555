"""Files inside a table's storage that a killed refresh or compaction wrote and never committed."""

from __future__ import annotations

from collections.abc import Iterable

from runnel.catalog import StreamTable
from runnel.errors import Busy
from runnel.lake.vacuum import remove_folders, run_folders, unnamed
from runnel.refresh.attempt import lease_of
from runnel.refresh.workspace import Workspace


def unfinished_writes(workspace: Workspace) -> list[StreamTable]:
    """The tables with such files, except those that someone is just working on."""
    return [table for table in workspace.catalog.tables() if _is_left(workspace, table)]


def remove_unfinished(
    workspace: Workspace, tables: Iterable[StreamTable] | None = None
) -> list[StreamTable]:
    """Delete the files of such writes (of all tables, or of some); who had any is returned.

    Whoever writes into a table holds its lease, so that under it nothing is being written.
    """
    removed = []
    for table in workspace.catalog.tables() if tables is None else tables:
        if not _is_left(workspace, table):
            continue
        try:
            with workspace.leases.hold(lease_of(table.id)):
                if workspace.catalog.get(table.id) is not None and _remove(workspace, table):
                    removed.append(table)
        except Busy:
            continue
    return removed


def _is_left(workspace: Workspace, table: StreamTable) -> bool:
    log = workspace.trace(table).log
    folders = run_folders(log)
    # In this order: what is there and has no writer any more is in the log, or never will be.
    if not folders or workspace.leases.is_held(lease_of(table.id)):
        return False
    return bool(unnamed(log, folders) & run_folders(log))


def _remove(workspace: Workspace, table: StreamTable) -> bool:
    log = workspace.trace(table).log
    folders = unnamed(log, run_folders(log))
    remove_folders(folders)
    return bool(folders)
