"""A recursive step as sets, brought to a form that counts derivations.

Whether a row is there depends only on which rows are there, so DISTINCT may go and EXISTS may be a
join: each row then comes once for every way to derive it. A step that kept them would not notice
that one of two reasons went, and rows that only support each other would stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runnel.algebra.nodes import (
    Aggregate,
    Filter,
    InnerJoin,
    Node,
    Project,
    SemiJoin,
    UnionAll,
)
from runnel.algebra.scalar import Scalar
from runnel.compile.differentiate.worlds import is_recursive
from runnel.compile.normalize.rebuild import with_inputs

if TYPE_CHECKING:
    from runnel.compile.build import Builder


def count_derivations(builder: Builder, step: Node, key: str) -> tuple[list[Node], list[Node]]:
    """The branches of a monotone step that start from nothing, and those that read its rows."""
    parts = _branches(builder, _counting(step, key))
    starts = [part for part in parts if not is_recursive(part, key)]
    return starts, [part for part in parts if is_recursive(part, key)]


def _counting(node: Node, key: str) -> Node:
    """Without DISTINCT and EXISTS around the rows of the recursion."""
    if not is_recursive(node, key):
        return node
    inputs = tuple(_counting(child, key) for child in node.inputs)
    node = with_inputs(node, inputs) if inputs else node
    match node:
        case Aggregate():
            return _bare(node.input, node)
        case SemiJoin(is_anti=False):
            return _bare(InnerJoin((node.left, node.right), node.conjuncts), node)
        case _:
            return node


def _bare(below: Node, node: Node) -> Project:
    return Project(below, tuple((c, Scalar.column(c.name)) for c in node.columns))


def _branches(builder: Builder, node: Node) -> list[Node]:
    """The branches of unions at the top, with what is above a union put on each."""
    match node:
        case UnionAll():
            return [branch for child in node.inputs for branch in _branches(builder, child)]
        case Project():
            branches = _branches(builder, node.input)
            if len(branches) == 1:
                return [node]
            return [_projected(builder, node, branch) for branch in branches]
        case Filter():
            return [
                Filter(b, tuple(s.rename(_names(node.input, b)) for s in node.conjuncts))
                for b in _branches(builder, node.input)
            ]
        case _:
            return [node]


def _projected(builder: Builder, node: Project, branch: Node) -> Node:
    names = _names(node.input, branch)
    return Project(branch, tuple((builder.fresh(c.type), s.rename(names)) for c, s in node.items))


def _names(union: Node, branch: Node) -> dict[str, str]:
    return {u.name: c.name for u, c in zip(union.columns, branch.columns, strict=True)}
