"""Whether a recursive step adds up over its own rows: step(A + B) = step(A) + step(B).

Then a round needs the last round's rows only.
"""

from __future__ import annotations

from runnel.algebra.nodes import (
    Filter,
    Generate,
    InnerJoin,
    JoinKind,
    Node,
    OuterJoin,
    Project,
    Recursive,
    Repeat,
    SemiJoin,
    UnionAll,
)
from runnel.compile.differentiate.worlds import is_recursive


def adds_up(step: Node, key: str) -> bool:
    return hindrance(step, key) is None


def hindrance(node: Node, key: str) -> str | None:
    """What stands in the way, in words; {} is where the recursion's name belongs."""
    if not is_recursive(node, key):
        return None
    match node:
        case InnerJoin() if sum(is_recursive(child, key) for child in node.inputs) > 1:
            return "{}, joined with itself in its own step,"
        case UnionAll() if not all(is_recursive(child, key) for child in node.inputs):
            return "a part of the step of {} that does not read {}"
        case SemiJoin() if is_recursive(node.right, key):
            return "{} inside EXISTS or IN in its own step"
        case OuterJoin() if node.kind is JoinKind.FULL or is_recursive(node.right, key):
            return "{} on the optional side of an outer join in its own step"
        case (
            Recursive() | Project() | Filter() | Generate() | Repeat() | InnerJoin() | UnionAll()
            | SemiJoin() | OuterJoin()
        ):  # fmt: skip
            return next((found for c in node.inputs if (found := hindrance(c, key))), None)
        case _:
            kind = type(node).__name__
            return "{} under grouping, DISTINCT or the like (" + kind + ") in its own step"


def needs_rows(node: Node, key: str) -> bool:
    """Whether nothing follows from nothing: then the first round need not ask."""
    match node:
        case Recursive():
            return node.name == key
        case InnerJoin():
            return any(needs_rows(child, key) for child in node.inputs)
        case UnionAll():
            return all(needs_rows(child, key) for child in node.inputs)
        case OuterJoin() | SemiJoin():
            return needs_rows(node.left, key)
        case _ if node.inputs:
            return needs_rows(node.inputs[0], key)
        case _:
            return False
