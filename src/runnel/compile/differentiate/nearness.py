"""How a law says that it needs only those rows of a leaf that are near a change.

It knows the leaves that it ties to each other, and of each how far its rows are from a change: 0
for the changed rows themselves, n for rows near at level n, None for rows of which nothing is
known. Where it cannot say it in the sources' own columns, it says nothing, and all is read.
"""

from __future__ import annotations

from collections.abc import Iterable

from runnel.algebra.nodes import Filter, Node, Project, Scan
from runnel.compile.differentiate.emitter import Emitter
from runnel.compile.differentiate.partition import is_leaf, scan_of
from runnel.compile.near import MOST_LEVEL, Near, Tie
from runnel.compile.program import near_of, new_of

Pair = tuple[str, str, str]
"""A column, the sign, and the other leaf's column."""


def near_leaf(emitter: Emitter, leaf: Node, ties: Iterable[Tie | None]) -> Near | None:
    """A reading of a leaf that needs no rows but those of the ties; None when one is missing."""
    found = tuple(dict.fromkeys(ties))
    # Where other laws are in force a leaf is not what it seems.
    if not emitter.is_shared or not found or not is_leaf(leaf):
        return None
    known = tuple(tie for tie in found if tie is not None)
    scan = scan_of(leaf)
    if len(known) < len(found) or emitter.kinds[scan.source] != "delta":
        return None
    return Near(scan.source, scan.names, known)


def tie_of(
    emitter: Emitter, leaf: Node, pairs: Iterable[Pair], other: Node, distance: int | None
) -> Tie | None:
    """That a leaf's rows meet those of another one, at some distance from a change."""
    if distance is None or distance >= MOST_LEVEL or not (is_leaf(leaf) and is_leaf(other)):
        return None
    source = scan_of(other).source
    named = [(name_in(leaf, a), sign, name_in(other, b)) for a, sign, b in pairs]
    plain = [(a, sign, b) for a, sign, b in named if a is not None and b is not None]
    if not plain or emitter.kinds[source] != "delta":
        return None
    columns, signs, others = zip(*plain, strict=True)
    return Tie(columns, signs, source, others, distance + 1)


def read_near(sql: str, near: Near | None) -> str:
    """The text of a leaf's reading, of near rows where that is enough."""
    return sql if near is None else sql.replace(new_of(near.source), near_of(near.source))


def distance_of(near: Near | None) -> int | None:
    return near.level if near is not None else None


def name_in(leaf: Node, column: str) -> str | None:
    """What the source calls a leaf's column; None when it is computed."""
    if isinstance(leaf, Scan):
        names = {c.name: name for c, name in zip(leaf.columns, leaf.names, strict=True)}
        return names[column]
    if isinstance(leaf, Project):
        inner = next(s for c, s in leaf.items if c.name == column).bare_column
        return name_in(leaf.input, inner) if inner is not None else None
    assert isinstance(leaf, Filter)
    return name_in(leaf.input, column)
