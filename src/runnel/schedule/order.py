"""The graph of stream tables: what lies above and below a table, and the order of a pass."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx

from runnel.catalog import Source, StreamTable
from runnel.errors import UserError
from runnel.model.diamonds import DiamondConsistency
from runnel.schedule.diamonds import Unit, units_of

ALLOW = "or allow it: connect(..., allow_circular=True)"


def graph_of(tables: Iterable[StreamTable]) -> nx.DiGraph[str]:
    """Edges from each source to its readers, by table key; only stream tables are nodes."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for table in tables:
        graph.add_node(table.name.key)
        for source in table.sources:
            if source.kind == "stream":
                graph.add_edge(source.key, table.name.key)
    return graph


def refresh_units(
    tables: Iterable[StreamTable], targets: set[str] | None, default: DiamondConsistency
) -> list[Unit]:
    """Parents before children: everything, or the targets and all that lies above them.

    Who is in an atomic group brings the whole group, and all that lies above that.
    """
    known = {table.name.key: table for table in tables}
    units = units_of(known.values(), default)
    if targets is None:
        return list(units)
    wanted, found = set(targets), list[Unit]()
    for unit in reversed(units):
        if wanted.intersection(unit):
            found.append(unit)
            wanted.update(source.key for key in unit for source in known[key].sources)
    return found[::-1]


def refresh_order(
    tables: Iterable[StreamTable], targets: set[str] | None, default: DiamondConsistency
) -> list[str]:
    """The tables of `refresh_units`, one by one."""
    return [key for unit in refresh_units(tables, targets, default) for key in unit]


def downstream(tables: Iterable[StreamTable], key: str) -> set[str]:
    """Everything that reads a table, directly or not."""
    graph = graph_of(tables)
    return set(nx.descendants(graph, key)) if key in graph else set()


def check_no_cycle(
    tables: Iterable[StreamTable], key: str, sources: Iterable[Source], otherwise: str = ALLOW
) -> None:
    """Refuse a query through which a table would read itself; `otherwise` says what helps."""
    graph = graph_of(t for t in tables if t.name.key != key)
    graph.add_node(key)
    for source in sources:
        if source.kind == "stream":
            graph.add_edge(source.key, key)
            if source.key == key or nx.has_path(graph, key, source.key):
                path = [key] if source.key == key else nx.shortest_path(graph, key, source.key)
                raise UserError(
                    f"stream table {_shown(key)} would depend on itself",
                    detail=" -> ".join(_shown(k) for k in [*path, key]),
                    hint=f"read the base tables instead; {otherwise}",
                )


def _shown(key: str) -> str:
    return key.removeprefix("default.")
