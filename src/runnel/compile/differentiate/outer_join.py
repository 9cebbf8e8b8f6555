"""L left-join R = L x R + pad(L anti R), so its change is the sum of theirs; FULL is both sides."""

from __future__ import annotations

from runnel.algebra.nodes import InnerJoin, JoinKind, Node, OuterJoin, SemiJoin
from runnel.compile.differentiate.emitter import Emitter, Reading, condition, listed, names_of
from runnel.compile.differentiate.semi_join import present
from runnel.compile.program import W, step_of


def new_outer_join(emitter: Emitter, node: OuterJoin) -> Reading:
    left, right = emitter.new(node.left), emitter.new(node.right)
    right_sql = present(right, node.right)
    left_sql = left.sql if node.kind is JoinKind.LEFT else present(left, node.left)
    weight = f"COALESCE(l.{W}, 1) * COALESCE(r.{W}, 1) AS {W}"
    kind, on = node.kind.upper(), condition(node.conjuncts)
    sql = (
        f"SELECT {listed(names_of(node.columns), weight)}\n"
        f"FROM ({left_sql}) l {kind} JOIN ({right_sql}) r ON {on}"
    )
    return Reading(sql, left.is_unit and right.is_unit)


def change_outer_join(emitter: Emitter, node: OuterJoin) -> str | None:
    parts = [emitter.change(InnerJoin((node.left, node.right), node.conjuncts))]
    parts.append(_change_pad(emitter, node, node.left, node.right))
    if node.kind is JoinKind.FULL:
        parts.append(_change_pad(emitter, node, node.right, node.left))
    present = [p for p in parts if p is not None]
    if not present:
        return None
    names = listed(names_of(node.columns), W)
    sql = "\nUNION ALL\n".join(f"SELECT {names} FROM {step_of(part)}" for part in present)
    return emitter.add("outer", "matches and padded rows", sql, node.columns)


def _change_pad(emitter: Emitter, node: OuterJoin, left: Node, right: Node) -> str | None:
    """change(left anti right), padded with NULLs for the right columns."""
    lonely = emitter.change(SemiJoin(left, right, node.conjuncts, is_anti=True))
    if lonely is None:
        return None
    own = {c.name for c in left.columns}
    items = [
        c.name if c.name in own else f"CAST(NULL AS {c.type}) AS {c.name}" for c in node.columns
    ]
    sql = f"SELECT {listed(items, W)} FROM {step_of(lonely)}"
    return emitter.add("pad", "rows without a partner, padded", sql, node.columns)
