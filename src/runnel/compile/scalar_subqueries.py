"""A scalar subquery becomes a column: each row is joined with the one row it has for it.

Over no rows its value is NULL, or what its aggregates are over nothing; more than one is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from runnel.algebra.nodes import Aggregate, Call, Node
from runnel.compile.scalars import mark
from runnel.compile.scope import Scope
from runnel.compile.typing import is_orderable
from runnel.compile.unnest.lookup import is_one_row, look_up
from runnel.compile.unnest.ties import to_expression
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder

_TOO_MANY = "a subquery used as a value returned more than one row"


def attach_scalar(
    builder: Builder, node: Node, scope: Scope, query: exp.Expr, ctes: Mapping[str, Any]
) -> tuple[Node, exp.Expr]:
    """The rows with the subquery's value, and the expression that stands for it."""
    relation = builder.inner_query(query, ctes, scope)
    if len(relation.outputs) != 1:
        raise InvalidQuery(f"a subquery used as a value has {len(relation.outputs)} columns")
    value = relation.outputs[0][1]
    if is_one_row(relation.node):
        lookup = look_up(builder, node, relation.node)
        found = to_expression(lookup.values[value.name])
        return lookup.join(node), found if isinstance(found, exp.Column) else exp.paren(found)
    only = _counted(builder, relation.node, value)
    return look_up(builder, node, only).join(node), _checked(only)


def _counted(builder: Builder, rows: Node, value: Column) -> Aggregate:
    """How many rows there are, and the value if it is one."""
    if not is_orderable(value.type):
        raise NotDifferentiable(
            f"a subquery used as a value of type {value.type}",
            detail="that it has one row only cannot be checked",
            hint="write it as a join",
        )
    count = Call("count_star", (), builder.fresh("bigint"))
    return Aggregate(
        rows, (), (count, Call("max", (value,), builder.fresh(value.type))), is_global=True
    )


def _checked(only: Aggregate) -> exp.Expr:
    """The only value; asked for where the row is, so that rows nobody meets raise nothing."""
    count, value = (mark(call.output.name) for call in only.calls)
    error = exp.Anonymous(this="raise_error", expressions=[exp.Literal.string(_TOO_MANY)])
    too_many = exp.GT(this=count, expression=exp.Literal.number(1))
    return exp.paren(exp.case().when(too_many, error).else_(value))
