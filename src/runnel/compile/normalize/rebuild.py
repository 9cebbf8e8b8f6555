"""Apply a function to every node of a tree, children first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from runnel.algebra.nodes import (
    Aggregate,
    Filter,
    Fixpoint,
    Generate,
    InnerJoin,
    Node,
    OuterJoin,
    Project,
    Repeat,
    SemiJoin,
    TopK,
    UnionAll,
    Window,
)


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same operator over other inputs."""
    match node:
        case Project() | Filter() | Repeat() | Generate() | Aggregate() | Window() | TopK():
            return replace(node, input=inputs[0])
        case InnerJoin() | UnionAll():
            return replace(node, inputs=inputs)
        case OuterJoin() | SemiJoin():
            return replace(node, left=inputs[0], right=inputs[1])
        case Fixpoint():
            return replace(node, base=inputs[0], step=inputs[1])
        case _:
            return node


def bottom_up(node: Node, rewrite: Callable[[Node], Node]) -> Node:
    """Rewrite the inputs, then the node itself."""
    inputs = tuple(bottom_up(child, rewrite) for child in node.inputs)
    return rewrite(with_inputs(node, inputs) if inputs != node.inputs else node)
