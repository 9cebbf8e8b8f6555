"""What ties the inputs of a join chain, and so in which order they are joined to a change.

An equality of two inputs' columns is a tie. Where more than two inputs share a value, such as the
nation of a customer and of a supplier, two of them may have many rows for it: other ties go first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from runnel.algebra.nodes import InnerJoin, Node, Scan, walk
from runnel.algebra.scalar import Scalar

_EQUAL = re.compile(r"(?<![<>!])=|<=>")
_COLUMNS_EQUAL = re.compile(r"\(*\?\)*(=|<=>)\(*\?\)*")
_KEY, _SHARED, _OTHER, _NONE = range(4)

_Pair = frozenset[int]


class JoinGraph:
    """The inputs of a join chain by their numbers; `sizes` says how large sources are."""

    def __init__(
        self, node: InnerJoin, sizes: Mapping[str, int], changed: Iterable[int] = ()
    ) -> None:
        self.node = node
        self.changed = tuple(changed)
        self.count = len(node.inputs)
        self._owner = {c.name: i for i, child in enumerate(node.inputs) for c in child.columns}
        self._sizes = [max((sizes.get(s, 0) for s in sources(n)), default=0) for n in node.inputs]

    def core(self) -> list[int]:
        """The inputs that every term joins; those left out are joined to the sum of the terms.

        They are the changed ones, where ties connect them that are the only way from one input to
        the other: every walk must go along those, so going them first makes no more rows. In a ring
        of ties one may hold for many pairs, and only the others for few.
        """
        pairs = self._pairs
        bridges = [p for p in pairs if not _is_reached(p, [other for other in pairs if other != p])]
        inside = [p for p in bridges if p <= set(self.changed)]
        if _reached(self.changed[0], inside) >= set(self.changed):
            return list(self.changed)
        return list(range(self.count))

    def next_input(self, done: Iterable[int], inputs: Iterable[int]) -> int:
        """The input that is joined most easily to what is joined already.

        Of those that are as easy a changed one: the walks from the changes meet there, and read the
        others once.
        """
        done = frozenset(done)
        left = [i for i in inputs if i not in done]
        return min(left, key=lambda i: (self.ease(done, i), i not in self.changed, i))

    def ease(self, done: frozenset[int], index: int) -> int:
        """How few rows an input is likely to have for each row of those that are joined."""
        known = done | {index}
        reaching = [c for c in self.node.conjuncts if self._connects(c, known, index)]
        classes = {self._class(c) for c in reaching if _is_equality(c)}
        if not classes:
            return _OTHER if reaching else _NONE
        is_key = len(classes) > 1 or any(len(shared) <= 2 for shared in classes)
        return _KEY if is_key else _SHARED

    def tree(self) -> JoinTree | None:
        """Ties that connect the changed inputs and as few others as possible; None when none do."""
        inputs = self.changed
        start = max(inputs, key=lambda i: (self._sizes[i], -i))
        parents: dict[int, int] = {}
        while not parents.keys() | {start} >= set(inputs):
            inside = parents.keys() | {start}
            steps = [(i, j) for i in inside for j in range(self.count) if j not in inside]
            ways = [(self.ease(frozenset({i}), j), j not in inputs, j, i) for i, j in steps]
            ease, _, child, parent = min(ways, default=(_NONE, True, 0, 0))
            if ease > _SHARED:
                return None
            parents[child] = parent
        ties = {frozenset(pair) for pair in parents.items()}
        return JoinTree.of(_pruned(ties, set(inputs)), self._sizes)

    def tie(self, one: int, other: int) -> list[Scalar]:
        """The conditions between two inputs."""
        pair = {one, other}
        return [c for c in self.node.conjuncts if {self._owner[n] for n in c.columns} == pair]

    def equalities(self, one: int, other: int) -> list[tuple[str, str, str]]:
        """The columns that the conditions between two inputs call equal, those of `one` first."""
        found = [pair for c in self.tie(one, other) if (pair := equality(c)) is not None]
        return [(a, s, b) if self._owner[a] == one else (b, s, a) for a, s, b in found]

    def _connects(self, conjunct: Scalar, known: frozenset[int], index: int) -> bool:
        owners = {self._owner[name] for name in conjunct.columns}
        return index in owners and len(owners) > 1 and owners <= known

    @cached_property
    def _pairs(self) -> list[_Pair]:
        """The pairs of inputs that an equality ties."""
        found = [
            frozenset(self._owner[name] for name in conjunct.columns)
            for conjunct in self.node.conjuncts
            if _is_equality(conjunct)
        ]
        return [pair for pair in dict.fromkeys(found) if len(pair) == 2]

    def _class(self, equality: Scalar) -> frozenset[str]:
        """The columns that must all be equal because of it and of others."""
        columns = frozenset(equality.columns)
        return next((c for c in self._classes if columns <= c), columns)

    @cached_property
    def _classes(self) -> list[frozenset[str]]:
        found: list[frozenset[str]] = []
        for conjunct in self.node.conjuncts:
            if equality(conjunct) is not None:
                joined = frozenset(conjunct.columns)
                met = [c for c in found if c & joined]
                found = [c for c in found if c not in met] + [joined.union(*met)]
        return found


@dataclass(frozen=True, slots=True)
class JoinTree:
    """Inputs of a join, and which are reached from which; the root is large and between others."""

    root: int
    children: Mapping[int, tuple[int, ...]]

    @staticmethod
    def of(ties: set[_Pair], sizes: Sequence[int]) -> JoinTree:
        inputs = {i for tie in ties for i in tie}
        degree = {i: sum(i in tie for tie in ties) for i in inputs}
        # What is not at an end is read twice, but for the root.
        root = max(inputs, key=lambda i: (degree[i] > 1, sizes[i], degree[i], -i))
        children: dict[int, tuple[int, ...]] = {}
        open_, seen = [root], {root}
        while open_:
            node = open_.pop(0)
            tied = {i for tie in ties if node in tie for i in tie} - seen
            children[node] = tuple(sorted(tied))
            seen |= tied
            open_ += children[node]
        return JoinTree(root, children)

    def parent(self, index: int) -> int:
        """The input that another than the root is reached from."""
        return next(i for i, children in self.children.items() if index in children)

    @property
    def inputs(self) -> tuple[int, ...]:
        """All of them, parents before their children."""
        return tuple(self.children)


def _pruned(ties: set[_Pair], wanted: set[int]) -> set[_Pair]:
    """Without ends that nobody wants."""
    degree = Counter(i for tie in ties for i in tie)
    needless = {tie for tie in ties if any(degree[i] == 1 and i not in wanted for i in tie)}
    return _pruned(ties - needless, wanted) if needless else ties


def equality(conjunct: Scalar) -> tuple[str, str, str] | None:
    """The two columns that a condition calls equal, and its sign between them; else None."""
    match = _COLUMNS_EQUAL.fullmatch(conjunct.render(lambda _: "?").replace(" ", ""))
    return (conjunct.columns[0], match[1], conjunct.columns[1]) if match else None


def sources(node: Node) -> frozenset[str]:
    return frozenset(n.source for n in walk(node) if isinstance(n, Scan))


def _is_equality(conjunct: Scalar) -> bool:
    text = conjunct.render()
    return bool(_EQUAL.search(text)) and " OR " not in text


def _is_reached(pair: _Pair, pairs: list[_Pair]) -> bool:
    start, end = pair
    return end in _reached(start, pairs)


def _reached(start: int, pairs: list[_Pair]) -> set[int]:
    """All inputs to which ties lead from one."""
    found, size = {start}, 0
    while len(found) > size:
        size = len(found)
        found = found.union(*(pair for pair in pairs if pair & found))
    return found
