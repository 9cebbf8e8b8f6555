"""Floating point aggregates below another operator get an order, in the tree and in the text alike.

At the top of a query the old value is read from the trace; anywhere else it is computed again, and
has to come out the same to the last digit. If one of them needs an order all of them get it, so
that the table, FULL and VERIFY decide alike on every border.

What is kept by exact sums of squares and products (`moments.py`) needs no order. It is written out
in the text wherever it stands: Spark's own way adds up doubles, and what it gives for a covariance
of 0, or for large numbers with a small spread, is near in no digit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from sqlglot import exp

from runnel.algebra.nodes import Aggregate, Call, Node, walk
from runnel.compile.aggregates import by_sums, in_order, is_aggregate
from runnel.compile.differentiate.state import is_inexact
from runnel.compile.normalize.rebuild import bottom_up
from runnel.compile.places import at

_NUMBER = "fold"


@dataclass
class Folds:
    """The calls that Spark adds up in the order of the rows, by the number of their places.

    `summed` are those that are kept by exact sums, with the types of their arguments.
    """

    noted: set[int] = field(default_factory=set)
    summed: dict[int, tuple[str, ...]] = field(default_factory=dict)
    unordered: list[exp.Expr] = field(default_factory=list)

    def note(self, call: Call, places: Sequence[exp.Expr]) -> None:
        """Remember where a call stands; copies of a node have its number."""
        self.noted.update(place.meta[_NUMBER] for place in places if _NUMBER in place.meta)
        if call.in_order is None:
            self.unordered.extend(places)

    def note_sums(self, call: Call, places: Sequence[exp.Expr]) -> bool:
        """Remember where a call stands that exact sums are kept of; False if that is not known."""
        if any(_NUMBER not in place.meta for place in places):
            return False
        types = tuple(argument.type for argument in call.arguments)
        self.summed.update((place.meta[_NUMBER], types) for place in places)
        return True

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """What is refused inside is refused at the first call that has no order, if any."""
        with at(self.unordered[0]) if self.unordered else nullcontext():
            yield

    def written(self, tree: exp.Query, *, with_order: bool) -> exp.Query | None:
        """The query with these calls written out, in order if need be; None without any."""
        if not self.summed and not with_order:
            return None

        def replaced(node: exp.Expr) -> exp.Expr:
            number = node.meta.get(_NUMBER)
            if number in self.summed:
                return by_sums(node, self.summed[number])
            return (in_order(node) or node) if with_order and number in self.noted else node

        return tree.copy().transform(replaced)  # type: ignore[return-value]


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
