"""A walk along a recursive step: rounds over the last round's new rows, until none is new.

Rows of a round are tallied: each with its weight, or as sets with the number of its derivations
from the last round, and `__new` when no round before had it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runnel.algebra.nodes import Fixpoint, Node
from runnel.compile.differentiate.adding_up import adds_up
from runnel.compile.differentiate.emitter import Emitter, consolidated, listed, names_of
from runnel.compile.differentiate.nonlinear import followed, signed
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
    around: str | None = None,
    besides: str | None = None,
) -> str:
    """Walk from `rows` (tallied and kept as step `seed`, if it is named), not beyond `stop`.

    `around` are the rows that R has besides: those it has left in the world `both`, where the walk
    takes rows away. `besides` counts the stored ones among them.
    """
    follow = renamed(node, node.step.columns, _follow(emitter, node, inputs, world, around))
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
        only_if=only_if, again=again, max_level=node.max_level, level=node.level,
        besides=besides,
    )  # fmt: skip


def _follow(
    emitter: Emitter,
    node: Fixpoint,
    inputs: Mapping[Node, Input],
    world: str,
    around: str | None,
) -> str:
    """What the last round's rows give: a step that adds up is applied to them alone."""
    last, found = contents_of(node, LAST), contents_of(node, ALL)
    if adds_up(node.step, node.name):
        return over(emitter, node, last, inputs, world).new(node.step).sql
    sign = "-" if world == "both" else ""
    rows = signed(node, found, sign)
    rows = f"{around}\nUNION ALL\n{rows}" if around else rows
    change = followed(emitter, node, rows, signed(node, last, sign), inputs, world)
    names = listed(names_of(node.step.columns), f"{sign}{W} AS {W}")
    return f"SELECT {names} FROM ({change})"


def contents(node: Fixpoint, step: str) -> str:
    """The rows of a walk: as sets each is new once."""
    return contents_of(node, step_of(step))


def contents_of(node: Fixpoint, relation: str) -> str:
    names = names_of(node.columns)
    if node.is_distinct:
        return f"SELECT {listed(names, _ONE)} FROM {relation} WHERE {NEW}"
    return f"SELECT {listed(names, W)} FROM {relation}"


def nothing(node: Fixpoint) -> str:
    """No rows of the fixpoint's columns."""
    items = [f"CAST(NULL AS {c.type}) AS {c.name}" for c in node.columns]
    return f"SELECT {listed(items, _ONE)} WHERE FALSE"


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
