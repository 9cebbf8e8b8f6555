"""A lost catalog, built again from the definitions and the traces that it spoke of."""

from __future__ import annotations

from dataclasses import dataclass, replace

from runnel.catalog import StreamTable
from runnel.errors import RunnelError
from runnel.model.refresh import TableState
from runnel.refresh.lifecycle import storage_is_missing
from runnel.refresh.recovery import recover
from runnel.refresh.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The tables that are known again, those to be filled anew, and what could not be taken."""

    tables: tuple[str, ...]
    empty: tuple[str, ...]
    lost: tuple[str, ...]


def rebuild_catalog(workspace: Workspace) -> Rebuilt:
    """Take in definitions that the catalog does not have, and their progress from the traces."""
    known: list[StreamTable] = []
    definitions = workspace.catalog.definitions
    lost = list(definitions.load()[1]) if definitions else []
    for table in workspace.catalog.unknown_definitions():
        try:
            known.append(_taken(workspace, table))
        except RunnelError as error:
            lost.append(f"{table.name}: {error.primary}")
    empty = tuple(t.label for t in known if t.epoch == 0)
    return Rebuilt(tuple(t.label for t in known), empty, tuple(lost))


def _taken(workspace: Workspace, table: StreamTable) -> StreamTable:
    if storage_is_missing(workspace, table):
        table = replace(
            table, frontier=None, epoch=0, since=0, trace_version=-1,
            state=TableState.UNINITIALIZED,
        )  # fmt: skip
    workspace.catalog.add_table(table)
    _register_sources(workspace, table)
    return recover(workspace, table, None)


def _register_sources(workspace: Workspace, table: StreamTable) -> None:
    """Tables outside the lake's folder are known by name because the catalog says so."""
    for source in table.sources:
        if source.kind == "delta" and source.location and _is_outside(source.location):
            workspace.catalog.register_base_table(source.name, source.location)


def _is_outside(location: str) -> bool:
    return "://" in location or location.startswith(("/", "file:"))
