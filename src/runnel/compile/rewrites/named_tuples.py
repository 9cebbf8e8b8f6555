"""A tuple as a value is a struct, whose fields are called like the columns in it.

    max((price, name)).name  ->  max(struct(price AS price, name AS name)).name

The operator tree has names of its own for columns, which a tuple would give to its fields.
"""

from __future__ import annotations

from sqlglot import exp

_VALUES = (exp.Alias, exp.Case, exp.Dot, exp.Func, exp.If, exp.Lambda, exp.PropertyEQ)
_OTHERS = (exp.Connector, exp.In, exp.PivotAlias, exp.Predicate)
_NAMED = (exp.Column, exp.Dot, exp.Identifier)


def name_tuples(tree: exp.Query) -> exp.Query:
    """A copy of the query with structs for such tuples; the same object when it has none."""
    if not any(_is_value(node) for node in tree.find_all(exp.Tuple)):
        return tree
    tree = tree.copy()
    for node in [node for node in tree.find_all(exp.Tuple) if _is_value(node)]:
        node.replace(exp.Struct(expressions=list(map(_field, node.expressions, range(1, 1000)))))
    return tree


def _is_value(node: exp.Expr) -> bool:
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    around = node.parent
    if isinstance(around, exp.Select):
        return node.arg_key == "expressions"
    return isinstance(around, _VALUES) and not isinstance(around, _OTHERS)


def _field(value: exp.Expr, place: int) -> exp.Expr:
    name = value.name if isinstance(value, _NAMED) else f"col{place}"
    return exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=value)
