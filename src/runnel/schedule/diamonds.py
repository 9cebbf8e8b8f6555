"""Diamonds of the graph, and the units it is refreshed in: tables by themselves, atomic groups.

A table in which several paths from one ancestor meet (stream or base table) makes a diamond: it
and the stream tables on those paths. The ancestor is no member: a pass pins it once for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import networkx as nx

from runnel.catalog import Questions, StreamTable
from runnel.model.diamonds import DiamondConsistency, DiamondMember, SchedulePolicy
from runnel.model.settings import Settings
from runnel.model.tabular import Rows

Unit = tuple[str, ...]
"""Keys of tables that are refreshed together, parents before children."""


@dataclass(frozen=True, slots=True)
class Diamond:
    """Several paths from `shared` meet in `convergence`; `members` lie on them, with it."""

    convergence: str
    members: frozenset[str]
    shared: frozenset[str]


@dataclass(frozen=True, slots=True)
class Group:
    """Diamonds that overlap, as one."""

    members: Unit
    convergences: frozenset[str]
    shared: frozenset[str]
    consistency: DiamondConsistency


def find_diamonds(tables: Iterable[StreamTable]) -> list[Diamond]:
    """One for each table in which paths meet again, by name."""
    known = {table.name.key: table for table in tables}
    above = _ancestors(known)
    found = (_diamond(table, above, known) for _, table in sorted(known.items()))
    return [diamond for diamond in found if diamond is not None]


def is_atomic(
    diamond: Diamond, tables: Mapping[str, StreamTable], default: DiamondConsistency
) -> bool:
    """What the table in which the paths meet asks for, unless a member refuses."""
    asked = _asked(tables[diamond.convergence]) or default
    refused = any(_asked(tables[key]) is DiamondConsistency.NONE for key in diamond.members)
    return asked is DiamondConsistency.ATOMIC and not refused


def unit_graph(tables: Iterable[StreamTable], default: DiamondConsistency) -> nx.DiGraph[Unit]:
    """The graph of units: atomic groups and cycles are one node each, so it has no cycle."""
    known = {table.name.key: table for table in tables}
    graph = _stream_graph(known)
    together = [(d.convergence, d.members) for d in _atomic(known, default)]
    together += [(min(members), members) for members in _cycles(known)]
    for center, members in together:
        # Both ways: whatever lies between the members is drawn into the unit.
        for key in members - {center}:
            graph.add_edge(center, key)
            graph.add_edge(key, center)
    order = _topological(_stream_graph(known))
    condensed = nx.condensation(graph)
    units = {
        node: tuple(sorted(condensed.nodes[node]["members"], key=order.__getitem__))
        for node in condensed
    }
    return nx.relabel_nodes(condensed, units)


def units_of(
    tables: Iterable[StreamTable], default: DiamondConsistency = DiamondConsistency.NONE
) -> tuple[Unit, ...]:
    """Every table in its unit, in an order in which all can be refreshed."""
    return tuple(nx.lexicographical_topological_sort(unit_graph(tables, default)))


def find_groups(tables: Iterable[StreamTable], default: DiamondConsistency) -> list[Group]:
    """All diamonds, overlapping ones merged: first the atomic ones, then the others."""
    known = {table.name.key: table for table in tables}
    diamonds = find_diamonds(known.values())
    atomic = [d for d in diamonds if is_atomic(d, known, default)]
    units = [unit for unit in units_of(known.values(), default) if len(unit) > 1]
    groups = [_group(unit, atomic, DiamondConsistency.ATOMIC) for unit in units]
    loose = [d for d in diamonds if d not in atomic]
    order = _topological(_stream_graph(known))
    for members in _merged(loose):
        unit = tuple(sorted(members, key=order.__getitem__))
        groups.append(_group(unit, loose, DiamondConsistency.NONE))
    return [group for group in groups if group.convergences]


def target_seconds(tables: Iterable[StreamTable], policy: SchedulePolicy) -> float | None:
    """The target lag of tables that are refreshed together; None when none of them has one."""
    targets = [t.schedule.seconds for t in tables if t.schedule is not None and t.schedule.seconds]
    if not targets:
        return None
    return min(targets) if policy is SchedulePolicy.FASTEST else max(targets)


def diamond_groups(reader: Questions, settings: Settings) -> Rows[DiamondMember]:
    """One row for each member of each group."""
    tables = {table.name.key: table for table in reader.tables()}
    groups = find_groups(tables.values(), settings.diamond_consistency)
    rows = [
        row
        for number, group in enumerate(groups, 1)
        for row in _rows(number, group, tables, settings.diamond_schedule_policy)
    ]
    return Rows(rows, DiamondMember.COLUMNS)


def _rows(
    number: int, group: Group, tables: Mapping[str, StreamTable], policy: SchedulePolicy
) -> Iterator[DiamondMember]:
    names = {s.key: str(s.name) for table in tables.values() for s in table.sources}
    names |= {key: table.label for key, table in tables.items() if table.keeps_cycle}
    shared = tuple(sorted(names[key] for key in group.shared))
    members = [tables[key] for key in group.members if not tables[key].keeps_cycle]
    is_together = group.consistency is DiamondConsistency.ATOMIC
    common = target_seconds(members, policy) if is_together else None
    for table in members:
        yield DiamondMember(
            number, str(table.name), table.name.key in group.convergences, group.consistency,
            table.epoch, common if is_together else target_seconds([table], policy), shared,
        )  # fmt: skip


def _cycles(tables: Mapping[str, StreamTable]) -> list[frozenset[str]]:
    """The members of each cycle: computed from the same rows, they are always seen together."""
    found: dict[str, set[str]] = {}
    for key, table in tables.items():
        if table.cycle is not None:
            found.setdefault(table.cycle, set()).add(key)
    return [frozenset(members) for members in found.values()]


def _asked(table: StreamTable) -> DiamondConsistency | None:
    text = table.options.get("diamond_consistency")
    return DiamondConsistency(text) if text else None


def _atomic(tables: Mapping[str, StreamTable], default: DiamondConsistency) -> list[Diamond]:
    if default is DiamondConsistency.NONE and not any(map(_asked, tables.values())):
        return []
    return [d for d in find_diamonds(tables.values()) if is_atomic(d, tables, default)]


def _diamond(
    table: StreamTable, above: Mapping[str, frozenset[str]], tables: Mapping[str, StreamTable]
) -> Diamond | None:
    members: set[str] = set()
    shared: set[str] = set()
    for left, right in combinations(dict.fromkeys(s.key for s in table.sources), 2):
        common = above[left] & above[right]
        apart = (above[left] | above[right]) - common
        members |= {key for key in apart if key in tables and above[key] & common}
        shared |= common
    if not members:
        return None
    nearest = shared.difference(*(above[key] - {key} for key in shared))
    return Diamond(table.name.key, frozenset({*members, table.name.key}), frozenset(nearest))


def _ancestors(tables: Mapping[str, StreamTable]) -> dict[str, frozenset[str]]:
    """Each stream and base table with all that it is computed from, itself included."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for key, table in tables.items():
        graph.add_node(key)
        graph.add_edges_from((source.key, key) for source in table.sources)
    condensed = nx.condensation(graph)
    of_node: dict[int, frozenset[str]] = {}
    for node in nx.topological_sort(condensed):
        parts = [of_node[parent] for parent in condensed.predecessors(node)]
        of_node[node] = frozenset(condensed.nodes[node]["members"]).union(*parts)
    return {key: of_node[node] for key, node in condensed.graph["mapping"].items()}


