"""UNION, INTERSECT and EXCEPT, with and without ALL; NULLs are equal in all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.algebra.nodes import (
    Aggregate,
    Call,
    Node,
    Project,
    Repeat,
    SemiJoin,
    UnionAll,
    distinct,
)
from runnel.algebra.scalar import Scalar
from runnel.compile.relation import Relation
from runnel.compile.unify import brought_to
from runnel.errors import InvalidQuery
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder

# How often a row shows that is there {0} times on the left and {1} times on the right.
_TIMES = {"intersect": "least({}, {})", "except": "greatest({} - {}, 0)"}


def combine(
    builder: Builder, operation: exp.SetOperation, left: Relation, right: Relation
) -> Relation:
    """The relation of a set operation over its two sides; the left one names the columns."""
    if len(left.outputs) != len(right.outputs):
        raise InvalidQuery(
            f"{operation.key.upper()} of {len(left.outputs)} and {len(right.outputs)} columns",
            detail="both sides need the same number of columns",
        )
    types = [
        _common_type(builder, a, b)
        for (_, a), (_, b) in zip(left.outputs, right.outputs, strict=True)
    ]
    sides = brought_to(builder, left, types), brought_to(builder, right, types)
    is_distinct = bool(operation.args.get("distinct"))
    if isinstance(operation, exp.Union):
        node = _union(builder, sides)
        node = distinct(node) if is_distinct else node
    elif is_distinct:
        node = _matched(sides, is_anti=isinstance(operation, exp.Except))
    else:
        node = _counted(builder, sides, _TIMES[operation.key])
    names = (name for name, _ in left.outputs)
    return Relation(node, tuple(zip(names, node.columns, strict=True)), left.origins)


def _union(builder: Builder, sides: tuple[Node, Node]) -> Node:
    return UnionAll(sides, tuple(builder.fresh(c.type) for c in sides[0].columns))


def _matched(sides: tuple[Node, Node], is_anti: bool) -> Node:
    left, right = sides
    same = tuple(
        Scalar(("", " <=> ", ""), (a.name, b.name))
        for a, b in zip(left.columns, right.columns, strict=True)
    )
    return SemiJoin(distinct(left), right, same, is_anti)


def _counted(builder: Builder, sides: tuple[Node, Node], times: str) -> Node:
    """Count each row on both sides, then show it as often as the counts say."""
    left, right = sides
    tagged = _tagged(builder, left, 0), _tagged(builder, right, 1)
    union = _union(builder, tagged)
    *keys, on_left, on_right = union.columns
    calls = tuple(Call("sum", (c,), builder.fresh("bigint")) for c in (on_left, on_right))
    counted = Aggregate(union, tuple(k.name for k in keys), calls)
    before, between, after = times.split("{}")
    names = (calls[0].output.name, calls[1].output.name)
    repeated = Repeat(counted, Scalar((before, between, after), names))
    items = tuple((builder.fresh(k.type), Scalar.column(k.name)) for k in keys)
    return Project(repeated, items)


def _tagged(builder: Builder, side: Node, place: int) -> Node:
    """The side's columns, and a 1 in the count it belongs to."""
    own = [(builder.fresh(c.type), Scalar.column(c.name)) for c in side.columns]
    tags = [
        (builder.fresh("bigint"), Scalar.constant(f"CAST({int(place == at)} AS BIGINT)"))
        for at in range(2)
    ]
    return Project(side, (*own, *tags))


def _common_type(builder: Builder, left: Column, right: Column) -> str:
    if left.type == right.type:
        return left.type
    return builder.typer.types((left, right), [f"coalesce({left.name}, {right.name})"])[0]
