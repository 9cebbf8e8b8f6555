"""Columns nobody reads disappear, so that changes of them disappear too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from runnel.algebra.nodes import (
    Aggregate,
    Filter,
    Fixpoint,
    Generate,
    InnerJoin,
    Node,
    OneRow,
    OuterJoin,
    Project,
    Recursive,
    Repeat,
    Scan,
    SemiJoin,
    TopK,
    UnionAll,
    Window,
    identity,
)
from runnel.algebra.scalar import Scalar
from runnel.compile.normalize.rebuild import with_inputs
from runnel.model.columns import Column


def prune_columns(node: Node) -> Node:
    """Drop unread columns below the root; the root keeps its columns."""
    return _prune(node, {c.name for c in node.columns})


def _prune(node: Node, needed: set[str]) -> Node:
    match node:
        case Scan():
            return _prune_scan(node, needed)
        case OneRow() | Recursive():
            return node
        case Fixpoint():
            # Every column of a row decides which rows follow from it, and whether it is new.
            return with_inputs(node, tuple(prune_columns(child) for child in node.inputs))
        case Project():
            items = tuple((c, s) for c, s in node.items if c.name in needed)
            return Project(_prune(node.input, _reads(s for _, s in items)), items)
        case Filter():
            return Filter(_prune(node.input, needed | _reads(node.conjuncts)), node.conjuncts)
        case InnerJoin():
            wanted = needed | _reads(node.conjuncts)
            return InnerJoin(tuple(_prune(c, wanted) for c in node.inputs), node.conjuncts)
        case OuterJoin():
            wanted = needed | _reads(node.conjuncts)
            left, right = _prune(node.left, wanted), _prune(node.right, wanted)
            return OuterJoin(node.kind, left, right, node.conjuncts)
        case SemiJoin():
            read = _reads(node.conjuncts)
            left, right = _prune(node.left, needed | read), _prune(node.right, read)
            return SemiJoin(left, right, node.conjuncts, node.is_anti)
        case Repeat():
            return Repeat(_prune(node.input, needed | set(node.times.columns)), node.times)
        case Generate():
            # Unread or not, the generated columns stay: how many rows there are depends on them.
            input_ = _prune(node.input, needed | set(node.function.columns))
            return replace(node, input=input_)
        case UnionAll():
            return _prune_union(node, needed)
        case Aggregate():
            return _prune_aggregate(node, needed)
        case Window():
            return _prune_window(node, needed)
        case TopK():
            wanted = needed | {key.column for key in node.order}
            return TopK(_prune(node.input, wanted), node.order, node.limit, node.offset)


def _prune_scan(node: Scan, needed: set[str]) -> Scan:
    kept = [(c, n) for c, n in zip(node.columns, node.names, strict=True) if c.name in needed]
    columns, names = tuple(c for c, _ in kept), tuple(n for _, n in kept)
    return Scan(node.source, columns, names, node.weight)


def _prune_union(node: UnionAll, needed: set[str]) -> UnionAll:
    places = [i for i, c in enumerate(node.columns) if c.name in needed]
    inputs = []
    for child in node.inputs:
        kept = tuple(child.columns[i] for i in places)
        pruned = _prune(child, {c.name for c in kept})
        # A branch may carry more columns than asked (a filter's): bring it to the exact list.
        inputs.append(_exactly(pruned, kept))
    return UnionAll(tuple(inputs), tuple(node.columns[i] for i in places))


def _prune_aggregate(node: Aggregate, needed: set[str]) -> Aggregate:
    calls = tuple(c for c in node.calls if c.output.name in needed)
    arguments = {a.name for call in calls for a in call.arguments}
    return Aggregate(
        _prune(node.input, set(node.keys) | arguments), node.keys, calls, node.is_global
    )


def _prune_window(node: Window, needed: set[str]) -> Node:
    calls = tuple(c for c in node.calls if c.output.name in needed)
    wanted = needed | set(node.partition) | {name for call in calls for name in call.reads}
    if not calls:
        return _prune(node.input, needed)
    rows = _prune(node.input, wanted)
    kept = tuple(c for c in rows.columns if c.name in wanted)
    # Copies are placed in any order: they must not differ in a column that nobody asked for.
    return Window(_exactly(rows, kept), node.partition, calls)


def _exactly(node: Node, columns: tuple[Column, ...]) -> Node:
    return node if node.columns == columns else Project(node, identity(columns))


def _reads(scalars: Iterable[Scalar]) -> set[str]:
    return {name for scalar in scalars for name in scalar.columns}