def _stream_graph(tables: Mapping[str, StreamTable]) -> nx.DiGraph[str]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    for key, table in tables.items():
        graph.add_node(key)
        graph.add_edges_from((s.key, key) for s in table.sources if s.key in tables)
    return graph


def _topological(graph: nx.DiGraph[str]) -> dict[str, int]:
    """Positions with parents before children; the tables of a cycle come by name."""
    condensed = nx.condensation(graph)
    names = {node: tuple(sorted(condensed.nodes[node]["members"])) for node in condensed}
    order = nx.lexicographical_topological_sort(nx.relabel_nodes(condensed, names))
    return {key: position for position, key in enumerate(k for unit in order for k in unit)}


def _merged(diamonds: Sequence[Diamond]) -> list[frozenset[str]]:
    graph: nx.Graph[str] = nx.Graph()
    for diamond in diamonds:
        nx.add_star(graph, [diamond.convergence, *diamond.members - {diamond.convergence}])
    return sorted(map(frozenset, nx.connected_components(graph)), key=sorted)


def _group(unit: Unit, diamonds: Iterable[Diamond], consistency: DiamondConsistency) -> Group:
    inside = [d for d in diamonds if d.members <= set(unit)]
    shared = frozenset[str]().union(*(d.shared for d in inside)) - set(unit)
    return Group(unit, frozenset(d.convergence for d in inside), shared, consistency)
