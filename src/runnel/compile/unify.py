"""Values that stand below each other in one column are brought to one type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runnel.algebra.nodes import Node, Project
from runnel.algebra.scalar import Scalar, join, wrap
from runnel.compile.relation import Relation
from runnel.compile.typing import decimal_parts
from runnel.errors import NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder

_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "double"})


def unify(
    builder: Builder, columns: tuple[Column, ...], values: Sequence[Scalar], construct: str
) -> tuple[str, list[Scalar]]:
    """The common type of values over columns, and the values cast to it.

    Only where every rule of Spark gives the same type: numbers other than float, and NULL.
    """
    types = builder.types_of(values)
    known = set(types) - {"void"}
    if len(known) > 1 and not all(t in _NUMBERS or decimal_parts(t) for t in known):
        raise NotDifferentiable(
            f"{construct} with values of different types in one column",
            detail=f"found {', '.join(sorted(known))}",
            hint="cast them to one type",
        )
    type_ = next(iter(known), "void") if len(known) < 2 else _common(builder, columns, values)
    return type_, [
        value if own == type_ else wrap("CAST(", value, f" AS {type_})")
        for value, own in zip(values, types, strict=True)
    ]


def brought_to(builder: Builder, relation: Relation, types: Sequence[str]) -> Node:
    """A relation's columns in output order, in columns of their own and of these types."""
    items = []
    for (_, own), type_ in zip(relation.outputs, types, strict=True):
        value = Scalar.column(own.name)
        if own.type != type_:
            value = wrap("CAST(", value, f" AS {type_})")
        items.append((builder.fresh(type_), value))
    return Project(relation.node, tuple(items))


def call(function: str, arguments: Sequence[Scalar]) -> Scalar:
    """A function applied to scalars."""
    result = Scalar.constant(f"{function}(")
    for place, argument in enumerate(arguments):
        result = join(result, wrap(", " if place else "", argument, ""))
    return join(result, Scalar.constant(")"))


def _common(builder: Builder, columns: tuple[Column, ...], values: Sequence[Scalar]) -> str:
    return builder.typer.types(columns, [call("coalesce", values).render()])[0]
