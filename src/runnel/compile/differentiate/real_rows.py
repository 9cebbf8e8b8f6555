"""Rows that a change mentions but that are neither there before nor after: they cancel when netted.

    change(L) x old(R) + new(L) x change(R)     has such pairs when both sides changed

An expression may fail on one, though the query does not: it is computed for the netted change.
"""

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
    UnionAll,
)
from runnel.algebra.scalar import Scalar
from runnel.compile.differentiate.emitter import Emitter, listed, names_of
from runnel.compile.differentiate.linear import can_be_netted, netted
from runnel.compile.failing import may_fail
from runnel.compile.program import Keep, W, step_of

_RowWise = Project | Filter | Repeat | Generate


def real_change(emitter: Emitter, node: _RowWise, change: str) -> str:
    """The step that gives the input's change to a node that is computed row by row."""
    if not any(may_fail(s) for s in _scalars(node)) or _is_real(emitter, node.input):
        return change
    columns = node.input.columns
    if not can_be_netted(columns):
        return change
    sql = netted(columns, f"SELECT {listed(names_of(columns), W)} FROM {step_of(change)}")
    # A filter over a grouping would be moved below it again.
    keep = Keep.ALWAYS if isinstance(node, Filter) else Keep.NEVER
    return emitter.add("net", "rows that were there or are there now", sql, columns, keep=keep)


def _scalars(node: _RowWise) -> tuple[Scalar, ...]:
    match node:
        case Project():
            return tuple(scalar for _, scalar in node.items)
        case Filter():
            return node.conjuncts
        case Repeat():
            return (node.times,)
        case Generate():
            return (node.function,)


def _is_real(emitter: Emitter, node: Node) -> bool:
    """Whether each row of the change is one of old(N) or new(N) as it is."""
    match node:
        case Project() | Filter() | Repeat() | Generate() | UnionAll():
            return all(_is_real(emitter, child) for child in node.inputs)
        case InnerJoin() | OuterJoin() | SemiJoin():
            changed = [child for child in node.inputs if emitter.change(child) is not None]
            return len(changed) < 2 and all(_is_real(emitter, child) for child in changed)
        case _:
            return True
