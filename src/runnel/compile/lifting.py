"""Subqueries inside expressions are lifted out; a slot stands for each until its value is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count

from sqlglot import exp

from runnel.compile.scalars import mark, marked

_Rewrite = Callable[[exp.Expr], exp.Expr]
_numbers = count()


def lift(node: exp.Expr) -> tuple[exp.Expr, dict[str, exp.Expr]]:
    """A copy of the expression with slots in the place of its subqueries, and these by slot."""
    pending: dict[str, exp.Expr] = {}

    def replace(inner: exp.Expr) -> exp.Expr:
        if not _is_lifted(inner):
            return inner
        slot = f"pending{next(_numbers)}"
        pending[slot] = inner
        return mark(slot)

    return _transform(_negations_down(node.copy()), replace), pending


def fill(node: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """The expression with its slots filled."""

    def replace(inner: exp.Expr) -> exp.Expr:
        slot = marked(inner)
        return values[slot].copy() if slot is not None and slot in values else inner

    return node.transform(replace) if values else node


def is_slot(node: exp.Expr) -> bool:
    return (marked(node) or "").startswith("pending")


def is_in_subquery(node: exp.Expr) -> bool:
    return isinstance(node, exp.In) and isinstance(node.args.get("query"), exp.Query)


def is_exists(node: exp.Expr) -> bool:
    """EXISTS over a subquery; there is a function of that name over arrays too."""
    return isinstance(node, exp.Exists) and isinstance(node.this, exp.Query)


def is_any_row(query: exp.Expr) -> bool:
    """Whether it is limited to a number of rows, one or more, from the first on."""
    limit = query.args.get("limit")
    if not isinstance(limit, exp.Limit) or query.args.get("offset"):
        return False
    number = limit.expression
    return isinstance(number, exp.Literal) and number.name.isdigit() and int(number.name) > 0


def _is_lifted(node: exp.Expr) -> bool:
    if isinstance(node, exp.Not):
        return is_in_subquery(node.this.unnest())
    return is_in_subquery(node) or is_exists(node) or isinstance(node, exp.Query)


def _negations_down(node: exp.Expr) -> exp.Expr:
    """NOT moved to the subqueries it denies, as Spark does: unknown is neither IN nor NOT IN."""
    if isinstance(node, exp.Not) and node.find(exp.Query):
        inner = node.this.unnest()
        if isinstance(inner, exp.Not):
            return _negations_down(inner.this.unnest())
        if isinstance(inner, (exp.And, exp.Or)):
            other = exp.Or if isinstance(inner, exp.And) else exp.And
            sides = [
                _negations_down(exp.Not(this=exp.Paren(this=s))) for s in (inner.left, inner.right)
            ]
            return exp.Paren(this=other(this=sides[0], expression=sides[1]))
        return node
    if isinstance(node, exp.Query):
        return node
    return with_arguments(node, _negations_down)


def _transform(node: exp.Expr, replace: _Rewrite) -> exp.Expr:
    """Like sqlglot's transform, but what was replaced is not entered."""
    changed = replace(node)
    if changed is not node:
        return changed
    return with_arguments(node, lambda inner: _transform(inner, replace))


def with_arguments(node: exp.Expr, rewrite: _Rewrite) -> exp.Expr:
    """The node itself, each expression directly below it rewritten."""
    for name, value in list(node.args.items()):
        if isinstance(value, exp.Expr):
            node.set(name, rewrite(value))
        elif isinstance(value, list):
            node.set(name, [rewrite(v) if isinstance(v, exp.Expr) else v for v in value])
    return node
