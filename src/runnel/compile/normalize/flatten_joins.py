"""Chains of inner joins become one n-ary node, so that each change starts its own walk."""

from __future__ import annotations

from runnel.algebra.nodes import Filter, InnerJoin, Node
from runnel.algebra.scalar import Scalar
from runnel.compile.failing import raises
from runnel.compile.normalize.rebuild import bottom_up


def flatten_joins(node: Node) -> Node:
    """Merge nested inner joins, and filters above them, into one InnerJoin."""
    return bottom_up(node, _flatten)


def filtered_join(inputs: tuple[Node, ...], conjuncts: tuple[Scalar, ...]) -> Node:
    """A join; what raises errors filters its rows, since no pair of the inputs' rows may."""
    stay = tuple(c for c in conjuncts if raises(c))
    join = InnerJoin(inputs, tuple(c for c in conjuncts if c not in stay))
    return Filter(join, stay) if stay else join


def _flatten(node: Node) -> Node:
    match node:
        case InnerJoin():
            inputs: list[Node] = []
            conjuncts: list[Scalar] = list(node.conjuncts)
            for child in node.inputs:
                if isinstance(child, InnerJoin):
                    inputs.extend(child.inputs)
                    conjuncts.extend(child.conjuncts)
                else:
                    inputs.append(child)
            return InnerJoin(tuple(inputs), tuple(conjuncts))
        case Filter(input=InnerJoin() as join):
            return filtered_join(join.inputs, join.conjuncts + node.conjuncts)
        case Filter(input=Filter() as inner):
            return Filter(inner.input, inner.conjuncts + node.conjuncts)
        case _:
            return node
