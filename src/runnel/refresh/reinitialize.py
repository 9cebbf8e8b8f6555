"""A definition brought back in step with sources that were replaced or changed their shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from runnel.catalog import READS, Source, StreamTable
from runnel.errors import NotDifferentiable, NotFound, RunnelError, SourceError
from runnel.lake.frames import SparkSession
from runnel.model.alerts import AlertKind
from runnel.model.columns import Layout
from runnel.refresh.component import component_of, define_component
from runnel.refresh.definition import define
from runnel.refresh.storage import fresh_incarnation
from runnel.refresh.workspace import Workspace


def rebuild_definition(
    workspace: Workspace,
    table: StreamTable,
    reason: str,
    accept: Callable[[Sequence[Source]], None],
) -> StreamTable:
    """Compile the query against the sources and views as they are now.

    When it still gives the same stored columns the trace goes on. When it only shows the same, or
    is a part of a query, which has columns for that query only, the table that is given has a new
    life, of which nothing is recorded yet. Else it no longer fits. A changed definition is recorded
    with the reason to reinitialise, so that no refresh forgets it; `accept` raises for sources that
    it cannot have.
    """
    workspace.compiled.pop(table.incarnation, None)
    try:
        with workspace.worker(table.settings, adaptive=True) as spark:
            renewed, refusal = _defined_anew(workspace, spark, table)
    except RunnelError as error:
        raise SourceError(
            f"the query of {table.label} no longer fits its sources",
            detail=str(error.primary),
            hint=f"restore the source, or define it again: ALTER STREAM TABLE {table.owner} AS ...",
        ) from error
    is_other = renewed.layout != table.layout or _tags(renewed) != _tags(table)
    if is_other and table.part_of is None and not _shows_the_same(renewed, table):
        raise other_columns(table, renewed.layout)
    if table.mode.is_strict and refusal is not None:
        raise _no_longer_differential(table, refusal)
    accept(renewed.sources)
    if is_other:
        return fresh_incarnation(renewed)
    if renewed == table:
        return table
    if not _means_the_same(renewed, table):
        renewed = replace(renewed, reinitialize=table.reinitialize or reason)
    workspace.catalog.renew_definition(renewed)
    if renewed.reinitialize is None:
        same = "its views mean again what they meant"
        workspace.alerts.emit(AlertKind.REINITIALIZED, table.label, same)
    return renewed


def _shows_the_same(renewed: StreamTable, table: StreamTable) -> bool:
    """Whether only what is kept for the columns differs; the rows of a cycle are read as stored."""
    return not table.keeps_cycle and renewed.layout.columns == table.layout.columns


def _means_the_same(renewed: StreamTable, table: StreamTable) -> bool:
    """Whether nothing but the record of the views is another one: what is stored is still right."""
    is_same_text = (renewed.text, renewed.follows_time) == (table.text, table.follows_time)
    return is_same_text and replace(renewed, resolution=table.resolution) == table


def _defined_anew(
    workspace: Workspace, spark: SparkSession, table: StreamTable
) -> tuple[StreamTable, NotDifferentiable | None]:
    if table.keeps_cycle:
        return _cycle_anew(workspace, spark, table), None
    if READS in table.options:
        shown = define(workspace, spark, table.text, table)
        renewed = replace(
            table, sources=shown.sources, layout=shown.layout,
            not_differential=shown.not_differential,
        )  # fmt: skip
        return renewed, shown.refusal
    definition = define(workspace, spark, table.query, table)
    return definition.put_into(table), definition.refusal


def _cycle_anew(workspace: Workspace, spark: SparkSession, holder: StreamTable) -> StreamTable:
    drafts = []
    for member in component_of(holder).members:
        table = workspace.find(member.name.key)
        if table is None:
            raise NotFound(f"stream table {member.name} does not exist")
        # Its views are recorded with the table that holds the rows.
        drafts.append(
            replace(
                table,
                incarnation=holder.incarnation,
                resolution=holder.resolution,
                sources=holder.sources,
            )
        )
    made = define_component(workspace, spark, drafts, holder)[0]
    return replace(
        holder, query=made.query, layout=made.layout, sources=made.sources, options=made.options,
        resolution=made.resolution,
    )  # fmt: skip


def _tags(table: StreamTable) -> list[str]:
    """Which member each tag of a cycle's rows stands for."""
    return [m.name.key for m in component_of(table).sets] if table.keeps_cycle else []


def other_columns(table: StreamTable, layout: Layout) -> SourceError:
    """What is told of a table whose storage does not fit its query, and that cannot start over."""
    before = ", ".join(f"{c.name} {c.type}" for c in table.layout.columns)
    after = ", ".join(f"{c.name} {c.type}" for c in layout.columns)
    detail = f"stored: {before}; now: {after}"
    if before == after:
        detail = "it shows the same columns, but what has to be kept for them is something else"
    again = f"ALTER STREAM TABLE {table.name} AS {table.written}"
    if table.keeps_cycle:
        member = component_of(table).members[0].name
        again = f"ALTER STREAM TABLE {member} AS ..., with the query it has: all follow"
    return SourceError(
        f"the query of {table.label} no longer gives the stored columns",
        detail=detail,
        hint=f"accept the new columns with {again}",
    )


def _no_longer_differential(table: StreamTable, refusal: NotDifferentiable) -> SourceError:
    return SourceError(
        f"the query of {table.label} can no longer be refreshed differentially",
        detail=refusal.primary,
        hint=f"ALTER STREAM TABLE {table.owner} SET REFRESH MODE AUTO, or bring back the view or "
        "source it had",
    )
