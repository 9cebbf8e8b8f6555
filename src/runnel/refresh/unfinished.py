"""What killed refreshes and compactions left inside a table's storage.

Files that were written and never committed, and epochs of groups that never became visible. The
next refresh of such a table would take these back; here nobody needs to wait for it, and no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from runnel.catalog import Lease, StreamTable
from runnel.errors import Busy, SourceError
from runnel.lake.vacuum import remove_folders, run_folders, unnamed
from runnel.refresh.attempt import lease_of
from runnel.refresh.recovery import pending, recover
from runnel.refresh.workspace import Workspace


def unfinished_writes(workspace: Workspace) -> list[StreamTable]:
    """The tables with something like that, except those that someone is just working on."""
    return [table for table in workspace.catalog.tables() if _is_left(workspace, table)]


def remove_unfinished(
    workspace: Workspace, tables: Iterable[StreamTable] | None = None
) -> list[StreamTable]:
    """Undo such writes (of all tables, or of some); who had any is returned.

    Whoever writes into a table holds its lease, so that under it nothing is being written.
    """
    removed = []
    for table in workspace.catalog.tables() if tables is None else tables:
        if not _is_left(workspace, table):
            continue
        try:
            with workspace.leases.hold(lease_of(table.id)) as lease:
                known = workspace.catalog.get(table.id)
                if known is not None and _remove(workspace, known, lease):
                    removed.append(table)
        except Busy:
            continue
    return removed


def _is_left(workspace: Workspace, table: StreamTable) -> bool:
    log = workspace.trace(table).log
    folders, is_pending = run_folders(log), _is_pending(workspace, table)
    # In this order: what is there and has no writer any more is in the log, or never will be.
    if not (folders or is_pending) or workspace.leases.is_held(lease_of(table.id)):
        return False
    return is_pending or bool(unnamed(log, folders) & run_folders(log))


def _is_pending(workspace: Workspace, table: StreamTable) -> bool:
    try:
        return pending(workspace, table) is not None
    except SourceError:
        # Whose storage is gone is told as such.
        return False


def _remove(workspace: Workspace, table: StreamTable, lease: Lease) -> bool:
    is_undone = _is_pending(workspace, table) and _take_back(workspace, table, lease)
    log = workspace.trace(table).log
    folders = unnamed(log, run_folders(log))
    remove_folders(folders)
    return is_undone or bool(folders)


def _take_back(workspace: Workspace, table: StreamTable, lease: Lease) -> bool:
    try:
        recover(workspace, table, lease, _no_spark)
    except _NeedsSpark:
        return False
    return True


class _NeedsSpark(Exception):
    """Left to the next refresh: someone put rows of several epochs into one file."""


def _no_spark() -> NoReturn:
    raise _NeedsSpark
