"""The folder of one life of a table: who fills it, and its end."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import replace

from runnel.catalog import StreamTable
from runnel.refresh.workspace import Workspace


def fresh_incarnation(table: StreamTable) -> StreamTable:
    """A new life: nothing stored yet."""
    return replace(
        table, incarnation=uuid.uuid4().hex, frontier=None, epoch=0, since=0, trace_version=-1,
        reinitialize=None, consecutive_errors=0, last_error=None,
    )  # fmt: skip


def remove_storage(workspace: Workspace, incarnation: str) -> None:
    workspace.compiled.pop(incarnation, None)
    shutil.rmtree(workspace.traces_path / incarnation, ignore_errors=True)


def storage_lease(incarnation: str) -> str:
    """Held while a folder is filled that the catalog does not know yet."""
    return f"storage:{incarnation}"
