"""Units: the tables that are refreshed together, and the order between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from graphlib import TopologicalSorter
from heapq import heapify, heappop, heappush
from typing import Protocol, TypeVar

T = TypeVar("T", bound=tuple[str, ...])


class Policy(StrEnum):
    """When a unit of several tables is due: with its first member, or only with its last."""

    FASTEST = "fastest"
    SLOWEST = "slowest"


@dataclass(frozen=True, slots=True)
class Unit:
    """Tables that advance together or not at all: one table, a cycle, an atomic group."""

    members: tuple[str, ...]
    policy: Policy = Policy.FASTEST

    def __hash__(self) -> int:
        # Units are looked up all the time.
        return hash(self.members)

    def __str__(self) -> str:
        return "+".join(self.members)


class Reads(Protocol):
    """A table of which one knows the stream tables that it reads."""

    @property
    def reads(self) -> tuple[str, ...]: ...


def units_of(tables: Mapping[str, Reads]) -> tuple[Unit, ...]:
    """Each table by itself, except that the tables of a cycle are one unit."""
    found = (Unit(tuple(sorted(component))) for component in components(_edges(tables)))
    return tuple(sorted(found, key=lambda unit: unit.members))


def components(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Strongly connected components, by Tarjan's algorithm without recursion.

    Each comes after those that its edges lead to. Not networkx: importing that takes longer than
    all of `runnel status`.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    on_path: dict[str, None] = {}
    found: list[list[str]] = []
    for root in edges:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        on_path[root] = None
        stack = [(root, iter(edges[root]))]
        while stack:
            node, targets = stack[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    on_path[target] = None
                    stack.append((target, iter(edges[target])))
                    break
                if target in on_path:
                    low[node] = min(low[node], index[target])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[node])
                if low[node] == index[node]:
                    found.append(_popped(on_path, node))
    return found


def _popped(on_path: dict[str, None], root: str) -> list[str]:
    members: list[str] = []
    while not members or members[-1] != root:
        members.append(on_path.popitem()[0])
    return members


def in_order(parents: Mapping[T, Iterable[T]]) -> list[T]:
    """Parents before children, and among those that could come next the least."""
    missing = {node: set(above) for node, above in parents.items()}
    below: dict[T, list[T]] = {node: [] for node in parents}
    for node, above in missing.items():
        for parent in above:
            below[parent].append(node)
    free = [node for node, above in missing.items() if not above]
    heapify(free)
    found: list[T] = []
    while free:
        node = heappop(free)
        found.append(node)
        for child in below[node]:
            missing[child].discard(node)
            if not missing[child]:
                heappush(free, child)
    return found


@dataclass(frozen=True, slots=True)
class Condensed:
    """The graph of units; by `rank`, every unit comes after those that it reads."""

    units: tuple[Unit, ...]
    unit_of: Mapping[str, Unit]
    above: Mapping[Unit, frozenset[Unit]]
    parents: Mapping[Unit, frozenset[Unit]]
    rank: Mapping[Unit, int]

    def in_order(self, units: Iterable[Unit]) -> list[Unit]:
        return sorted(units, key=lambda unit: self.rank[unit])


def condense(tables: Mapping[str, Reads], units: Iterable[Unit]) -> Condensed:
    """Order units; those whose merging makes a cycle must have been merged into one before."""
    chosen = tuple(sorted(units, key=lambda unit: unit.members))
    unit_of = {key: unit for unit in chosen for key in unit.members}
    parents: dict[Unit, frozenset[Unit]] = {}
    for unit in chosen:
        sources = {s for key in unit.members for s in tables[key].reads if s in unit_of}
        parents[unit] = frozenset(unit_of[s] for s in sources) - {unit}
    order = list(TopologicalSorter(parents).static_order())
    above: dict[Unit, frozenset[Unit]] = {}
    for unit in order:
        above[unit] = parents[unit].union(*(above[parent] for parent in parents[unit]))
    rank = {unit: position for position, unit in enumerate(_by_level(order, parents))}
    return Condensed(chosen, unit_of, above, parents, rank)


def _by_level(order: list[Unit], parents: Mapping[Unit, frozenset[Unit]]) -> list[Unit]:
    """An order that depends on nothing but the graph."""
    level: dict[Unit, int] = {}
    for unit in order:
        level[unit] = 1 + max((level[parent] for parent in parents[unit]), default=0)
    return sorted(order, key=lambda unit: (level[unit], unit.members))


def _edges(tables: Mapping[str, Reads]) -> dict[str, list[str]]:
    return {key: sorted(s for s in tables[key].reads if s in tables) for key in sorted(tables)}
