"""Filters move to the inputs they concern, so that a change is filtered before it is netted."""

from __future__ import annotations

from dataclasses import replace

from runnel.algebra.nodes import (
    Filter,
    Generate,
    InnerJoin,
    JoinKind,
    Node,
    OuterJoin,
    Project,
    Repeat,
    SemiJoin,
    UnionAll,
    Window,
)
from runnel.algebra.scalar import Scalar
from runnel.compile.normalize.flatten_joins import filtered_join
from runnel.compile.normalize.rebuild import with_inputs


def push_filters(node: Node) -> Node:
    """Move each conjunct as far down as its columns allow."""
    return _push(node, ())


def _push(node: Node, above: tuple[Scalar, ...]) -> Node:
    match node:
        case Filter():
            return _push(node.input, node.conjuncts + above)
        case Project():
            values = {c.name: s for c, s in node.items}
            below = tuple(s.substitute(values) for s in above)
            return Project(_push(node.input, below), node.items)
        case InnerJoin():
            return _push_join(node, above)
        case OuterJoin(kind=JoinKind.LEFT):
            names = {c.name for c in node.left.columns}
            below, stay = _split(above, names)
            left, right = _push(node.left, below), _push(node.right, ())
            return _filter(OuterJoin(node.kind, left, right, node.conjuncts), stay)
        case SemiJoin():
            return _push_semi(node, above)
        case Repeat():
            return Repeat(_push(node.input, above), node.times)
        case Window():
            # A condition on the partition keeps or drops whole partitions.
            below, stay = _split(above, set(node.partition))
            return _filter(Window(_push(node.input, below), node.partition, node.calls), stay)
        case Generate():
            below, stay = _split(above, {c.name for c in node.input.columns})
            return _filter(replace(node, input=_push(node.input, below)), stay)
        case UnionAll():
            return UnionAll(
                tuple(_push(child, _renamed(above, node, child)) for child in node.inputs),
                node.columns,
            )
        case _:
            inputs = tuple(_push(child, ()) for child in node.inputs)
            return _filter(with_inputs(node, inputs) if inputs else node, above)


def _push_join(node: InnerJoin, above: tuple[Scalar, ...]) -> Node:
    remaining = node.conjuncts + above
    inputs = []
    for child in node.inputs:
        own, remaining = _split(remaining, {c.name for c in child.columns})
        inputs.append(_push(child, own))
    return filtered_join(tuple(inputs), remaining)


def _push_semi(node: SemiJoin, above: tuple[Scalar, ...]) -> Node:
    """What concerns one side of the condition filters that side; a partner must pass it."""
    right_only, rest = _split(node.conjuncts, {c.name for c in node.right.columns})
    if not node.is_anti:
        left_only, rest = _split(rest, {c.name for c in node.left.columns})
        above += left_only
    return SemiJoin(_push(node.left, above), _push(node.right, right_only), rest, node.is_anti)


def _split(
    conjuncts: tuple[Scalar, ...], names: set[str]
) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    """Those that read these columns only (and at least one of them), and the others."""
    inside = tuple(s for s in conjuncts if s.columns and s.reads <= names)
    return inside, tuple(s for s in conjuncts if s not in inside)


def _renamed(above: tuple[Scalar, ...], union: UnionAll, child: Node) -> tuple[Scalar, ...]:
    names = {u.name: c.name for u, c in zip(union.columns, child.columns, strict=True)}
    return tuple(s.rename(names) for s in above)


def _filter(node: Node, conjuncts: tuple[Scalar, ...]) -> Node:
    return Filter(node, conjuncts) if conjuncts else node
