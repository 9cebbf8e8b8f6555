"""Definitions made together: tables that may read each other, in one switch of the catalog.

What a table's query names is the logical graph; in it a cycle is one node, a component. Changing
one member changes its whole component: it grows, shrinks or falls apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import networkx as nx

from runnel.catalog import IN_CYCLE, READS, WHOLE, Source, StreamTable
from runnel.catalog.records import FORGIVEN, TableFields
from runnel.compile.sources import source_names
from runnel.errors import InUse, UserError
from runnel.model.alerts import AlertKind
from runnel.model.refresh import RefreshMode, TableState
from runnel.refresh.component import check_cycle_mode, define_component
from runnel.refresh.definition import define
from runnel.refresh.hidden import hidden_mode
from runnel.refresh.lifecycle import check_name_is_free, switch_tables
from runnel.refresh.modes import check_query
from runnel.refresh.parts import family_of
from runnel.refresh.storage import fresh_incarnation
from runnel.refresh.views import names_behind
from runnel.refresh.workspace import Workspace
from runnel.schedule.order import ALLOW, downstream
from runnel.schedule.passes import bring_up

RESUMED = "takes part in refreshes again"


def logical_graph(tables: Iterable[StreamTable]) -> nx.DiGraph[str]:
    """Edges to each table from those that its query names; only the user's tables are nodes."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for table in tables:
        if not table.is_hidden:
            graph.add_node(table.name.key)
            streams = (s.key for s in table.reads if s.kind == "stream")
            graph.add_edges_from((key, table.name.key) for key in streams)
    return graph


def components(graph: nx.DiGraph[str]) -> list[list[str]]:
    """Tables that all read each other, directly or not, together; parents before children."""
    condensed = nx.condensation(graph)
    order = nx.lexicographical_topological_sort(condensed, key=lambda n: min(_keys(condensed, n)))
    return [sorted(_keys(condensed, node)) for node in order]


def is_cycle(graph: nx.DiGraph[str], keys: Sequence[str]) -> bool:
    return len(keys) > 1 or bool(graph.has_edge(keys[0], keys[0]))


def goes_round(workspace: Workspace, draft: StreamTable) -> bool:
    """Whether a table is in a cycle by its new query, or leaves the one that it is in."""
    tables, key = workspace.catalog.tables(), draft.name.key
    present = next((t for t in tables if t.name.key == key), None)
    if present is not None and present.cycle is not None:
        return True
    graph = logical_graph(t for t in tables if t.name.key != key)
    graph.add_node(key)
    graph.add_edges_from((name, key) for name in _named(workspace, draft) if name in graph)
    return any(key in cycle for cycle in components(graph) if is_cycle(graph, cycle))


def _named(
    workspace: Workspace, draft: StreamTable, known: Collection[str] = ()
) -> Collection[str]:
    """What a query reads: through views only where a cycle through one could be kept."""
    if workspace.settings.allow_circular:
        return names_behind(workspace, draft, known)
    return {name.key for name in source_names(draft.query)}


def define_together(workspace: Workspace, drafts: Sequence[StreamTable], fill: bool) -> None:
    """Make tables of drafts (a name, a query, how to refresh), all or none of them.

    A draft with the id of a table takes that table's place.
    """
    present = workspace.catalog.tables()
    taken = {t.id for t in present}
    for draft in drafts:
        if draft.id not in taken:
            check_name_is_free(workspace, draft.name)
    keys = {d.name.key for d in drafts}
    named = {d.name.key: _named(workspace, d, keys) for d in drafts}
    change = _Change.of(present, drafts, named, workspace.settings.allow_circular)
    tables = _defined(workspace, change)
    for table in tables:
        workspace.note_views(table)
    inside = {t.name.key for t in tables}
    outside = [s for t in tables for s in t.sources if s.key not in inside]
    _check_outside(workspace, outside, inside)
    pins = bring_up(workspace, outside, tables, change.gone) if fill else None
    switch_tables(workspace, change.gone, tables, pins)


def to_drop(
    tables: Sequence[StreamTable], table: StreamTable, cascade: bool
) -> tuple[StreamTable, ...]:
    """What goes with a table: in a cycle all of it, else with `cascade` those that read it."""
    by_key = {t.name.key: t for t in tables}
    together = members_with(tables, table)
    others = sorted(str(t.name) for t in together if t is not table and not t.is_hidden)
    if others and not cascade:
        raise InUse(
            f"other stream tables depend on it: {', '.join(others)}",
            detail="they read each other in a cycle",
            hint="drop them together with CASCADE, or change a query so that the cycle opens",
        )
    keys = {t.name.key: t for t in together}
    if cascade:
        below = {key for t in together for key in downstream(tables, t.name.key)}
        keys |= {key: by_key[key] for key in sorted(below - keys.keys())}
    # A part may read nothing of what goes, and belongs to a table that goes.
    keys |= {t.name.key: t for t in tables if t.part_of is not None and t.part_of.key in keys}
    return tuple(keys.values())


def members_with(tables: Iterable[StreamTable], table: StreamTable) -> list[StreamTable]:
    """A table, and all that is computed with it: the parts of its query, or the rest of its cycle.

    To a cycle belongs what holds the rows of its members.
    """
    if table.cycle is None:
        return [table, *(t for t in tables if t.is_part_of(table))]
    others = [t for t in tables if table.cycle in (t.cycle, t.name.key) and t.id != table.id]
    return [table, *others]


