"""Parts of a query that are kept in tables of their own, because computing them anew is dear.

A grouping below a join, or below another grouping, would be read from its sources at both ends of
every refresh. As a table it has a state, and what it was before is a read.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace

from runnel.algebra.nodes import Filter, Fixpoint, Node, Project, Scan, walk
from runnel.catalog import PART_OF, READS, WHOLE, Source, StreamTable
from runnel.compile.cut_places import Known
from runnel.compile.cutting import inner_groupings, read_from_tables
from runnel.compile.pipeline import CompiledQuery
from runnel.compile.sources import source_names
from runnel.errors import UserError
from runnel.lake.frames import SparkSession
from runnel.model.names import OF_PART, TableName
from runnel.model.refresh import RefreshMode
from runnel.model.views import Resolution
from runnel.refresh.definition import Definition, define, schema_of
from runnel.refresh.hidden import hidden_table
from runnel.refresh.looking import pin_source
from runnel.refresh.windows import total_rows
from runnel.refresh.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Family:
    """A table after the parts of its query; mostly there are none."""

    parts: tuple[StreamTable, ...]
    table: StreamTable
    definition: Definition

    @property
    def tables(self) -> tuple[StreamTable, ...]:
        return (*self.parts, self.table)


def family_of(
    workspace: Workspace, spark: SparkSession, table: StreamTable, definition: Definition
) -> Family:
    """A table that has a definition, cut into parts where that pays."""
    whole = Family((), table, definition)
    compiled = definition.compiled
    if compiled is None or not _may_be_cut(workspace, table, definition, compiled):
        return whole
    text, known = compiled.text or table.text, _known(workspace, definition.sources)
    parts: dict[str, StreamTable] = {}
    for grouping in inner_groupings(text, known):
        if _is_large(workspace, definition, grouping):
            part = _part(workspace, spark, table, grouping, len(parts) + 1)
            parts |= {grouping: part} if part is not None else {}
    if not parts:
        return whole
    names = {grouping: part.name for grouping, part in parts.items()}
    try:
        cut = read_from_tables(text, known, names)
        reading = define(workspace.staged(parts.values()), spark, cut)
    except UserError:
        return whole
    if not _is_the_same(reading, definition):
        return whole
    return Family(tuple(parts.values()), _cut(table, reading, text), reading)


def parts_of(workspace: Workspace, table: StreamTable) -> list[StreamTable]:
    """The tables that hold parts of a table's query."""
    found = (workspace.upstream(source) for source in table.sources if source.is_part)
    return [part for part in found if part is not None]


def _may_be_cut(
    workspace: Workspace, table: StreamTable, definition: Definition, compiled: CompiledQuery
) -> bool:
    """Not what is computed as a whole anyway, and nothing that is redefined from outside."""
    resolution = definition.resolution
    return (
        workspace.settings.inner_trace_rows >= 0
        and table.mode is not RefreshMode.FULL
        and not (resolution and (resolution.views or resolution.follows_time))
        and not any(isinstance(node, Fixpoint) for node in walk(compiled.tree))
    )


def _part(
    workspace: Workspace, spark: SparkSession, owner: StreamTable, query: str, number: int
) -> StreamTable | None:
    """A table for a grouping; None when it does not stand by itself, or is no easier to keep."""
    try:
        definition = define(workspace, spark, query)
    except UserError:
        return None
    compiled = definition.compiled
    # Only at the root of its query a grouping has a state.
    if compiled is None or compiled.root.state is None or definition.resolution is not None:
        return None
    of = {"name": [owner.name.schema, owner.name.name], "number": number}
    name = TableName("default", OF_PART + uuid.uuid4().hex[:8])
    made = hidden_table(name, owner.settings, owner.mode, {PART_OF: json.dumps(of)})
    return definition.put_into(made)


def _known(workspace: Workspace, sources: Iterable[Source]) -> Known:
    schemas = (schema_of(workspace, source) for source in sources)
    return {s.key: {c.name.lower(): c.type for c in s.columns} for s in schemas}


def _is_large(workspace: Workspace, definition: Definition, grouping: str) -> bool:
    """Whether what a grouping reads has so many rows that a trace of its own pays."""
    keys = {name.key for name in source_names(grouping)}
    rows = sum(_rows(workspace, source) for source in definition.sources if source.key in keys)
    return rows >= workspace.settings.inner_trace_rows


def _rows(workspace: Workspace, source: Source) -> int:
    pin = pin_source(workspace, source)
    is_empty = pin.kind == "trace" and pin.version == 0
    return 0 if is_empty else total_rows(workspace, source, pin)


def _is_the_same(reading: Definition, definition: Definition) -> bool:
    """Whether the query over its parts has the columns it had, and something left to do."""
    if reading.compiled is None or reading.columns != definition.columns:
        return False
    return not _is_row_by_row(reading.compiled.tree)


def _is_row_by_row(tree: Node) -> bool:
    """Then the part is the query itself, which has a state anyway."""
    return all(isinstance(node, (Scan, Project, Filter)) for node in walk(tree))


def _cut(table: StreamTable, reading: Definition, whole: str) -> StreamTable:
    named = [(s.key, s.kind, (s.name.schema, s.name.name)) for s in table.sources]
    options = {**table.options, WHOLE: whole, READS: json.dumps(named)}
    text = reading.resolution.text if reading.resolution else reading.query
    return replace(
        table, layout=reading.layout, sources=reading.sources, options=options,
        resolution=Resolution(text),
    )  # fmt: skip
