"""EXPLAIN: how a query is kept up to date, for a table or before there is one."""

from __future__ import annotations

from runnel.algebra.printing import print_tree
from runnel.catalog import StreamTable
from runnel.model.refresh import RefreshMode
from runnel.model.results import Explanation
from runnel.refresh.definition import Definition, define
from runnel.refresh.workspace import Workspace


def explain_table(workspace: Workspace, table: StreamTable) -> Explanation:
    with workspace.worker(table.settings, adaptive=True) as spark:
        definition = define(workspace, spark, table.query)
    return _explain(definition, str(table.name), table.mode)


def explain_query(
    workspace: Workspace, settings: dict[str, str], query: str, mode: RefreshMode
) -> Explanation:
    with workspace.worker(settings, adaptive=True) as spark:
        definition = define(workspace, spark, query)
    return _explain(definition, None, mode)


def _explain(definition: Definition, name: str | None, mode: RefreshMode) -> Explanation:
    sources = tuple(
        f"{s.name} ({s.kind}): {', '.join(s.columns) or 'no columns'}" for s in definition.sources
    )
    compiled = definition.compiled
    if compiled is None:
        return Explanation(name, mode, False, definition.not_differential or "", sources=sources)
    layout = compiled.layout
    shown = ", ".join(f"{sql} AS {column.name}" for column, sql in layout.visible)
    readout = f"SELECT {shown} FROM trace"
    if layout.visible_when is not None:
        readout += f" WHERE {layout.visible_when}"
    return Explanation(
        name,
        mode,
        mode is not RefreshMode.FULL,
        "every operator has a law",
        tree=print_tree(compiled.tree),
        program=str(compiled.program(frozenset(compiled.kinds))),
        readout=readout,
        sources=sources,
    )
