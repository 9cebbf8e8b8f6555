"""A definition brought back in step with sources that were replaced or changed their shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from runnel.catalog import Source, StreamTable
from runnel.errors import NotDifferentiable, RunnelError, SourceError
from runnel.refresh.definition import Definition, define
from runnel.refresh.workspace import Workspace


def rebuild_definition(
    workspace: Workspace,
    table: StreamTable,
    reason: str,
    accept: Callable[[Sequence[Source]], None],
) -> StreamTable:
    """Compile the query against the sources and views as they are now.

    When it still gives the same stored columns the trace goes on; else it no longer fits. A changed
    definition is recorded with the reason to reinitialise, so that no refresh forgets it; `accept`
    raises for sources that it cannot have.
    """
    workspace.compiled.pop(table.incarnation, None)
    try:
        with workspace.worker(table.settings, adaptive=True) as spark:
            definition = define(workspace, spark, table.query, table)
    except RunnelError as error:
        raise SourceError(
            f"the query of {table.name} no longer fits its sources",
            detail=str(error.primary),
            hint=f"restore the source, or define it again: ALTER STREAM TABLE {table.name} AS ...",
        ) from error
    if definition.layout != table.layout:
        raise _other_columns(table, definition)
    if table.mode.is_strict and definition.refusal is not None:
        raise _no_longer_differential(table, definition.refusal)
    accept(definition.sources)
    renewed = replace(
        table, sources=definition.sources, resolution=definition.resolution,
        not_differential=definition.not_differential,
    )  # fmt: skip
    if renewed == table:
        return table
    renewed = replace(renewed, reinitialize=table.reinitialize or reason)
    workspace.catalog.redefine_table(renewed)
    return renewed


def _other_columns(table: StreamTable, definition: Definition) -> SourceError:
    before = ", ".join(f"{c.name} {c.type}" for c in table.layout.columns)
    after = ", ".join(f"{c.name} {c.type}" for c in definition.layout.columns)
    detail = f"stored: {before}; now: {after}"
    if before == after:
        detail = "it shows the same columns, but what has to be kept for them is something else"
    return SourceError(
        f"the query of {table.name} no longer gives the stored columns",
        detail=detail,
        hint=f"accept the new columns with ALTER STREAM TABLE {table.name} AS {table.written}",
    )


def _no_longer_differential(table: StreamTable, refusal: NotDifferentiable) -> SourceError:
    return SourceError(
        f"the query of {table.name} can no longer be refreshed differentially",
        detail=refusal.primary,
        hint=f"ALTER STREAM TABLE {table.name} SET REFRESH MODE AUTO, or bring back the view or "
        "source it had",
    )
