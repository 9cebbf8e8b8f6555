"""L left-join R = L x R + pad(L anti R), so its change is the sum of theirs; FULL is both sides.

change(L anti R) = change(L) anti new(R) + A anti new(R) - A anti old(R),  A = old(L) semi change(R)
"""

from __future__ import annotations

from runnel.algebra.nodes import InnerJoin, JoinKind, Node, OuterJoin
from runnel.compile.differentiate.emitter import (
    Emitter,
    Reading,
    condition,
    consolidated,
    listed,
    names_of,
)
from runnel.compile.program import Keep, W, hint, step_of


def new_outer_join(emitter: Emitter, node: OuterJoin) -> Reading:
    left, right = emitter.new(node.left), emitter.new(node.right)
    right_sql = _present(right, node.right)
    left_sql = left.sql if node.kind is JoinKind.LEFT else _present(left, node.left)
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
    lonely = _change_anti(emitter, node, left, right)
    if lonely is None:
        return None
    own = {c.name for c in left.columns}
    items = [
        c.name if c.name in own else f"CAST(NULL AS {c.type}) AS {c.name}" for c in node.columns
    ]
    sql = f"SELECT {listed(items, W)} FROM {step_of(lonely)}"
    return emitter.add("pad", "rows without a partner, padded", sql, node.columns)


def _change_anti(emitter: Emitter, node: OuterJoin, left: Node, right: Node) -> str | None:
    change_left, change_right = emitter.change(left), emitter.change(right)
    if change_left is None and change_right is None:
        return None
    names = listed(names_of(left.columns), W)
    touched = _touched(emitter, node, left, change_right)
    candidates = " UNION ALL ".join(
        f"SELECT {names} FROM {step_of(name)}" for name in (change_left, touched) if name
    )
    outer = emitter.add(
        "candidates", "rows that may gain or lose their partner", candidates, left.columns,
        keep=Keep.ALWAYS,
    )  # fmt: skip
    partners = _partners(emitter, node, right, outer)
    sql = _anti(outer, partners, node, names)
    if touched is not None and change_right is not None:
        before = _partners_before(emitter, node, right, partners, change_right)
        sql += "\nUNION ALL\n" + _anti(touched, before, node, names, sign="-")
    return emitter.add("lonely", "change of the rows without a partner", sql, left.columns)


def _touched(emitter: Emitter, node: OuterJoin, left: Node, change_right: str | None) -> str | None:
    """A = old(left) semi change(right)."""
    if change_right is None:
        return None
    emitter.keep(change_right)
    names = listed((f"l.{n}" for n in names_of(left.columns)), f"l.{W}")
    sql = (
        f"SELECT {hint('r', change_right)} {names}\nFROM ({emitter.old(left).sql}) l "
        f"LEFT SEMI JOIN {step_of(change_right)} r ON {condition(node.conjuncts)}"
    )
    return emitter.add(
        "touched", "old rows that meet a change of the other side", sql, left.columns,
        keep=Keep.ALWAYS,
    )  # fmt: skip


def _partners(emitter: Emitter, node: OuterJoin, right: Node, outer: str) -> str:
    """new(right), restricted to what the candidates can meet; only the columns of the condition."""
    columns = [c for c in right.columns if any(c.name in s.reads for s in node.conjuncts)]
    names = names_of(columns)
    reading = emitter.new(right)
    chosen = listed((f"r.{n}" for n in names), f"r.{W}")
    sql = (
        f"SELECT {hint('l', outer)} {chosen}\nFROM ({reading.sql}) r "
        f"LEFT SEMI JOIN {step_of(outer)} l ON {condition(node.conjuncts)}"
    )
    return emitter.add(
        "partners", "present partners of the candidates", consolidated(sql, names), columns,
        keep=Keep.ALWAYS,
    )  # fmt: skip


def _partners_before(
    emitter: Emitter, node: OuterJoin, right: Node, partners: str, change_right: str
) -> str:
    columns = emitter.steps[partners].columns
    names = names_of(columns)
    union = (
        f"SELECT {listed(names, W)} FROM {step_of(partners)} UNION ALL "
        f"SELECT {listed(names, f'-{W} AS {W}')} FROM {step_of(change_right)}"
    )
    return emitter.add(
        "partners_before", "their partners before", consolidated(union, names), columns
    )


def _anti(rows: str, partners: str, node: OuterJoin, names: str, sign: str = "") -> str:
    """Rows without a partner whose total is positive."""
    chosen = names.replace(W, f"{sign}{W} AS {W}") if sign else names
    return (
        f"SELECT {chosen} FROM {step_of(rows)} l WHERE NOT EXISTS (SELECT 1 FROM "
        f"{step_of(partners)} r WHERE r.{W} > 0 AND {condition(node.conjuncts)})"
    )


def _present(reading: Reading, node: Node) -> str:
    """Rows with a positive total: what 'is there a partner' must be asked of."""
    if reading.is_unit:
        return reading.sql
    return consolidated(reading.sql, names_of(node.columns), "> 0")
