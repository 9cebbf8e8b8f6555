"""ORDER BY ... LIMIT for each outer row: the rows are numbered, and the first of them kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runnel.algebra.nodes import Filter, Node, Project, TopK, Window, WindowCall, identity
from runnel.algebra.scalar import Scalar

if TYPE_CHECKING:
    from runnel.compile.build import Builder


def first_rows(builder: Builder, node: TopK) -> Node:
    """The same rows by their numbers, which may be given within partitions."""
    number = builder.fresh("int")
    # Only what it shows, which its order decides: rows that tie are equal then.
    shown = identity(node.columns)
    call = WindowCall(Scalar.constant("ROW_NUMBER()"), node.order, "", number)
    numbered = Window(Project(node.input, shown), (), (call,))
    kept = [Scalar(("", f" > {node.offset}"), (number.name,))]
    if node.limit is not None:
        kept.append(Scalar(("", f" <= {node.offset + node.limit}"), (number.name,)))
    return Filter(numbered, tuple(kept))
