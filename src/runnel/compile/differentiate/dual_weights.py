"""The change of a join of which several inputs changed, as the join after minus the join before:

    change = product of w_new - product of w_old

Every row carries its weights at both ends, so that one join takes the place of one for each changed
input. A row of new(R) counts (w, w) and one of its change (-w, 0), since old = new - change. The
inputs form a tree of ties. Of its root, a large one, only the rows are read that a change can meet:
along the tree, from its ends to the root. They are few, and the other inputs are joined to them. A
large input is so read once, or twice if it is between others. A changed row of the root that meets
no other change may count (0, w): what it is joined with did not change.

No order of such readings does with fewer. Let A and B be two inputs on the way between two changed
ones. What is needed of A are its rows that meet the one change, and those that meet rows of B which
the other change has met; of B the same, with A in its place. If both were read once, each would
have to be read before the other. So of the inputs on the way one is read once: the root.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from runnel.algebra.nodes import Node
from runnel.compile.differentiate.emitter import Emitter, condition, listed, names_of
from runnel.compile.differentiate.join_graph import JoinGraph, JoinTree, sources
from runnel.compile.differentiate.nearness import distance_of, near_leaf, read_near, tie_of
from runnel.compile.differentiate.partition import is_leaf
from runnel.compile.near import Near
from runnel.compile.program import Keep, W, hint, smaller, step_of
from runnel.model.columns import Column

# The terms of fewer changed inputs need no steps that are kept. But where the easiest way from one
# of two to the other leads through others, each term would read those.
_FEWEST = 3
_OLD, _NEW = "__wo", "__wn"

_Message = tuple[int, str]
"""An input, and a step with rows of it."""


def change_by_dual_weights(
    emitter: Emitter, graph: JoinGraph
) -> tuple[str, Mapping[int, int | None]] | None:
    """The step of the join's change, and the inputs it has joined; None when terms serve better.

    The inputs come with the distance of their rows from a change (see nearness).
    """
    tree = graph.tree() if len(graph.changed) > 1 else None
    if tree is None or not all(is_leaf(graph.node.inputs[i]) for i in tree.inputs):
        return None
    if len(graph.changed) < _FEWEST and len(tree.inputs) == len(graph.changed):
        return None
    made = _DualWeights(emitter, graph, tree)
    step = made.joined()
    return step, {index: made.distances[index] for index in tree.inputs}


@dataclass
class _DualWeights:
    emitter: Emitter
    graph: JoinGraph
    tree: JoinTree
    distances: dict[int, int | None] = field(default_factory=dict)
    """Of the rows that were last read of an input."""
    _up: dict[int, list[str]] = field(default_factory=dict)

    def joined(self) -> str:
        """The step that joins all inputs of the tree."""
        root, *others = self.tree.inputs
        first = self._met_root()
        columns = list(self._columns(root))
        sql = f"SELECT {listed(names_of(columns), _OLD, _NEW)} FROM {step_of(first)}"
        for index in others:
            columns += self._columns(index)
            sql = self._pair(sql, index, columns, first)
        netted = f"SELECT {listed(names_of(columns), f'{_NEW} - {_OLD} AS {W}')} FROM ({sql})"
        sql = f"{netted} WHERE {_NEW} <> {_OLD}"
        return self.emitter.add("join", "the join after minus the join before", sql, columns)

    def _pair(self, sql: str, index: int, columns: list[Column], first: str) -> str:
        """One more input, by all conditions that can be checked now; `first` tells of the left."""
        known = set(names_of(columns))
        own = set(names_of(self._columns(index)))
        usable = [c for c in self.graph.node.conjuncts if c.reads <= known and c.reads & own]
        both = [f"l.{w} * r.{w} AS {w}" for w in (_OLD, _NEW)]
        step = self._both_ends(index)
        return (
            f"SELECT {smaller('l', first, 'r', step)} {listed(names_of(columns), *both)}\n"
            f"FROM ({sql}) l JOIN {step_of(step)} r ON {condition(usable)}"
        )

    def _both_ends(self, index: int) -> str:
        """All rows of an input with their weights before and after."""
        node = self.graph.node.inputs[index]
        near = self._near(index, [self.tree.parent(index)])
        parts = self._parts(node, "TRUE", near)[:2]
        sql = "\nUNION ALL\n".join(_counted(node, *part) for part in parts)
        kind = "new" if near is None else "near"
        return self.emitter.add(
            "ends", f"input {index + 1} before and after", sql, node.columns,
            bounds=[f"{kind}:{source}" for source in sources(node)], near=near,
        )  # fmt: skip

    def _near(self, index: int, others: Iterable[int]) -> Near | None:
        """What is needed of an input whose rows count only if they meet those read of others."""
        node, known = self.graph.node.inputs, self.distances
        ties = [
            tie_of(self.emitter, node[index], self.graph.equalities(index, i), node[i], known[i])
            for i in others
        ]
        near = near_leaf(self.emitter, node[index], ties)
        self.distances[index] = distance_of(near)
        return near

    def _from_below(self, index: int) -> list[_Message]:
        children = self.tree.children[index]
        return [(child, step) for child in children for step in self._going_up(child)]

    def _going_up(self, index: int) -> list[str]:
        """The steps of an input's rows that are changed or meet a change below it."""
        if index not in self._up:
            self._up[index] = self._changed_or_met(index)
        return self._up[index]

    def _changed_or_met(self, index: int) -> list[str]:
        node = self.graph.node.inputs[index]
        change = self.emitter.change(node)
        messages = self._from_below(index)
        found = [change] if change is not None else []
        self.distances[index] = 0
        if messages:
            near = self._near(index, dict.fromkeys(child for child, _ in messages))
            rows = read_near(self.emitter.new(node).sql, near)
            names = listed(names_of(node.columns), W)
            met = f"SELECT {names} FROM ({rows}) r WHERE {self._is_met(index, messages)}"
            purpose = f"rows of input {index + 1} that meet a change"
            found.append(self._kept("reached", purpose, met, None, node, near))
        return found

    def _met_root(self) -> str:
        """The root's rows that can meet a change, with their weights before and after."""
        index = self.tree.root
        node = self.graph.node.inputs[index]
        messages = self._from_below(index)
        near = self._near(index, dict.fromkeys(child for child, _ in messages))
        parts = self._parts(node, self._is_met(index, messages), near)
        # Not as a column: Spark moves that into the parts of a union, and loses its way there.
        sql = "\nUNION ALL\n".join(_counted(node, *part) for part in parts)
        every = self._parts(node, "TRUE", None)[:2]
        whole = "\nUNION ALL\n".join(_counted(node, *part) for part in every)
        purpose = f"input {index + 1} before and after, where it can meet a change"
        return self._kept("ends", purpose, sql, whole, node, near)

    def _parts(self, node: Node, met: str, near: Near | None) -> list[tuple[str, str, str, str]]:
        """Rows, which of them, and their weights before and after."""
        parts = [(f"({read_near(self.emitter.new(node).sql, near)})", met, W, W)]
        change = self.emitter.change(node)
        if change is not None:
            none = "CAST(0 AS BIGINT)"
            parts.append((step_of(change), met, f"-{W}", none))
            parts.append((step_of(change), f"NOT {met}", none, W))
        return parts

    def _kept(
        self, stem: str, purpose: str, sql: str, whole: str | None, node: Node, near: Near | None
    ) -> str:
        return self.emitter.add(
            stem, purpose, sql, node.columns, keep=Keep.RESTRICTING, meets=self._all,
            of_small=whole, near=near,
        )  # fmt: skip

    def _is_met(self, index: int, messages: list[_Message]) -> str:
        """Whether a row of an input meets one of the messages."""
        found = [
            f"EXISTS (SELECT {hint('m', step)} 1 FROM {step_of(step)} m "
            f"WHERE {condition(self.graph.tie(index, other))})"
            for other, step in messages
        ]
        return f"({' OR '.join(found)})" if found else "FALSE"

    def _columns(self, index: int) -> tuple[Column, ...]:
        return self.graph.node.inputs[index].columns

    @property
    def _all(self) -> frozenset[str]:
        """What all inputs read: if it is little, nothing is restricted."""
        return frozenset().union(*(sources(self.graph.node.inputs[i]) for i in self.tree.inputs))


def _counted(node: Node, rows: str, where: str, old: str, new: str) -> str:
    """Some rows of an input with their weights before and after."""
    items = listed(names_of(node.columns), f"{old} AS {_OLD}", f"{new} AS {_NEW}")
    return f"SELECT {items} FROM {rows} r WHERE {where}"
