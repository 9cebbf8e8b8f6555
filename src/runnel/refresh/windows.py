"""How each source moved between two frontiers, found without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runnel.catalog import Source, StreamTable
from runnel.lake import changes
from runnel.lake.changes import ChangeKind
from runnel.model.frontier import Pin
from runnel.refresh.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Window:
    """One source over (old, new]; `rows` bounds its changed rows."""

    source: Source
    old: Pin | None
    new: Pin
    kind: ChangeKind
    rows: int = 0
    insert_only: bool = False
    reason: str | None = None

    @property
    def is_changed(self) -> bool:
        return self.kind is not ChangeKind.NONE


def window_of(workspace: Workspace, table: StreamTable, source: Source, new: Pin) -> Window:
    """Classify what happened to a source since the table's frontier."""
    old = table.frontier.pins.get(source.key) if table.frontier else None
    if old is None:
        return Window(source, None, new, ChangeKind.REPLACED, reason="it was never read before")
    if old == new:
        return Window(source, old, new, ChangeKind.NONE)
    if source.kind == "stream":
        return _trace_window(workspace, source, old, new)
    log = workspace.log(source.location or "")
    if new.identity != old.identity:
        reason = "the table was dropped and created again"
        return Window(source, old, new, ChangeKind.REPLACED, reason=reason)
    info = changes.inspect(log, old, new.version, source.columns)
    return Window(source, old, new, info.kind, info.rows, info.insert_only, info.reason)


def total_rows(workspace: Workspace, source: Source, pin: Pin) -> int:
    """How many rows a source has, from statistics."""
    if source.kind == "stream":
        table = workspace.upstream(source)
        return workspace.trace(table).row_estimate(pin.version) if table else 0
    snapshot = workspace.log(source.location or "").snapshot(pin.version)
    return sum(f.rows if f.rows is not None else f.size // 32 for f in snapshot.files)


def row_bytes(workspace: Workspace, source: Source) -> int:
    """How many bytes a row of a source takes in its files, on average."""
    if source.kind == "stream":
        table = workspace.upstream(source)
        log = workspace.trace(table).log if table else None
    else:
        log = workspace.log(source.location or "")
    files = log.snapshot(log.latest_version()).files if log else ()
    rows = sum(file.rows or 0 for file in files)
    return sum(file.size for file in files) // max(1, rows)


def problems(windows: Mapping[str, Window]) -> str | None:
    """Why the windows cannot be bridged differentially, if they cannot."""
    for window in windows.values():
        if window.kind in (ChangeKind.LOST, ChangeKind.REPLACED, ChangeKind.SCHEMA):
            name = "a part of the query" if window.source.is_part else window.source.name
            return f"{name}: {window.reason}"
    return None


def _trace_window(workspace: Workspace, source: Source, old: Pin, new: Pin) -> Window:
    table = workspace.upstream(source)
    if table is None or new.identity != old.identity:
        reason = "its query was replaced"
        return Window(source, old, new, ChangeKind.REPLACED, reason=reason)
    if old.version < table.since:
        reason = "the epochs in between were compacted or replaced"
        return Window(source, old, new, ChangeKind.LOST, reason=reason)
    rows = workspace.trace(table).window_rows(old.version, new.version)
    kind = ChangeKind.ROWS if rows else ChangeKind.NONE
    return Window(source, old, new, kind, rows)
