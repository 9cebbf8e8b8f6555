"""How outer rows meet a subquery: what to join them with, on which conditions, what it gives.

The cheap way pulls its conditions up; where that cannot be, it is evaluated for the distinct outer
values it reads (Neumann and Kemper, Unnesting Arbitrary Queries) and joined on these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runnel.algebra.nodes import (
    Aggregate,
    Filter,
    InnerJoin,
    JoinKind,
    Node,
    OneRow,
    OuterJoin,
    Project,
    Window,
)
from runnel.algebra.scalar import Scalar
from runnel.compile.unnest.depend import Depend
from runnel.compile.unnest.domain import Domain
from runnel.compile.unnest.free import free_columns
from runnel.compile.unnest.nothing import over_nothing
from runnel.compile.unnest.pull import pull, pull_group, unchanged

if TYPE_CHECKING:
    from runnel.compile.build import Builder


@dataclass(frozen=True, slots=True)
class Lookup:
    """`values` are the subquery's columns over the joined row.

    `is_one_row`: each outer row has exactly one, given by `values` also where none is met.
    """

    right: Node
    conditions: tuple[Scalar, ...]
    values: Mapping[str, Scalar]
    is_one_row: bool = False

    def join(self, node: Node) -> Node:
        """The rows with all that they meet."""
        if self.is_one_row and self.conditions:
            return OuterJoin(JoinKind.LEFT, node, self.right, self.conditions)
        if isinstance(self.right, OneRow) and not self.conditions:
            return node
        return InnerJoin((node, self.right), self.conditions)


def look_up(builder: Builder, node: Node, subquery: Node) -> Lookup:
    """The subquery for each row of the node."""
    outer = _read(node, subquery)
    if not outer:
        return Lookup(subquery, (), unchanged(subquery.columns), is_one_row(subquery))
    if is_one_row(subquery):
        found = _one_row(builder, node, subquery, outer)
    else:
        found = _pulled(builder, subquery, outer)
    return found or look_up_each(builder, node, subquery)


def look_up_rows(builder: Builder, node: Node, subquery: Node) -> Lookup:
    """The same, where a row that is met is a row of the subquery, and none otherwise."""
    outer = _read(node, subquery)
    return _pulled(builder, subquery, outer) or look_up_each(builder, node, subquery)


def look_up_each(builder: Builder, node: Node, subquery: Node) -> Lookup:
    """The general way: by the distinct outer values."""
    outer = _read(node, subquery)
    if not outer:
        return Lookup(subquery, (), unchanged(subquery.columns))
    domain = Domain.of(builder, node, outer)
    right, keys = Depend(builder, domain).rows(subquery)
    return Lookup(right, domain.ties(keys), unchanged(subquery.columns))


def is_one_row(node: Node) -> bool:
    """Whether there is exactly one row, whatever the sources hold."""
    match node:
        case Project():
            return is_one_row(node.input)
        case InnerJoin(conjuncts=()):
            return all(is_one_row(child) for child in node.inputs)
        case Aggregate():
            return node.is_global
        case _:
            return isinstance(node, OneRow)


def same_in_all_rows(node: Node) -> frozenset[str]:
    """Columns that have one value in all rows: those of a single row that was joined to each."""
    match node:
        case Project():
            below = same_in_all_rows(node.input)
            return frozenset(c.name for c, s in node.items if s.bare_column in below)
        case Filter() | Window():
            return same_in_all_rows(node.input)
        case InnerJoin():
            return frozenset().union(*(_of_input(child) for child in node.inputs))
        case _:
            return frozenset()


def _of_input(node: Node) -> frozenset[str]:
    return frozenset(c.name for c in node.columns) if is_one_row(node) else same_in_all_rows(node)


def _read(node: Node, subquery: Node) -> frozenset[str]:
    return free_columns(subquery) & {c.name for c in node.columns}


def _pulled(builder: Builder, subquery: Node, outer: frozenset[str]) -> Lookup | None:
    found = pull(builder, subquery, outer)
    return Lookup(found.node, found.conditions, found.values) if found else None


def _one_row(builder: Builder, node: Node, subquery: Node, outer: frozenset[str]) -> Lookup | None:
    """A global aggregate, with projections above: its group, or its values over nothing."""
    match subquery:
        case _ if not free_columns(subquery) & outer:
            return Lookup(subquery, (), unchanged(subquery.columns), is_one_row=True)
        case Project():
            below = _one_row(builder, node, subquery.input, outer)
            if below is None:
                return None
            values = {c.name: s.substitute(below.values) for c, s in subquery.items}
            return Lookup(below.right, below.conditions, values, is_one_row=True)
        case Aggregate():
            right, conditions = _group(builder, node, subquery, outer)
            values = {call.output.name: over_nothing(call) for call in subquery.calls}
            return Lookup(right, conditions, values, is_one_row=True)
        case _:
            return None


def _group(
    builder: Builder, node: Node, aggregate: Aggregate, outer: frozenset[str]
) -> tuple[Node, tuple[Scalar, ...]]:
    """The aggregate's group for an outer row, and how they meet."""
    found = pull_group(builder, aggregate, outer)
    if found is not None:
        return found.node, found.conditions
    domain = Domain.of(builder, node, free_columns(aggregate) & outer)
    below, keys = Depend(builder, domain).rows(aggregate.input)
    grouped = Aggregate(below, tuple(k.name for k in keys), aggregate.calls)
    return grouped, domain.ties(keys)
