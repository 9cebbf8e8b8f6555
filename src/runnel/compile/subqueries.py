"""EXISTS and IN among the conditions of WHERE: rows with, or without, a partner.

x NOT IN (SELECT y ...) keeps a row only when no y can be equal: an unknown comparison counts as
a match, and over no rows at all everything is kept, NULL too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from runnel.algebra.nodes import Filter, Node, SemiJoin
from runnel.algebra.scalar import Scalar, join, wrap
from runnel.compile.scalars import conjuncts, resolve, to_scalar
from runnel.compile.scope import Scope
from runnel.errors import InvalidQuery, NotDifferentiable

if TYPE_CHECKING:
    from runnel.compile.build import Builder


def filter_by(
    builder: Builder, node: Node, scope: Scope, condition: exp.Expr, ctes: Mapping[str, Any]
) -> tuple[Node, tuple[Scalar, ...]]:
    """The filtered rows, and the conjuncts that read an outer query's columns."""
    plain: list[Scalar] = []
    tests: list[tuple[exp.Expr, bool]] = []
    for conjunct in conjuncts(condition):
        test, is_negated = _without_not(conjunct)
        if _is_membership(test):
            tests.append((test, is_negated))
        else:
            plain.append(to_scalar(resolve(conjunct, scope)))
    own = {c.name for c in node.columns}
    inside = tuple(s for s in plain if s.reads <= own)
    node = Filter(node, inside) if inside else node
    for test, is_negated in tests:
        node = _semi_join(builder, node, scope, test, is_negated, ctes)
    return node, tuple(s for s in plain if not s.reads <= own)


def _without_not(node: exp.Expr) -> tuple[exp.Expr, bool]:
    is_negated = False
    while isinstance(node, (exp.Paren, exp.Not)):
        is_negated ^= isinstance(node, exp.Not)
        node = node.this
    return node, is_negated


def _is_membership(node: exp.Expr) -> bool:
    return isinstance(node, exp.Exists) or (
        isinstance(node, exp.In) and isinstance(node.args.get("query"), exp.Query)
    )


def _semi_join(
    builder: Builder, node: Node, scope: Scope, test: exp.Expr, is_anti: bool,
    ctes: Mapping[str, Any],
) -> Node:  # fmt: skip
    query = test.this if isinstance(test, exp.Exists) else test.args["query"]
    right, outputs, correlated = builder.rows(query, ctes, scope)
    equal = _equal(test, scope, outputs) if isinstance(test, exp.In) else ()
    if equal and is_anti:
        equal = (_unless_false(equal),)
    conditions = correlated + equal
    known = {c.name for c in (*node.columns, *right.columns)}
    if not all(s.reads <= known for s in conditions):
        raise NotDifferentiable(
            "a subquery that refers to a query two levels above it",
            hint="use refresh mode FULL or AUTO",
        )
    return SemiJoin(node, right, conditions, is_anti)


def _equal(test: exp.In, scope: Scope, outputs: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """What is looked for equals what the subquery gives, column by column."""
    wanted = test.this.unnest()
    values = wanted.expressions if isinstance(wanted, exp.Tuple) else [wanted]
    if len(values) != len(outputs):
        raise InvalidQuery(
            f"{len(values)} values IN a subquery of {len(outputs)} columns",
            hint="give the subquery as many columns",
        )
    scalars = [to_scalar(resolve(value, scope)) for value in values]
    return tuple(
        join(wrap("(", a, ") = "), wrap("(", b, ")")) for a, b in zip(scalars, outputs, strict=True)
    )


def _unless_false(conditions: tuple[Scalar, ...]) -> Scalar:
    """True where the conjunction is true or unknown."""
    both = conditions[0]
    for other in conditions[1:]:
        both = join(wrap("", both, " AND "), other)
    return wrap("COALESCE(", both, ", TRUE)")
