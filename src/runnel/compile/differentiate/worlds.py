"""A recursive step read in other worlds: over given rows, its inputs before, between or after.

What a step reads besides its own rows changes from `old` to `new`; `both` is what the two have in
common. From old to both rows only go, from both to new rows only come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runnel.algebra.nodes import (
    Filter,
    Fixpoint,
    Generate,
    InnerJoin,
    Node,
    OneRow,
    OuterJoin,
    Project,
    Recursive,
    Repeat,
    Scan,
    SemiJoin,
    UnionAll,
    walk,
)
from runnel.compile.differentiate.emitter import (
    Emitter,
    Reading,
    consolidated,
    listed,
    names_of,
)
from runnel.compile.program import Keep, W, step_of
from runnel.compile.typing import has_floats

_PLAIN = (Scan, OneRow, Project, Filter, Generate, UnionAll)
_MONOTONE = (*_PLAIN, InnerJoin, Repeat)


def is_recursive(node: Node, name: str) -> bool:
    """Whether the rows of this fixpoint are read below the node."""
    return any(isinstance(n, Recursive) and n.name == name for n in walk(node))


def inputs_of(step: Node, name: str) -> list[Node]:
    """The largest parts of a step that do not read the fixpoint's own rows."""
    if not is_recursive(step, name):
        return [step]
    found: list[Node] = []
    for child in step.inputs:
        found += [n for n in inputs_of(child, name) if n not in found]
    return found


@dataclass(frozen=True, slots=True)
class Input:
    """What a step, or a fixpoint's base, reads: its steps of rows that go (< 0) and that come."""

    gone: str | None = None
    come: str | None = None

    @property
    def is_changed(self) -> bool:
        return self.gone is not None or self.come is not None


def split(emitter: Emitter, node: Node) -> Input:
    """The change of an input in two: netted, so that no row both goes and comes."""
    change = emitter.change(node)
    if change is None:
        return Input()
    if _only_grows(emitter, node):
        return Input(come=change)
    names = names_of(node.columns)
    if isinstance(node, Scan) and not any(has_floats(c.type) for c in node.columns):
        net = change
        emitter.keep(net)
    else:
        sql = consolidated(f"SELECT {listed(names, W)} FROM {step_of(change)}", names)
        net = emitter.add("net", "change of an input, netted", sql, node.columns, keep=Keep.ALWAYS)
    gone, come = (
        emitter.add(
            stem, purpose,
            f"SELECT {listed(names, W)} FROM {step_of(net)} WHERE {W} {sign} 0", node.columns,
            bounds=[f"step:{net}"],
        )
        for stem, sign, purpose in (
            ("minus", "<", "rows that an input lost"),
            ("plus", ">", "rows that an input gained"),
        )
    )  # fmt: skip
    return Input(gone, come)


def over(
    emitter: Emitter,
    node: Fixpoint,
    rows: str,
    inputs: Mapping[Node, Input],
    world: str,
) -> Emitter:
    """An emitter for the step over `rows` (the fixpoint's columns and weights).

    In the world `both` its change is what happened on the way from old to both, in `new` from both
    to new.
    """

    def new_law(inner: Emitter, part: Node) -> Reading:
        if isinstance(part, Recursive):
            return own_rows(node, part, rows)
        if part in inputs:
            return reading_of(emitter, part, inputs[part], world)
        return emitter.new_law(inner, part)

    def change_law(inner: Emitter, part: Node) -> str | None:
        if isinstance(part, Recursive):
            return None
        if part in inputs:
            return inputs[part].gone if world == "both" else inputs[part].come
        return emitter.change_law(inner, part)

    return Emitter(
        emitter.kinds, emitter.changed, emitter.growing, new_law, change_law, sizes=emitter.sizes,
        steps=emitter.steps,
    )  # fmt: skip


def before(emitter: Emitter) -> Emitter:
    """An emitter whose new contents are the old ones of another; nothing changes in it."""

    def new_law(inner: Emitter, part: Node) -> Reading:
        if isinstance(part, Scan):
            return emitter.old(part)
        return emitter.new_law(inner, part)

    return Emitter(
        emitter.kinds, frozenset(), frozenset(), new_law, emitter.change_law,
        sizes=emitter.sizes, steps=emitter.steps,
    )  # fmt: skip


def keep_dear(emitter: Emitter, part: Node) -> Reading:
    """The new contents of an input; computed once when every round would compute it again."""
    reading = emitter.new(part)
    if all(isinstance(n, _PLAIN) for n in walk(part)):
        return reading
    key = (part, "input")
    if key not in emitter.walks:
        emitter.walks[key] = emitter.add(
            "input", "what every round reads", reading.sql, part.columns, keep=Keep.ALWAYS
        )
    sql = f"SELECT {listed(names_of(part.columns), W)} FROM {step_of(emitter.walks[key])}"
    return Reading(sql, reading.is_unit)


def can_walk(node: Fixpoint, inputs: Mapping[Node, Input]) -> bool:
    """Whether the step adds up over its changed inputs; one that asks for partners does not."""
    return not any(
        part in inputs and inputs[part].is_changed
        for join in _partner_joins(node)
        for part in inputs_of(join.right, node.name)
    )


def asks_for_partners(node: Fixpoint) -> bool:
    """Whether the step tests its rows against another table."""
    return bool(_partner_joins(node))


def _partner_joins(node: Fixpoint) -> list[SemiJoin | OuterJoin]:
    return [
        part
        for part in walk(node.step)
        if isinstance(part, (SemiJoin, OuterJoin)) and is_recursive(part, node.name)
    ]


def own_rows(node: Fixpoint, part: Recursive, rows: str) -> Reading:
    """The fixpoint's rows under the names that its step calls them by."""
    pairs = zip(node.columns, part.columns, strict=True)
    items = [f"{own.name} AS {read.name}" for own, read in pairs]
    return Reading(f"SELECT {listed(items, W)} FROM ({rows})", is_unit=False)


def reading_of(emitter: Emitter, part: Node, change: Input, world: str) -> Reading:
    """The contents of an input in a world."""
    reading = keep_dear(emitter, part)
    if world == "new" or change.come is None:
        return reading
    names = names_of(part.columns)
    sql = (
        f"SELECT {listed(names, W)} FROM ({reading.sql})\nUNION ALL\n"
        f"SELECT {listed(names, f'-{W} AS {W}')} FROM {step_of(change.come)}"
    )
    return Reading(sql, is_unit=False)


def _only_grows(emitter: Emitter, node: Node) -> bool:
    """Whether no row can go; several of its rows may then come more than once."""
    return all(
        isinstance(n, _MONOTONE) and (not isinstance(n, Scan) or _grows(emitter, n))
        for n in walk(node)
    )


def _grows(emitter: Emitter, scan: Scan) -> bool:
    return scan.source not in emitter.changed or scan.source in emitter.growing
