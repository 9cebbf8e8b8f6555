"""Variables of lambdas get names that no column of the operator tree has.

    filter(xs, a0 -> a0 > id)        a0_ -> a0_ > a0        where the tree calls id a0

Columns of the tree are called a0, a1, ..., what it adds begins with two underscores. As in Spark,
a variable is found whatever its case, and hides a column of its name.
"""

from __future__ import annotations

import re

from sqlglot import exp

_LIKE_OURS = re.compile(r"__\w*[^_]|a\d+", re.ASCII | re.IGNORECASE)
# Where a value stands in what also gives it a name, or has a part of it.
_VALUE_OF: dict[type[exp.Expr], str] = {
    exp.Alias: "this",
    exp.Dot: "this",
    exp.Kwarg: "expression",
    exp.PropertyEQ: "expression",
}


def rename_variables(node: exp.Expr) -> exp.Expr:
    """The expression itself, its variables renamed where that is needed."""
    for function in list(node.find_all(exp.Lambda)):
        named = {variable.name.lower() for variable in function.expressions}
        for column in list(function.this.find_all(exp.Column)):
            if column.parts[0].name.lower() in named:
                column.replace(_as_variable(column))
        for identifier in list(function.find_all(exp.Identifier)):
            if identifier.name.lower() in named and _is_variable(identifier):
                identifier.set("this", _renamed(identifier.name))
    return node


def _renamed(name: str) -> str:
    # In lower case: what compares names as they are written is to find it, too.
    return f"{name.lower()}_" if _LIKE_OURS.fullmatch(name) else name


def _as_variable(column: exp.Column) -> exp.Expr:
    """A variable that was written in another case, and so taken for a column, with its fields."""
    variable, *fields = (part.copy() for part in column.parts)
    for field in fields:
        variable = exp.Dot(this=variable, expression=field)
    return variable


def _is_variable(identifier: exp.Identifier) -> bool:
    parent = identifier.parent
    if parent is None or isinstance(parent, exp.Column):
        return False
    return identifier.arg_key == _VALUE_OF.get(type(parent), identifier.arg_key)
