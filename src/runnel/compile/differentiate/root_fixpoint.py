"""Recursive rows at the root: the trace holds them all, so that both walks start from it.

As sets each row is stored with the number of its derivations, and shown once.
"""

from __future__ import annotations

from collections.abc import Mapping

from runnel.algebra.nodes import Fixpoint
from runnel.algebra.scalar import Scalar
from runnel.compile.differentiate.emitter import Emitter, consolidated, listed, names_of
from runnel.compile.differentiate.fixpoint import (
    Before,
    Parts,
    difference,
    evaluated,
    walk_both,
)
from runnel.compile.differentiate.rounds import contents, same
from runnel.compile.differentiate.worlds import can_walk
from runnel.compile.program import STATE, Keep, W, hint, step_of
from runnel.model.columns import WEIGHT, Column

COUNT = "s0"
_Items = tuple[tuple[Column, Scalar], ...]


def full_root_fixpoint(emitter: Emitter, node: Fixpoint, items: _Items) -> str:
    """The stored rows of the whole result."""
    step = evaluated(emitter, node)
    if not node.is_distinct:
        return _stored(items, contents(node, step), W)
    return _stored(items, _counted(node, step), "CAST(1 AS BIGINT)")


def change_root_fixpoint(
    emitter: Emitter, node: Fixpoint, stored: Mapping[str, str], items: _Items
) -> str | None:
    """Write the steps; `stored` maps the fixpoint's columns, and the count, to the trace's.

    Returns the name of a step whose emptiness means there is no change.
    """
    parts = Parts.of(emitter, node)
    if not parts.is_changed:
        return None
    delta = None
    names = names_of(node.columns)
    own = [f"{stored[n]} AS {n}" for n in names]
    rows = f"SELECT {listed(own, f'{WEIGHT} AS {W}')} FROM {STATE}"
    if not can_walk(node, parts.inputs):
        sql = _recomputed(emitter, node, items)
    elif not node.is_distinct:
        walks = walk_both(emitter, node, parts, Before(rows, rows))
        come = contents(node, walks.come) if walks.come else None
        gone = contents(node, walks.gone) if walks.gone else None
        sql = _netted(items, _stored(items, difference(node, come, gone), W))
    else:
        counts = f"SELECT {listed(own, f'{stored[COUNT]} * {WEIGHT} AS {W}')} FROM {STATE}"
        walks = walk_both(emitter, node, parts, Before(rows, counts))
        delta = _delta(emitter, node, (walks.come, walks.gone))
        sql = _states(node, items, counts, delta)
    emitter.add("output", "old rows out, new rows in", sql, [c for c, _ in items])
    return delta


def _delta(emitter: Emitter, node: Fixpoint, walks: tuple[str | None, str | None]) -> str:
    names = names_of(node.columns)
    signs = zip(walks, (W, f"-{W} AS {W}"), strict=True)
    tallies = [f"SELECT {listed(names, w)} FROM {step_of(s)}" for s, w in signs if s is not None]
    sql = consolidated(" UNION ALL ".join(tallies), names)
    purpose = "derivations that came and went"
    return emitter.add("delta", purpose, sql, node.columns, keep=Keep.ALWAYS)


def _states(node: Fixpoint, items: _Items, counts: str, delta: str) -> str:
    """The touched rows, with the count before out and the count after in."""
    names = names_of(node.columns)
    both = (
        f"SELECT {hint('d', delta)} {listed((f's.{n}' for n in names), f's.{W} AS __b', f's.{W}')} "
        f"FROM ({counts}) s LEFT SEMI JOIN {step_of(delta)} d ON {same(names, 's', 'd')}\n"
        f"UNION ALL\nSELECT {listed(names, 'CAST(0 AS BIGINT) AS __b', W)} FROM {step_of(delta)}"
    )
    ends = (
        f"SELECT {listed(names, 'SUM(__b) AS __b', f'SUM({W}) AS __a')} FROM ({both})\n"
        f"GROUP BY {listed(names)}"
    )
    doubled = f"SELECT *, EXPLODE(ARRAY(-1, 1)) AS __s FROM ({ends})"
    picked = "CASE WHEN __s < 0 THEN __b ELSE __a END"
    chosen = f"SELECT {listed(names, f'{picked} AS {COUNT}', '__s')} FROM ({doubled})"
    return _stored(items, f"{chosen} WHERE {picked} > 0", "CAST(__s AS BIGINT)")


def _recomputed(emitter: Emitter, node: Fixpoint, items: _Items) -> str:
    """All rows anew, minus what the trace holds."""
    new = full_root_fixpoint(emitter, node, items)
    names = listed((c.name for c, _ in items), f"-{WEIGHT} AS {WEIGHT}")
    return _netted(items, f"{new}\nUNION ALL\nSELECT {names} FROM {STATE}")


def _counted(node: Fixpoint, step: str) -> str:
    names = listed(names_of(node.columns))
    return f"SELECT {names}, SUM({W}) AS {COUNT} FROM {step_of(step)} GROUP BY {names}"


def _stored(items: _Items, sql: str, weight: str) -> str:
    chosen = [f"{scalar} AS {column.name}" for column, scalar in items]
    return f"SELECT {listed(chosen, f'{weight} AS {WEIGHT}')} FROM ({sql})"


def _netted(items: _Items, sql: str) -> str:
    names = listed(c.name for c, _ in items)
    return (
        f"SELECT {names}, SUM({WEIGHT}) AS {WEIGHT} FROM ({sql})\n"
        f"GROUP BY {names} HAVING SUM({WEIGHT}) <> 0"
    )
