"""A definition brought back in step with sources that were replaced or changed their shape."""

from __future__ import annotations

from dataclasses import replace

from runnel.catalog import StreamTable
from runnel.errors import RunnelError, SourceError
from runnel.refresh.definition import Definition, define
from runnel.refresh.workspace import Workspace


def rebuild_definition(workspace: Workspace, table: StreamTable) -> StreamTable:
    """Compile the query against the sources as they are now.

    When it still gives the same stored columns the trace goes on; else it no longer fits.
    """
    workspace.compiled.pop(table.incarnation, None)
    try:
        with workspace.worker(table.settings, adaptive=True) as spark:
            definition = define(workspace, spark, table.query)
    except RunnelError as error:
        raise SourceError(
            f"the query of {table.name} no longer fits its sources",
            detail=str(error.primary),
            hint=f"restore the source, or define it again: ALTER STREAM TABLE {table.name} AS ...",
        ) from error
    if definition.layout != table.layout:
        raise _other_columns(table, definition)
    if definition.sources == table.sources:
        return table
    renewed = replace(table, sources=definition.sources)
    workspace.catalog.redefine_table(renewed)
    return renewed


def _other_columns(table: StreamTable, definition: Definition) -> SourceError:
    before = ", ".join(f"{c.name} {c.type}" for c in table.layout.columns)
    after = ", ".join(f"{c.name} {c.type}" for c in definition.layout.columns)
    return SourceError(
        f"the query of {table.name} no longer gives the stored columns",
        detail=f"stored: {before}; now: {after}",
        hint=f"accept the new columns with ALTER STREAM TABLE {table.name} AS {table.written}",
    )
