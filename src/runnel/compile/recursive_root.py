"""A recursive query's storage: all its recursive rows, whatever the SELECT above them shows.

A filter or a computed column above is part of the readout; a walk needs the rows themselves.
"""

from __future__ import annotations

from runnel.algebra.nodes import Filter, Fixpoint, Node, Project
from runnel.algebra.scalar import Scalar
from runnel.compile.differentiate.root_fixpoint import COUNT
from runnel.compile.storing import Storing
from runnel.model.columns import Column, Layout, hashable_names

Items = tuple[tuple[Column, Scalar], ...]


def peel_fixpoint(tree: Node) -> tuple[Fixpoint | None, dict[str, Scalar], list[Scalar]]:
    """Strip row-wise operators above a root fixpoint, composing them into expressions over it."""
    match tree:
        case Fixpoint():
            return tree, {c.name: Scalar.column(c.name) for c in tree.columns}, []
        case Project():
            below, values, conditions = peel_fixpoint(tree.input)
            if below is None:
                return None, {}, []
            return below, {c.name: s.substitute(values) for c, s in tree.items}, conditions
        case Filter():
            below, values, conditions = peel_fixpoint(tree.input)
            own = [s.substitute(values) for s in tree.conjuncts] if below is not None else []
            return below, values, conditions + own
        case _:
            return None, {}, []


def store_fixpoint(
    node: Fixpoint,
    shown: Scalar | None,
    values: list[Scalar],
    outputs: tuple[Column, ...],
    names: tuple[str, ...],
) -> tuple[Items, dict[str, str], Layout]:
    """The stored columns, where the fixpoint's own are among them, and the readout."""
    storing = Storing()
    stored = {c.name: storing.add(c.type, Scalar.column(c.name)) for c in node.columns}
    key = hashable_names(c for c, _ in storing.items)
    if node.is_distinct:
        stored[COUNT] = storing.add("bigint", Scalar.column(COUNT))
    visible = []
    for output, value, name in zip(outputs, values, names, strict=True):
        visible.append((Column(name, output.type), storing.add_shown(output, value, shown)))
    flag = storing.add("boolean", shown) if shown is not None else None
    all_stored = tuple(c for c, _ in storing.items)
    key = key if node.is_distinct else hashable_names(all_stored)
    layout = Layout(all_stored, key, tuple(visible), flag, is_state=node.is_distinct)
    return tuple(storing.items), stored, layout
