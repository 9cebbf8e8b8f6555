"""Conditions that read outer columns move up and out of a subquery, and become its join condition:

    over projections, filters and joins                                  any condition
    group[k](sigma[e = outer](N)) = sigma[e = outer](group[k, e](N))     equalities; windows too

Where something else reads an outer column, nothing is pulled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runnel.algebra.nodes import (
    Aggregate,
    Filter,
    Generate,
    InnerJoin,
    JoinKind,
    Node,
    OuterJoin,
    Project,
    Repeat,
    SemiJoin,
    TopK,
    Window,
    identity,
)
from runnel.algebra.scalar import Scalar
from runnel.compile.unnest.first_rows import first_rows
from runnel.compile.unnest.free import free_columns
from runnel.compile.unnest.ties import ties_of
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder


@dataclass(frozen=True, slots=True)
class Pulled:
    """A tree that reads no outer column, the conditions that did, its old columns over both."""

    node: Node
    conditions: tuple[Scalar, ...]
    values: Mapping[str, Scalar]


def pull(builder: Builder, node: Node, outer: frozenset[str]) -> Pulled | None:
    """Pull up all conditions that read outer columns; None when something else reads them."""
    if not free_columns(node) & outer:
        return Pulled(node, (), unchanged(node.columns))
    match node:
        case Filter():
            below = pull(builder, node.input, outer)
            return _filter(below, node.conjuncts, outer) if below else None
        case Project():
            below = pull(builder, node.input, outer)
            return _project(below, node, outer) if below else None
        case InnerJoin():
            return _inner_join(builder, node, outer)
        case OuterJoin(kind=JoinKind.LEFT) | SemiJoin():
            return _from_the_left(builder, node, outer)
        case Repeat():
            below = pull(builder, node.input, outer)
            times = node.times.substitute(below.values) if below else node.times
            if below is None or times.reads & outer:
                return None
            return Pulled(Repeat(below.node, times), below.conditions, below.values)
        case Aggregate(is_global=False):
            return pull_group(builder, node, outer)
        case Generate():
            return _generate(pull(builder, node.input, outer), node, outer)
        case Window():
            return _window(builder, node, outer)
        case TopK():
            return pull(builder, first_rows(builder, node), outer)
        case _:
            return None


def pull_group(builder: Builder, node: Aggregate, outer: frozenset[str]) -> Pulled | None:
    """A grouping, by the inner sides of the equalities too."""
    used = {*node.keys, *(a.name for call in node.calls for a in call.arguments)}
    keyed = _keyed(builder, node.input, used, outer)
    if keyed is None:
        return None
    below, keys, conditions = keyed
    grouped = Aggregate(below, (*node.keys, *keys), node.calls)
    return Pulled(grouped, conditions, unchanged(node.columns))


def _window(builder: Builder, node: Window, outer: frozenset[str]) -> Pulled | None:
    """Window functions, within the inner sides of the equalities too."""
    keyed = _keyed(builder, node.input, {c.name for c in node.input.columns}, outer)
    if keyed is None or any(call.function.reads & outer for call in node.calls):
        return None
    below, keys, conditions = keyed
    return Pulled(
        Window(below, (*node.partition, *keys), node.calls), conditions, unchanged(node.columns)
    )


def _keyed(
    builder: Builder, node: Node, used: set[str], outer: frozenset[str]
) -> tuple[Node, tuple[str, ...], tuple[Scalar, ...]] | None:
    """The used columns, a key for each equality, and the equalities over these keys."""
    below = pull(builder, node, outer)
    ties = ties_of(builder, below.conditions, outer) if below else None
    if below is None or ties is None:
        return None
    items = [(c, below.values[c.name]) for c in node.columns if c.name in used]
    if any(value.reads & outer for _, value in items):
        return None
    keys = tuple(builder.fresh(type_) for type_ in builder.types_of([t.inner for t in ties]))
    items += [(key, tie.inner) for key, tie in zip(keys, ties, strict=True)]
    conditions = tuple(tie.to(key) for key, tie in zip(keys, ties, strict=True))
    return Project(below.node, tuple(items)), tuple(k.name for k in keys), conditions


def unchanged(columns: Iterable[Column]) -> dict[str, Scalar]:
    return {c.name: Scalar.column(c.name) for c in columns}


def _filter(below: Pulled, conjuncts: tuple[Scalar, ...], outer: frozenset[str]) -> Pulled:
    inside, tied = _split(conjuncts, below.values, outer)
    node = Filter(below.node, inside) if inside else below.node
    return Pulled(node, below.conditions + tied, below.values)


def _project(below: Pulled, node: Project, outer: frozenset[str]) -> Pulled:
    """What reads no outer column is computed here; the rest where the outer row is at hand."""
    values = {c.name: s.substitute(below.values) for c, s in node.items}
    computed = tuple(
        (c, values[c.name])
        for c, _ in node.items
        if values[c.name].bare_column is None and not values[c.name].reads & outer
    )
    if not computed:
        return Pulled(below.node, below.conditions, values)
    own = identity(below.node.columns)
    values |= unchanged(c for c, _ in computed)
    return Pulled(Project(below.node, own + computed), below.conditions, values)


def _generate(below: Pulled | None, node: Generate, outer: frozenset[str]) -> Pulled | None:
    if below is None:
        return None
    function = node.function.substitute(below.values)
    if function.reads & outer:
        return None
    made = Generate(below.node, function, node.generated, node.is_outer)
    return Pulled(made, below.conditions, {**below.values, **unchanged(node.generated)})


def _inner_join(builder: Builder, node: InnerJoin, outer: frozenset[str]) -> Pulled | None:
    inputs = [pull(builder, child, outer) for child in node.inputs]
    parts = [part for part in inputs if part is not None]
    if len(parts) < len(inputs):
        return None
    values = {name: value for part in parts for name, value in part.values.items()}
    inside, tied = _split(node.conjuncts, values, outer)
    conditions = tuple(c for part in parts for c in part.conditions)
    joined = InnerJoin(tuple(part.node for part in parts), inside)
    return Pulled(joined, conditions + tied, values)


def _from_the_left(
    builder: Builder, node: OuterJoin | SemiJoin, outer: frozenset[str]
) -> Pulled | None:
    below = pull(builder, node.left, outer)
    if below is None or free_columns(node.right) & outer:
        return None
    values = {**below.values, **unchanged(node.right.columns)}
    inside, tied = _split(node.conjuncts, values, outer)
    if tied:
        return None
    if isinstance(node, SemiJoin):
        joined: Node = SemiJoin(below.node, node.right, inside, node.is_anti)
        return Pulled(joined, below.conditions, below.values)
    return Pulled(OuterJoin(node.kind, below.node, node.right, inside), below.conditions, values)


def _split(
    conjuncts: tuple[Scalar, ...], values: Mapping[str, Scalar], outer: frozenset[str]
) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    """Those that read no outer column, and the others, over the pulled columns."""
    rewritten = [c.substitute(values) for c in conjuncts]
    inside = tuple(c for c in rewritten if not c.reads & outer)
    return inside, tuple(c for c in rewritten if c.reads & outer)
