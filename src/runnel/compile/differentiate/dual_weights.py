"""The change of a join of which several inputs changed, as the join after minus the join before:

    change = product of w_new - product of w_old

Every row carries its weights at both ends, so that one join takes the place of one for each changed
input. A row of new(R) counts (w, w) and one of its change (-w, 0), since old = new - change. The
inputs form a tree of ties. Of its root, a large one, only the rows are read that a change can meet:
along the tree, from its ends to the root. They are few, and the other inputs are joined to them. A
large input is so read once, or twice if it is between others. A changed row of the root that meets
no other change may count (0, w): what it is joined with did not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from runnel.algebra.nodes import Node
from runnel.compile.differentiate.emitter import Emitter, condition, listed, names_of
from runnel.compile.differentiate.join_graph import JoinGraph, JoinTree, sources
from runnel.compile.differentiate.partition import is_leaf
from runnel.compile.program import Keep, W, hint, smaller, step_of
from runnel.model.columns import Column

# With fewer changed inputs their terms need no steps that are kept.
_FEWEST = 3
_OLD, _NEW = "__wo", "__wn"

_Message = tuple[int, str]
"""An input, and a step with rows of it."""


def change_by_dual_weights(
    emitter: Emitter, graph: JoinGraph, changed: Sequence[int]
) -> tuple[str, tuple[int, ...]] | None:
    """The step of the join's change, and the inputs it has joined; None when terms serve better."""
    if len(changed) < _FEWEST:
        return None
    tree = graph.tree(changed)
    if tree is None or not all(is_leaf(graph.node.inputs[i]) for i in tree.inputs):
        return None
    return _DualWeights(emitter, graph, tree).joined(), tree.inputs


@dataclass
class _DualWeights:
    emitter: Emitter
    graph: JoinGraph
    tree: JoinTree
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
        parts = self._parts(node, "TRUE")[:2]
        sql = "\nUNION ALL\n".join(_counted(node, *part) for part in parts)
        bounds = [f"new:{source}" for source in sources(node)]
        return self.emitter.add(
            "ends", f"input {index + 1} before and after", sql, node.columns, bounds=bounds
        )

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
        if messages:
            reading = self.emitter.new(node)
            names = listed(names_of(node.columns), W)
            met = f"SELECT {names} FROM ({reading.sql}) r WHERE {self._is_met(index, messages)}"
            purpose = f"rows of input {index + 1} that meet a change"
            found.append(self._kept("reached", purpose, met, None, node, self._all))
        return found

    def _met_root(self) -> str:
        """The root's rows that can meet a change, with their weights before and after."""
        index = self.tree.root
        node = self.graph.node.inputs[index]
        parts = self._parts(node, self._is_met(index, self._from_below(index)))
        # Not as a column: Spark moves that into the parts of a union, and loses its way there.
        sql = "\nUNION ALL\n".join(_counted(node, *part) for part in parts)
        whole = "\nUNION ALL\n".join(_counted(node, p[0], "TRUE", *p[2:]) for p in parts[:2])
        purpose = f"input {index + 1} before and after, where it can meet a change"
        return self._kept("ends", purpose, sql, whole, node, self._all)

    def _parts(self, node: Node, met: str) -> list[tuple[str, str, str, str]]:
        """Rows, which of them, and their weights before and after."""
        parts = [(f"({self.emitter.new(node).sql})", met, W, W)]
        change = self.emitter.change(node)
        if change is not None:
            none = "CAST(0 AS BIGINT)"
            parts.append((step_of(change), met, f"-{W}", none))
            parts.append((step_of(change), f"NOT {met}", none, W))
        return parts

    def _kept(
        self, stem: str, purpose: str, sql: str, whole: str | None, node: Node,
        meets: frozenset[str],
    ) -> str:  # fmt: skip
        return self.emitter.add(
            stem, purpose, sql, node.columns, keep=Keep.RESTRICTING, meets=meets, of_small=whole
        )

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
