"""Which columns a tree reads that none of its own inputs has: those of the query around it."""

from __future__ import annotations

from runnel.algebra.nodes import (
    Filter,
    Generate,
    InnerJoin,
    Node,
    OuterJoin,
    Project,
    Repeat,
    SemiJoin,
    Window,
)
from runnel.algebra.scalar import Scalar


def free_columns(node: Node) -> frozenset[str]:
    """The names of the columns that only an outer query can give."""
    known = {c.name for child in node.inputs for c in child.columns}
    reads = {name for scalar in _scalars(node) for name in scalar.columns}
    return frozenset(reads - known).union(*(free_columns(child) for child in node.inputs))


def _scalars(node: Node) -> tuple[Scalar, ...]:
    match node:
        case Project():
            return tuple(scalar for _, scalar in node.items)
        case Filter() | InnerJoin() | OuterJoin() | SemiJoin():
            return node.conjuncts
        case Repeat():
            return (node.times,)
        case Generate():
            return (node.function,)
        case Window():
            return tuple(call.function for call in node.calls)
        case _:
            return ()
