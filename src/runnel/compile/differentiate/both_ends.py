"""The rows that a change touches, before and after, from one reading: old = new - change."""

from __future__ import annotations

from runnel.algebra.nodes import Node
from runnel.compile.differentiate.emitter import Emitter, listed
from runnel.compile.program import Keep, W, hint, step_of


def both_ends(
    emitter: Emitter, node: Node, names: list[str], keys: tuple[str, ...], called: tuple[str, str]
) -> str:
    """Columns of the rows of N that have keys of its change, with weights __o and __n.

    `called` are the name and the purpose of the step that gives these keys.
    """
    change = emitter.change(node)
    assert change is not None
    rows = emitter.new(node).sql
    if keys:
        rows = _touched(emitter, node, (rows, names), keys, called)
    return (
        f"SELECT {listed(names, f'{W} AS __o', f'{W} AS __n')} FROM ({rows})\nUNION ALL\n"
        f"SELECT {listed(names, f'-{W} AS __o', 'CAST(0 AS BIGINT) AS __n')} "
        f"FROM {step_of(change)}"
    )


def _touched(
    emitter: Emitter,
    node: Node,
    rows: tuple[str, list[str]],
    keys: tuple[str, ...],
    called: tuple[str, str],
) -> str:
    change = emitter.change(node)
    assert change is not None
    by_name = {c.name: c for c in node.columns}
    touched = emitter.add(
        *called, f"SELECT DISTINCT {listed(keys)} FROM {step_of(change)}",
        [by_name[k] for k in keys], keep=Keep.ALWAYS,
    )  # fmt: skip
    match = " AND ".join(f"i.{k} <=> k.{k}" for k in keys)
    sql, names = rows
    return (
        f"SELECT {hint('k', touched)} {listed((f'i.{n}' for n in names), f'i.{W}')} "
        f"FROM ({sql}) i LEFT SEMI JOIN {step_of(touched)} k ON {match}"
    )


def netted_ends(both: str, names: list[str]) -> str:
    """Sum the weights before (__o) and after (__n) of equal rows."""
    group = f" GROUP BY {listed(names)}" if names else ""
    return f"SELECT {listed(names, 'SUM(__o) AS __o', 'SUM(__n) AS __n')} FROM ({both}){group}"
