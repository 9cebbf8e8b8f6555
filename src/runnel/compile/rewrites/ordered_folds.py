"""Floating point aggregates below another operator get an order, in the tree and in the text alike.

At the top of a query the old value is read from the trace; anywhere else it is computed again, and
has to come out the same to the last digit. If one of them needs an order all of them get it, so
that the table, FULL and VERIFY decide alike on every border.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from sqlglot import exp

from runnel.algebra.nodes import Aggregate, Call, Node, walk
from runnel.compile.aggregates import in_order, is_aggregate
from runnel.compile.differentiate.state import is_inexact
from runnel.compile.normalize.rebuild import bottom_up
from runnel.compile.places import at

_NUMBER = "fold"


@dataclass
class Folds:
    """The calls that depend on the order of their rows, by the number of their places."""

    noted: set[int] = field(default_factory=set)
    unordered: list[exp.Expr] = field(default_factory=list)

    def note(self, call: Call, places: Sequence[exp.Expr]) -> None:
        """Remember where a call stands; copies of a node have its number."""
        self.noted.update(place.meta[_NUMBER] for place in places if _NUMBER in place.meta)
        if call.in_order is None:
            self.unordered.extend(places)

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """What is refused inside is refused at the first call that has no order, if any."""
        with at(self.unordered[0]) if self.unordered else nullcontext():
            yield

    def written(self, tree: exp.Query) -> exp.Query:
        """The query with each of these calls in order."""
        return tree.copy().transform(self._replaced)  # type: ignore[return-value]

    def _replaced(self, node: exp.Expr) -> exp.Expr:
        if node.meta.get(_NUMBER) not in self.noted:
            return node
        return in_order(node) or node


def number_calls(tree: exp.Query) -> None:
    """Give every call of an aggregate function a number that its copies keep."""
    for number, node in enumerate(tree.walk()):
        if is_aggregate(node):
            node.meta[_NUMBER] = number


def needs_order(tree: Node, stored: Node) -> bool:
    """Whether such a call stands below another operator; `stored` is what the trace holds."""
    return any(
        isinstance(node, Aggregate) and node is not stored and any(map(_can_be_ordered, node.calls))
        for node in walk(tree)
    )


def put_in_order(tree: Node) -> Node:
    """The tree with every such call in order."""
    return bottom_up(tree, _ordered)


def _ordered(node: Node) -> Node:
    if not isinstance(node, Aggregate) or not any(map(_can_be_ordered, node.calls)):
        return node
    calls = (replace(c, text=c.in_order) if _can_be_ordered(c) else c for c in node.calls)
    return replace(node, calls=tuple(calls))


def _can_be_ordered(call: Call) -> bool:
    return call.in_order is not None and is_inexact(call)
