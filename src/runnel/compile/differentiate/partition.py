"""Whether a part of the tree falls apart by the values of a key, so that each value is by itself.

    N = sum over all v of N(the rows with key = v)

A leaf is a source with filters and projections over it. Leaves with the key are read at its values
alone; the others (`others`) are the same for all values. What ties an operator's inputs together by
the key, or groups or partitions by it, keeps the values apart; whatever else mixes them makes the
key useless. A leaf that stands in the tree more than once, as those of a CTE do, is one leaf: what
is said of it must hold at every place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from runnel.algebra.nodes import (
    Aggregate,
    Filter,
    InnerJoin,
    JoinKind,
    Node,
    OneRow,
    OuterJoin,
    Project,
    Scan,
    SemiJoin,
    Window,
    walk,
)
from runnel.compile.differentiate.join_graph import equality
from runnel.compile.differentiate.state import is_inexact, state_of

_PLAIN = (Scan, Project, Filter)
_FLOWING = (*_PLAIN, InnerJoin)
_JOINS = (InnerJoin, SemiJoin, OuterJoin)
_Place = tuple[int, ...]
"""Where a part stands in a tree: which input of which input."""

_TYPES = re.compile(r"tinyint|smallint|int|bigint|string|date|timestamp|boolean|decimal\(\d+,\d+\)")


@dataclass(frozen=True, slots=True)
class Edge:
    """An equality of columns of two leaves."""

    one: Node
    column: str
    sign: str
    other: Node
    other_column: str

    def turned(self) -> Edge:
        return Edge(self.other, self.other_column, self.sign, self.one, self.column)


@dataclass(frozen=True, slots=True)
class Partition:
    """`keys`: the leaves that have the key, and their column of it.

    `ways`: for each of the others that ties lead to, the leaf it is reached from. `mandatory` are
    leaves without which a value has no rows. `ends_null`: rows without a key never come out.
    """

    root: Node
    keys: Mapping[Node, str]
    others: tuple[Node, ...]
    ways: Mapping[Node, Edge]
    mandatory: frozenset[Node]
    ends_null: bool


def is_leaf(node: Node) -> bool:
    return all(isinstance(n, _PLAIN) for n in walk(node))


def leaves(node: Node) -> Iterator[Node]:
    """The largest parts that only filter and project a source, as often as they occur."""
    if is_leaf(node):
        yield node
        return
    for child in node.inputs:
        yield from leaves(child)


def partition_of(node: Node, changed: frozenset[str], sizes: Mapping[str, int]) -> Partition | None:
    """The key by which the most of what is read falls apart; None when there is none."""
    found = [p for names in _classes(node) if (p := _by(node, names, changed)) is not None]
    weigh = lambda p: sum(2 ** size_of(leaf, sizes) for leaf in p.keys)  # noqa: E731
    return max(found, key=weigh, default=None)


def scan_of(leaf: Node) -> Scan:
    """The source of a leaf."""
    return next(n for n in walk(leaf) if isinstance(n, Scan))


def size_of(leaf: Node, sizes: Mapping[str, int]) -> int:
    return sizes.get(scan_of(leaf).source, 0)


def _by(node: Node, names: frozenset[str], changed: frozenset[str]) -> Partition | None:
    splitter = _Splitter(names, changed)
    split = splitter.split(node)
    if split is None or not split.is_part:
        return None
    types = {_type_of(leaf, name) for leaf, name in splitter.keys.items()}
    if len(types) > 1 or not all(map(_TYPES.fullmatch, types)):
        return None
    every = Counter(leaves(node))
    others = tuple(leaf for leaf in every if leaf not in splitter.keys)
    ways = _ways(splitter, {leaf: every[leaf] for leaf in others})
    if any(leaf not in ways and _is_changed(leaf, changed) for leaf in others):
        return None
    ends_null = len(split.mandatory) > 1 and splitter.ends_null
    return Partition(node, splitter.keys, others, ways, split.mandatory, ends_null)


def _ways(splitter: _Splitter, others: Mapping[Node, int]) -> dict[Node, Edge]:
    """How each of the others is reached from a leaf with the key: nearer ones first.

    `others` says how often each stands in the tree; it must be reached the same way everywhere.
    """
    ways: dict[Node, Edge] = {}
    while True:
        known = {*splitter.keys, *ways}
        new = {
            edge.other: edge
            for edge, places in reversed(splitter.edges.items())
            if edge.one in known
            and edge.other not in known
            and others.get(edge.other) == len(places)
        }
        if not new:
            return ways
        ways |= new


@dataclass(frozen=True, slots=True)
class _Split:
    """How a node falls apart: `carriers` are its columns that have the key."""

    is_part: bool
    carriers: frozenset[str] = frozenset()
    mandatory: frozenset[Node] = frozenset()


_SAME = _Split(is_part=False)


@dataclass
class _Splitter:
    """`names` are the columns that are equal by the key; what it finds are edges and key leaves.

    Of each edge it knows the places of its other leaf.
    """

    names: frozenset[str]
    changed: frozenset[str]
    keys: dict[Node, str] = field(default_factory=dict)
    edges: dict[Edge, set[_Place]] = field(default_factory=dict)
    ends_null: bool = True

    def split(self, node: Node, place: _Place = ()) -> _Split | None:
        """None when the node mixes rows of different values."""
        if is_leaf(node):
            return self._leaf(node)
        match node:
            case OneRow():
                return _SAME
            case Project():
                return self._project(node, place)
            case Filter():
                return self.split(node.input, (*place, 0))
            case Aggregate():
                return self._aggregate(node, place)
            case Window():
                return self._window(node, place)
            case InnerJoin() | SemiJoin() | OuterJoin():
                return self._join(node, place)
        return None

    def _leaf(self, node: Node) -> _Split:
        column = next((c.name for c in node.columns if c.name in self.names), None)
        if column is None:
            return _SAME
        self.keys[node] = column
        return _Split(True, frozenset({column}), frozenset({node}))

    def _project(self, node: Project, place: _Place) -> _Split | None:
        below = self.split(node.input, (*place, 0))
        if below is None:
            return None
        kept = {c.name for c, scalar in node.items if scalar.bare_column in below.carriers}
        return _Split(below.is_part, frozenset(kept), below.mandatory)

    def _aggregate(self, node: Aggregate, place: _Place) -> _Split | None:
        if state_of(node).is_opaque or any(map(is_inexact, node.calls)):
            return None
        below = self.split(node.input, (*place, 0))
        if below is None or not below.is_part:
            return below
        kept = below.carriers.intersection(node.keys)
        return _Split(True, kept, below.mandatory) if kept else None

    def _window(self, node: Window, place: _Place) -> _Split | None:
        """A value has whole partitions if they are of one value each."""
        below = self.split(node.input, (*place, 0))
        if below is None or not below.is_part or below.carriers.intersection(node.partition):
            return below
        return None

    def _join(self, node: InnerJoin | SemiJoin | OuterJoin, place: _Place) -> _Split | None:
        splits = [self.split(child, (*place, i)) for i, child in enumerate(node.inputs)]
        found = [s for s in splits if s is not None]
        if len(found) < len(splits):
            return None
        for child, split in zip(node.inputs, found, strict=True):
            if not split.is_part and not self._flows(child):
                return None
        for edge, found_at in _edges(node, place):
            self.edges.setdefault(edge, set()).add(found_at)
        parts = [s for s in found if s.is_part]
        if not parts:
            return _SAME
        if len(parts) > 1 and not self._are_tied(node, parts):
            return None
        match node:
            case InnerJoin():
                return _union(parts)
            case SemiJoin():
                left = found[0]
                if not left.is_part:
                    return None
                return (
                    left if node.is_anti else _Split(True, left.carriers, _union(parts).mandatory)
                )
            case OuterJoin(kind=JoinKind.LEFT):
                return found[0] if found[0].is_part else None
        return _Split(True) if len(parts) == 2 else None

    def _flows(self, node: Node) -> bool:
        """Whether a change below reaches the rows that it is tied to, and no others."""
        return not _is_changed(node, self.changed) or all(
            isinstance(n, _FLOWING) for n in walk(node)
        )

    def _are_tied(self, node: Node, parts: list[_Split]) -> bool:
        """Whether equalities of this node make the key the same in all parts."""
        reached, left = parts[0].carriers, parts[1:]
        pairs = [(a, sign, b) for a, sign, b in _equalities(node) if {a, b} <= self.names]
        while left:
            near = next(
                (p for p in left if any(_ties(x, reached, p.carriers) for x in pairs)), None
            )
            if near is None:
                return False
            self.ends_null &= any(
                s == "=" for a, s, b in pairs if _ties((a, s, b), reached, near.carriers)
            )
            reached, left = reached | near.carriers, [p for p in left if p is not near]
        return True


def _ties(pair: tuple[str, str, str], one: frozenset[str], other: frozenset[str]) -> bool:
    a, _, b = pair
    return (a in one and b in other) or (b in one and a in other)


def _union(parts: list[_Split]) -> _Split:
    carriers = frozenset().union(*(p.carriers for p in parts))
    return _Split(True, carriers, frozenset().union(*(p.mandatory for p in parts)))


def _is_changed(node: Node, changed: frozenset[str]) -> bool:
    return any(isinstance(n, Scan) and n.source in changed for n in walk(node))


def _classes(node: Node) -> list[frozenset[str]]:
    """The sets of columns that joins make equal, under all names that they have."""
    found: list[frozenset[str]] = []
    for part in walk(node):
        for pair in _same_columns(part):
            met = [c for c in found if c & pair]
            found = [c for c in found if c not in met] + [pair.union(*met)]
    return found


def _same_columns(node: Node) -> Iterator[frozenset[str]]:
    if isinstance(node, Project):
        for column, scalar in node.items:
            if scalar.bare_column is not None:
                yield frozenset({column.name, scalar.bare_column})
    for a, _, b in _equalities(node):
        yield frozenset({a, b})


def _equalities(node: Node) -> Iterator[tuple[str, str, str]]:
    if isinstance(node, _JOINS):
        yield from (found for c in node.conjuncts if (found := equality(c)) is not None)


def _edges(node: InnerJoin | SemiJoin | OuterJoin, place: _Place) -> Iterator[tuple[Edge, _Place]]:
    """The equalities of a join as those of leaves, to those whose rows count only if they hold.

    A row on the left of an outer or anti join counts without a partner. With each comes the place
    of the leaf that it leads to.
    """
    is_mutual = isinstance(node, InnerJoin) or (isinstance(node, SemiJoin) and not node.is_anti)
    own = {c.name for c in node.inputs[0].columns}
    for a, sign, b in _equalities(node):
        one, other = (_below(node, name, place) for name in ((a, b) if a in own else (b, a)))
        if one is not None and other is not None:
            edge = Edge(one[0], one[1], sign, other[0], other[1])
            yield edge, other[2]
            if is_mutual:
                yield edge.turned(), one[2]


def _below(node: Node, name: str, place: _Place) -> tuple[Node, str, _Place] | None:
    """The leaf below a node, and its column, that a column comes from as it is; its place."""
    for i, child in enumerate(node.inputs):
        if any(c.name == name for c in child.columns):
            return _origin(child, name, (*place, i))
    return None


def _origin(node: Node, name: str, place: _Place) -> tuple[Node, str, _Place] | None:
    if is_leaf(node):
        return node, name, place
    match node:
        case Project():
            inner = next(s for c, s in node.items if c.name == name).bare_column
            return _below(node, inner, place) if inner is not None else None
        case Aggregate():
            return _below(node, name, place) if name in node.keys else None
        case Window():
            # Without some of its rows, a partition says something else of the rest.
            return _below(node, name, place) if name in node.partition else None
    return _below(node, name, place)


def _type_of(leaf: Node, name: str) -> str:
    return next(c.type for c in leaf.columns if c.name == name)
