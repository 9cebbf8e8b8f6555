"""change(L semi R) = change(L) semi new(R) + A semi new(R) - A semi old(R), A = old(L) semi dR.

The same holds for anti. Only rows of L that are in its change or meet a change of R can differ.
"""

from __future__ import annotations

from runnel.algebra.nodes import Node, SemiJoin
from runnel.compile.differentiate.emitter import (
    Emitter,
    Reading,
    condition,
    consolidated,
    listed,
    names_of,
)
from runnel.compile.program import Keep, W, hint, step_of

_PURPOSE = {
    True: "change of the rows without a partner",
    False: "change of the rows with a partner",
}


def new_semi_join(emitter: Emitter, node: SemiJoin) -> Reading:
    left, right = emitter.new(node.left), present(emitter.new(node.right), node.right)
    names = listed((f"l.{n}" for n in names_of(node.columns)), f"l.{W}")
    kind = "ANTI" if node.is_anti else "SEMI"
    sql = (
        f"SELECT {names}\nFROM ({left.sql}) l LEFT {kind} JOIN ({right}) r "
        f"ON {condition(node.conjuncts)}"
    )
    return Reading(sql, left.is_unit)


def change_semi_join(emitter: Emitter, node: SemiJoin) -> str | None:
    left, right = node.left, node.right
    change_left, change_right = emitter.change(left), emitter.change(right)
    if change_left is None and change_right is None:
        return None
    names = listed(names_of(left.columns), W)
    touched = _touched(emitter, node, change_right)
    outer = _candidates(emitter, node, [name for name in (change_left, touched) if name])
    partners = _partners(emitter, node, outer)
    sql = _chosen(outer, partners, node, names)
    if touched is not None and change_right is not None:
        before = _partners_before(emitter, partners, change_right)
        sql += "\nUNION ALL\n" + _chosen(touched, before, node, names, sign="-")
    return emitter.add(
        "anti" if node.is_anti else "semi", _PURPOSE[node.is_anti], sql, left.columns
    )


def _candidates(emitter: Emitter, node: SemiJoin, parts: list[str]) -> str:
    """The rows of several steps together."""
    names = listed(names_of(node.left.columns), W)
    sql = " UNION ALL ".join(f"SELECT {names} FROM {step_of(name)}" for name in parts)
    return emitter.add(
        "candidates", "rows that may gain or lose a partner", sql, node.left.columns,
        keep=Keep.SHARED, bounds=[f"step:{name}" for name in parts],
    )  # fmt: skip


def _touched(emitter: Emitter, node: SemiJoin, change_right: str | None) -> str | None:
    """A = old(left) semi change(right)."""
    if change_right is None:
        return None
    emitter.keep(change_right)
    names = listed((f"l.{n}" for n in names_of(node.columns)), f"l.{W}")
    sql = (
        f"SELECT {hint('r', change_right)} {names}\nFROM ({emitter.old(node.left).sql}) l "
        f"LEFT SEMI JOIN {step_of(change_right)} r ON {condition(node.conjuncts)}"
    )
    return emitter.add(
        "touched", "old rows that meet a change of the other side", sql, node.columns,
        keep=Keep.ALWAYS,
    )  # fmt: skip


def _partners(emitter: Emitter, node: SemiJoin, outer: str) -> str:
    """new(right), restricted to what the candidates can meet; only the columns of the condition."""
    columns = [c for c in node.right.columns if any(c.name in s.reads for s in node.conjuncts)]
    names = names_of(columns)
    reading = emitter.new(node.right)
    chosen = listed((f"r.{n}" for n in names), f"r.{W}")
    sql = (
        f"SELECT {hint('l', outer)} {chosen}\nFROM ({reading.sql}) r "
        f"LEFT SEMI JOIN {step_of(outer)} l ON {condition(node.conjuncts)}"
    )
    return emitter.add(
        "partners", "present partners of the candidates", consolidated(sql, names), columns,
        keep=Keep.ALWAYS,
    )  # fmt: skip


def _partners_before(emitter: Emitter, partners: str, change_right: str) -> str:
    columns = emitter.steps[partners].columns
    names = names_of(columns)
    union = (
        f"SELECT {listed(names, W)} FROM {step_of(partners)} UNION ALL "
        f"SELECT {listed(names, f'-{W} AS {W}')} FROM {step_of(change_right)}"
    )
    return emitter.add(
        "partners_before", "their partners before", consolidated(union, names), columns
    )


def _chosen(rows: str, partners: str, node: SemiJoin, names: str, sign: str = "") -> str:
    """Rows with, or without, a partner whose total is positive."""
    exists = "NOT EXISTS" if node.is_anti else "EXISTS"
    chosen = names.replace(W, f"{sign}{W} AS {W}") if sign else names
    return (
        f"SELECT {chosen} FROM {step_of(rows)} l WHERE {exists} (SELECT 1 FROM "
        f"{step_of(partners)} r WHERE r.{W} > 0 AND {condition(node.conjuncts)})"
    )


def present(reading: Reading, node: Node) -> str:
    """Rows with a positive total: what 'is there a partner' must be asked of."""
    if reading.is_unit:
        return reading.sql
    return consolidated(reading.sql, names_of(node.columns), "> 0")
