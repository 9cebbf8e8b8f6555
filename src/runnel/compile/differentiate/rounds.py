"""A walk along a recursive step: rounds over the last round's new rows, until none is new.

Rows of a round are tallied: each with its weight, or as sets with the number of its derivations
from the last round, and `__new` when no round before had it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runnel.algebra.nodes import Fixpoint, Node
from runnel.compile.differentiate.emitter import Emitter, consolidated, listed, names_of
from runnel.compile.differentiate.worlds import Input, over
from runnel.compile.program import ALL, LAST, NEW, Keep, W, hint, step_of
from runnel.model.columns import Column

_ONE = f"CAST(1 AS BIGINT) AS {W}"


def walked(
    emitter: Emitter,
    node: Fixpoint,
    label: tuple[str, str],
    rows: str,
    inputs: Mapping[Node, Input],
    world: str,
    *,
    stop: str | None = None,
    seed: str | None = None,
    only_if: str | None = None,
) -> str:
    """Walk from `rows` (tallied and kept as step `seed`, if it is named), not beyond `stop`."""
    step = over(emitter, node, contents_of(node, LAST), inputs, world).new(node.step)
    follow = renamed(node, node.step.columns, step.sql)
    if node.is_distinct:
        tallied = rows if seed else _totals(node, rows)
        first = _marked(node, tallied, [_stopping(node, rows, stop, seed)] if stop else [])
        known = [f"SELECT {listed(names_of(node.columns))} FROM {ALL}"]
        known += [_stopping(node, follow, stop)] if stop else []
        again = _marked(node, _totals(node, follow), known)
    else:
        first, again = _tallied(node, rows), _tallied(node, follow)
    return emitter.add(
        *label, first, (*node.columns, Column(NEW, "boolean")), keep=Keep.ALWAYS,
        only_if=only_if, again=again, max_level=node.max_level,
    )  # fmt: skip


def contents(node: Fixpoint, step: str) -> str:
    """The rows of a walk: as sets each is new once."""
    return contents_of(node, step_of(step))


def contents_of(node: Fixpoint, relation: str) -> str:
    names = names_of(node.columns)
    if node.is_distinct:
        return f"SELECT {listed(names, _ONE)} FROM {relation} WHERE {NEW}"
    return f"SELECT {listed(names, W)} FROM {relation}"


def renamed(node: Fixpoint, columns: Sequence[Column], sql: str) -> str:
    """Rows of the base or the step under the fixpoint's names."""
    pairs = zip(columns, node.columns, strict=True)
    items = [f"{own.name} AS {target.name}" for own, target in pairs]
    return f"SELECT {listed(items, W)} FROM ({sql})"


def same(names: Sequence[str], left: str, right: str) -> str:
    return " AND ".join(f"{left}.{n} <=> {right}.{n}" for n in names)


def _tallied(node: Fixpoint, rows: str) -> str:
    names = names_of(node.columns)
    return f"SELECT {listed(names, W, f'TRUE AS {NEW}')} FROM ({consolidated(rows, names)})"


def _totals(node: Fixpoint, rows: str) -> str:
    return consolidated(rows, names_of(node.columns), "> 0")


def _marked(node: Fixpoint, tallied: str, known: list[str]) -> str:
    """Each row with the number of its derivations and whether it is known already."""
    names = names_of(node.columns)
    if not known:
        return f"SELECT {listed(names, W, f'TRUE AS {NEW}')} FROM ({tallied})"
    seen = (
        f"SELECT {listed(names)}, TRUE AS __known FROM ({' UNION ALL '.join(known)}) "
        f"GROUP BY {listed(names)}"
    )
    chosen = listed((f"c.{n}" for n in names), f"c.{W}", f"k.__known IS NULL AS {NEW}")
    return f"SELECT {chosen}\nFROM ({tallied}) c LEFT JOIN ({seen}) k ON {same(names, 'c', 'k')}"


def _stopping(node: Fixpoint, rows: str, stop: str, seed: str | None = None) -> str:
    """Those rows that `stop` has, looked up there."""
    names = names_of(node.columns)
    looked_up = step_of(seed) if seed is not None else f"({rows})"
    found = (
        f"SELECT {hint('c', seed or 'last')} {listed((f's.{n}' for n in names), f's.{W}')} "
        f"FROM ({stop}) s LEFT SEMI JOIN {looked_up} c ON {same(names, 's', 'c')}"
    )
    return f"SELECT {listed(names)} FROM ({consolidated(found, names, '> 0')})"
