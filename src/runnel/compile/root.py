"""The root of a query: what its trace stores and how the user's columns are read from it."""

from __future__ import annotations

from dataclasses import dataclass

from runnel.algebra.nodes import Aggregate, Filter, Node, Project, Scan, TopK, walk
from runnel.algebra.scalar import Scalar, join, wrap
from runnel.compile.differentiate.state import State, state_of
from runnel.compile.recursive_root import peel_fixpoint, store_fixpoint
from runnel.compile.storing import Storing
from runnel.model.columns import Column, Layout, hashable_names


@dataclass(frozen=True, slots=True)
class Root:
    """`items` are the stored columns as expressions over `node` (a state: over keys and state)."""

    node: Node
    state: State | None
    items: tuple[tuple[Column, Scalar], ...]
    stored: dict[str, str]
    layout: Layout
    top: Top | None = None

    @property
    def stored_node(self) -> Node:
        """The operator whose rows, or state, the trace holds."""
        return self.top.rows.stored_node if self.top is not None else self.node


@dataclass(frozen=True, slots=True)
class Top:
    """ORDER BY ... LIMIT at the root, over `rows`: what is stored of its input.

    Where computing the input is dear all of its rows are stored, and `flag` says which are first;
    else the first ones only, and the input is read again when one of them goes.
    """

    node: TopK
    rows: Root
    flag: Column | None

    @property
    def names(self) -> dict[str, str]:
        """What the trace calls the columns of the node."""
        pairs = zip(self.node.columns, self.rows.layout.visible, strict=True)
        return {column.name: stored for column, (_, stored) in pairs}


def root_of(tree: Node, outputs: tuple[Column, ...], names: tuple[str, ...]) -> Root:
    """Decide the storage of a tree whose output columns `outputs` the user calls `names`."""
    top = tree
    while isinstance(top, Project) and all(s.bare_column for _, s in top.items):
        top = top.input
    if isinstance(top, TopK) and top.limit is not None:
        return _top_root(top, tree, outputs, names)
    fixpoint, values, conditions = peel_fixpoint(tree)
    if fixpoint is not None:
        shown = _conjunction(conditions)
        wanted = [values[c.name] for c in outputs]
        return Root(fixpoint, None, *store_fixpoint(fixpoint, shown, wanted, outputs, names))
    aggregate, values, conditions = _peel(tree)
    if aggregate is None:
        return _linear_root(tree, outputs, names)
    return _state_root(aggregate, [values[c.name] for c in outputs], conditions, outputs, names)


def _top_root(node: TopK, tree: Node, outputs: tuple[Column, ...], names: tuple[str, ...]) -> Root:
    rows = root_of(node.input, node.columns, tuple(c.name for c in node.columns))
    is_cheap = all(isinstance(n, (Scan, Filter, Project)) for n in walk(node.input))
    stored = rows.layout.stored
    flag = None if is_cheap else Column(f"c{len(stored)}", "boolean")
    top = Top(node, rows, flag)
    values = _bare_values(tree)
    visible = tuple(
        (Column(name, output.type), top.names[values[output.name]])
        for output, name in zip(outputs, names, strict=True)
    )
    if flag is not None:
        stored = (*stored, flag)
    key = rows.layout.key if rows.layout.is_state else hashable_names(stored)
    layout = Layout(stored, key, visible, flag.name if flag else None, rows.layout.is_state)
    return Root(tree, None, (), {}, layout, top)


def _bare_values(tree: Node) -> dict[str, str]:
    """Which column of the first other node each output of a chain of projections is."""
    if not isinstance(tree, Project):
        return {c.name: c.name for c in tree.columns}
    below = _bare_values(tree.input)
    return {c.name: below[s.bare_column] for c, s in tree.items if s.bare_column}


def _peel(tree: Node) -> tuple[Aggregate | None, dict[str, Scalar], list[Scalar]]:
    """Strip row-wise operators above a root aggregate, composing them into expressions over it."""
    match tree:
        case Aggregate():
            return tree, {c.name: Scalar.column(c.name) for c in tree.columns}, []
        case Project():
            below, values, conditions = _peel(tree.input)
            return below, {c.name: s.substitute(values) for c, s in tree.items}, conditions
        case Filter():
            below, values, conditions = _peel(tree.input)
            own = [s.substitute(values) for s in tree.conjuncts]
            return below, values, conditions + own
        case _:
            return None, {}, []


def _linear_root(tree: Node, outputs: tuple[Column, ...], names: tuple[str, ...]) -> Root:
    stored = tuple(Column(f"c{i}", column.type) for i, column in enumerate(outputs))
    items = tuple((s, Scalar.column(o.name)) for s, o in zip(stored, outputs, strict=True))
    visible = tuple((Column(name, s.type), s.name) for name, s in zip(names, stored, strict=True))
    layout = Layout(stored, hashable_names(stored), visible)
    return Root(tree, None, items, {}, layout)


def _state_root(
    node: Aggregate,
    values: list[Scalar],
    conditions: list[Scalar],
    outputs: tuple[Column, ...],
    names: tuple[str, ...],
) -> Root:
    state = state_of(node)
    storing = Storing()
    stored = {k.name: storing.add(k.type, Scalar.column(k.name)) for k in node.key_columns}
    for column in (c.column for c in state.columns):
        stored[column.name] = storing.add(column.type, Scalar.column(column.name))
    shown = _conjunction([c.substitute(state.readout) for c in conditions])
    visible = []
    for output, value, name in zip(outputs, values, names, strict=True):
        scalar = value.substitute(state.readout)
        visible.append((Column(name, output.type), storing.add_shown(output, scalar, shown)))
    flag = storing.add("boolean", shown) if shown is not None else None
    layout = Layout(
        stored=tuple(c for c, _ in storing.items),
        key=tuple(stored[k] for k in node.keys),
        visible=tuple(visible),
        visible_when=flag,
        is_state=True,
    )
    return Root(node, state, tuple(storing.items), stored, layout)


def _conjunction(conditions: list[Scalar]) -> Scalar | None:
    if not conditions:
        return None
    result = wrap("COALESCE((", conditions[0], ")")
    for other in conditions[1:]:
        result = join(result, wrap(" AND (", other, ")"))
    return join(result, Scalar.constant(", FALSE)"))
