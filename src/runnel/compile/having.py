"""What the names in HAVING mean, where an alias is called like a column.

Inside an aggregate function a name is a column of the input; outside it is a column that is grouped
by, or else the alias.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from runnel.compile.aggregates import is_aggregate
from runnel.compile.scalars import mark, resolve
from runnel.compile.scope import Scope


def having_of(
    select: exp.Select, scope: Scope, aliases: Mapping[str, exp.Expr], keys: list[exp.Expr]
) -> exp.Expr | None:
    """The condition with its names resolved; `keys` are what is grouped by."""
    having = select.args.get("having")
    if having is None:
        return None

    def replace(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or node.table or _is_in_aggregate(node):
            return node
        alias = aliases.get(node.name.lower())
        found = scope.resolve_here([node.name]) if alias is not None else None
        if alias is None or found is None or mark(found[0].name) in keys:
            return node
        return exp.Paren(this=alias.copy())

    return resolve(having.this.copy().transform(replace), scope, aliases)


def _is_in_aggregate(node: exp.Expr | None) -> bool:
    while node is not None:
        if is_aggregate(node):
            return True
        node = node.parent
    return False