def group_of(tables: Iterable[StreamTable], table: StreamTable) -> list[StreamTable]:
    """The members of a table's cycle; they are one unit of `units_of`."""
    return [t for t in members_with(tables, table) if not t.is_hidden]


def set_mode(workspace: Workspace, table: StreamTable, mode: RefreshMode) -> None:
    """What is computed as one has one mode: the members of a cycle, a query and its parts."""
    if table.cycle is not None:
        check_cycle_mode(mode)
    members = members_with(workspace.catalog.tables(), table)
    modes = {m.id: hidden_mode(mode) if m.is_hidden else mode for m in members}
    for member in members:
        check_query(modes[member.id], member)
    for member in members:
        workspace.catalog.update_table(member.id, mode=modes[member.id])


def resumed(table: StreamTable) -> TableFields:
    """What is recorded of a table that goes on: earlier errors are forgotten."""
    state = TableState.ACTIVE if table.epoch else TableState.UNINITIALIZED
    return {"state": state, **FORGIVEN}


def suspend_parts(workspace: Workspace, table: StreamTable) -> None:
    """Nobody else needs the parts of its query."""
    for part in members_with(workspace.catalog.tables(), table):
        if part.part_of is not None:
            workspace.catalog.update_table(part.id, state=TableState.SUSPENDED)


def resume_hidden(workspace: Workspace, table: StreamTable) -> None:
    """What holds the rows of a cycle, or parts of a query, has no name to resume it by."""
    for holder in members_with(workspace.catalog.tables(), table):
        if not holder.is_hidden:
            continue
        workspace.catalog.update_table(holder.id, **resumed(holder))
        if holder.state is TableState.SUSPENDED:
            workspace.alerts.emit(AlertKind.RESUMED, holder.label, RESUMED)


@dataclass(frozen=True, slots=True)
class _Change:
    """What has to be defined anew, in order, each cycle together; and what that replaces."""

    parts: tuple[tuple[tuple[StreamTable, ...], bool], ...]
    gone: tuple[StreamTable, ...]

    @staticmethod
    def of(
        tables: Sequence[StreamTable],
        drafts: Sequence[StreamTable],
        named: Mapping[str, Collection[str]],
        allow_circular: bool,
    ) -> _Change:
        present = {t.name.key: t for t in tables}
        wanted = {d.name.key: d for d in drafts}
        graph = logical_graph(t for t in tables if t.name.key not in wanted)
        graph.add_nodes_from(wanted)
        for key in wanted:
            graph.add_edges_from((name, key) for name in named[key] if name in graph)
        touched = set(wanted)
        for key in wanted.keys() & present.keys():
            touched |= {t.name.key for t in group_of(tables, present[key])}
        parts = []
        for keys in components(graph):
            cyclic = is_cycle(graph, keys)
            if touched & set(keys):
                touched |= set(keys)
                if cyclic and not allow_circular:
                    raise _circular(graph, keys)
                made = tuple(wanted.get(k) or _fresh(present[k]) for k in keys)
                parts.append((made, cyclic))
        old = [present[key] for key in sorted(touched & present.keys())]
        ended = {t.id: t for table in old for t in members_with(tables, table)}
        return _Change(tuple(parts), tuple(ended.values()))


def _fresh(table: StreamTable) -> StreamTable:
    """A table that goes on with the query it has, but is computed in another way."""
    options = {n: v for n, v in table.options.items() if n not in (IN_CYCLE, READS, WHOLE)}
    state = TableState.ACTIVE if table.state is TableState.UNINITIALIZED else table.state
    return replace(fresh_incarnation(table), options=options, state=state)


def _defined(workspace: Workspace, change: _Change) -> list[StreamTable]:
    made: list[StreamTable] = []
    for drafts, cyclic in change.parts:
        staged = workspace.staged(made)
        with workspace.worker(drafts[0].settings, adaptive=True) as spark:
            if cyclic:
                made += define_component(staged, spark, drafts)
                continue
            definition = define(staged, spark, drafts[0].query, None)
            if drafts[0].mode.is_strict and definition.refusal is not None:
                raise definition.refusal
            table = definition.put_into(drafts[0])
            made += family_of(staged, spark, table, definition).tables
    return made


def _check_outside(workspace: Workspace, sources: Sequence[Source], inside: set[str]) -> None:
    """Without the setting a cycle that goes through a view is found here only."""
    others = [t for t in workspace.catalog.tables() if t.name.key not in inside]
    below = {reader for key in inside for reader in downstream(others, key)}
    for source in sources:
        if source.key in below:
            raise UserError(
                f"the tables being defined read {source.name}, which depends on them",
                detail="the cycle goes through a view",
                hint=f"read the base tables instead; {ALLOW}",
            )


def _circular(graph: nx.DiGraph[str], keys: Sequence[str]) -> UserError:
    found = nx.find_cycle(graph.subgraph(keys), keys[0])
    path = [found[0][0], *(edge[1] for edge in found)]
    return UserError(
        f"stream table {_shown(keys[0])} would depend on itself",
        detail=" -> ".join(_shown(key) for key in path),
        hint=f"read the base tables instead; {ALLOW}",
    )


def _keys(condensed: nx.DiGraph[int], node: int) -> set[str]:
    return set(condensed.nodes[node]["members"])


def _shown(key: str) -> str:
    return key.removeprefix("default.")
