"""EXPLAIN: how a query is kept up to date, for a table or before there is one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from runnel.catalog import READS, StreamTable
from runnel.compile.explaining import costly, explained_tree
from runnel.errors import RunnelError
from runnel.model.columns import Layout
from runnel.model.names import TableName
from runnel.model.refresh import RefreshAction, RefreshMode
from runnel.model.results import Explanation
from runnel.refresh.cost import model_differential, model_full
from runnel.refresh.definition import Definition, compiled_query, define
from runnel.refresh.hidden import hidden_table
from runnel.refresh.parts import family_of, parts_of
from runnel.refresh.pins import Pins
from runnel.refresh.plan import plan_refresh
from runnel.refresh.views import redefined_view
from runnel.refresh.windows import total_rows
from runnel.refresh.workspace import Workspace

_log = logging.getLogger("runnel")
# A refresh is thought of that finds one row in so many changed.
_PART = 1000


def explain_table(workspace: Workspace, table: StreamTable) -> Explanation:
    holder = workspace.find(table.cycle) if table.cycle and READS in table.options else None
    if holder is not None:
        return _explain_cycle(workspace, table, holder)
    text = table.text if table.is_cut else table.query
    with workspace.worker(table.settings, adaptive=True) as spark:
        definition = define(workspace, spark, text, table)
    told = _explain(definition, str(table.name), table.mode, parts_of(workspace, table))
    return replace(told, now=_now(workspace, table))


def _explain_cycle(workspace: Workspace, table: StreamTable, holder: StreamTable) -> Explanation:
    """How the rows are found that a member of a cycle shows its part of."""
    with workspace.worker(holder.settings, adaptive=True) as spark:
        compiled = compiled_query(workspace, spark, holder)
    columns, sources, views = holder.layout.columns, holder.sources, holder.resolution
    definition = Definition(holder.query, sources, columns, compiled, None, resolution=views)
    told = _explain(definition, str(table.name), table.mode)
    reason = f"its rows are found together, those of the {holder.label}"
    readout = f"{table.text}, of {told.readout}"
    return replace(told, reason=reason, readout=readout, now=_now(workspace, holder))


def explain_query(
    workspace: Workspace, settings: dict[str, str], query: str, mode: RefreshMode
) -> Explanation:
    with workspace.worker(settings, adaptive=True) as spark:
        definition = define(workspace, spark, query)
        name = TableName("default", "query")
        draft = replace(hidden_table(name, settings, mode, {}), mode=mode)
        family = family_of(workspace, spark, definition.put_into(draft), definition)
    told = _explain(family.definition, None, mode, family.parts)
    return replace(told, now=_later(workspace, definition))


def _later(workspace: Workspace, definition: Definition) -> str:
    """What refreshes would cost by the model, from how large the sources are now."""
    try:
        pins = Pins(workspace).frontier(definition.sources).pins
        total = sum(total_rows(workspace, s, pins[s.key]) for s in definition.sources)
    except RunnelError as error:
        return f"a refresh would fail: {error.primary}"
    full = f"full {model_full(total):.1f} s"
    if definition.compiled is None:
        return f"{total:,} rows are read by each refresh: {full} predicted"
    changed = max(1, total // _PART)
    differential = f"differential {model_differential(changed, total):.1f} s"
    return f"{total:,} rows; when {changed:,} of them change: {differential}, {full} predicted"


def warn_of_cost(name: TableName, definition: Definition) -> None:
    """Say in the log which windows of a new table have no PARTITION BY."""
    compiled = definition.compiled
    for why in costly(compiled.tree, compiled.root) if compiled is not None else ():
        if "without PARTITION BY" in why:
            _log.warning("%s: %s", name, why)


def _now(workspace: Workspace, table: StreamTable) -> str:
    """What a refresh of this table alone would do, without doing it."""
    try:
        if (view := redefined_view(workspace, workspace.spark, table, {})) is not None:
            return f"{RefreshAction.REINITIALIZE}: view {view.name} was redefined"
        frontier = Pins(workspace).frontier(table.sources)
        plan = plan_refresh(workspace, table, frontier)
    except RunnelError as error:
        return f"a refresh would fail: {error.primary}"
    costs = [f"{way} {plan.predicted[way]:.1f} s" for way in ("differential", "full")
             if way in plan.predicted]  # fmt: skip
    said = "predicted" in plan.reason
    return f"{plan.action}: {plan.reason}" + (
        f" ({', '.join(costs)} predicted)" if costs and not said else ""
    )


def _explain(
    definition: Definition,
    name: str | None,
    mode: RefreshMode,
    parts: Sequence[StreamTable] = (),
) -> Explanation:
    called = {part.name.key: part.label for part in parts}
    sources = tuple(
        f"{called.get(s.key, s.name)} ({s.kind}): {', '.join(s.columns) or 'no columns'}"
        for s in definition.sources
    )
    views = tuple(str(v) for v in definition.resolution.views) if definition.resolution else ()
    compiled, refusal = definition.compiled, definition.refusal
    if compiled is None:
        return Explanation(
            name, mode, False, definition.not_differential or "", sources=sources, views=views,
            place=refusal.place if refusal else None, hint=refusal.hint if refusal else None,
        )  # fmt: skip
    return Explanation(
        name,
        mode,
        mode is not RefreshMode.FULL,
        "every operator has a law",
        costly=costly(compiled.tree, compiled.root),
        tree=explained_tree(compiled.tree, compiled.root),
        program=str(compiled.program(frozenset(compiled.kinds))),
        readout=_readout(compiled.layout),
        sources=sources,
        views=views,
        parts=tuple(f"{part.label}, {part.name.name}: {part.query}" for part in parts),
    )


def _readout(layout: Layout) -> str:
    shown = ", ".join(f"{sql} AS {column.name}" for column, sql in layout.visible)
    where = f" WHERE {layout.visible_when}" if layout.visible_when is not None else ""
    return f"SELECT {shown} FROM trace{where}"
