"""Parts of a tree that are read more than once stay one: normalised by themselves, put back alike.

What one use filters or leaves out must not go into a part that another use reads too: the parts
would differ, and each would be computed by itself. So it stops above a part that is dear to
compute; one that only reads, filters or unites sources is better off without being shared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runnel.algebra.nodes import (
    Aggregate,
    Fixpoint,
    InnerJoin,
    Node,
    OuterJoin,
    Project,
    Repeat,
    Scan,
    SemiJoin,
    TopK,
    Window,
    identity,
    walk,
)
from runnel.compile.normalize.rebuild import with_inputs
from runnel.compile.program import W

_DEAR = (InnerJoin, OuterJoin, SemiJoin, Repeat, Aggregate, Window, TopK, Fixpoint)


def share_parts(
    tree: Node, parts: Sequence[Node], normalize: Callable[[Node], Node]
) -> tuple[Node, tuple[Node, ...]]:
    """Normalise a tree in which `parts` may stand several times, inner parts first.

    The tree, and those of the parts that are shared, as they stand in it.
    """
    pieces, leaves = _cut(tree, parts)
    done: list[Node] = []
    for leaf, piece in zip((None, *leaves), pieces, strict=True):
        done.append(normalize(piece if leaf is None else _read_of(piece, leaf, done)))
    for place in reversed(range(1, len(done))):
        leaf, part = leaves[place - 1], done[place]
        done = [_put_back(piece, leaf, part) for piece in done]
    return done[0], tuple(done[1:])


def _cut(tree: Node, parts: Sequence[Node]) -> tuple[list[Node], list[Scan]]:
    """The tree and its shared parts, each with leaves in the place of the shared parts in it.

    Outer parts come first: one that only a shared part reads, and once, is not shared itself.
    """
    pieces, leaves = [tree], list[Scan]()
    for part in reversed(parts):
        uses = sum(node is part for piece in pieces for node in walk(piece))
        if uses > 1 and any(isinstance(node, _DEAR) for node in walk(part)):
            names = tuple(c.name for c in part.columns)
            leaf = Scan(f"part {len(leaves)}", part.columns, names, W)
            pieces = [*(_replaced(piece, part, leaf) for piece in pieces), part]
            leaves.append(leaf)
    return pieces, leaves


def _replaced(node: Node, part: Node, leaf: Scan) -> Node:
    if node is part:
        return leaf
    inputs = tuple(_replaced(child, part, leaf) for child in node.inputs)
    return with_inputs(node, inputs) if inputs != node.inputs else node


def _read_of(part: Node, leaf: Scan, users: list[Node]) -> Node:
    """The part with the columns that are read of it somewhere."""
    read = {name for user in users for node in _uses(user, leaf) for name in node.names}
    columns = tuple(c for c in part.columns if c.name in read)
    return part if columns == part.columns else Project(part, identity(columns))


def _uses(piece: Node, leaf: Scan) -> list[Scan]:
    return [n for n in walk(piece) if isinstance(n, Scan) and n.source == leaf.source]


def _put_back(node: Node, leaf: Scan, part: Node) -> Node:
    if isinstance(node, Scan) and node.source == leaf.source:
        return part if node.columns == part.columns else Project(part, identity(node.columns))
    inputs = tuple(_put_back(child, leaf, part) for child in node.inputs)
    return with_inputs(node, inputs) if inputs != node.inputs else node
