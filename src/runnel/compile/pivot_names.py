"""The columns of a PIVOT by the names Spark gives them; None where only Spark can tell."""

from __future__ import annotations

import re

from sqlglot import exp

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_CALLS = (exp.Sum, exp.Min, exp.Max, exp.Count)


def value_name(node: exp.Expr, values: list[exp.Expr]) -> str | None:
    """What a value is called: its alias, or its text."""
    if isinstance(node, exp.PivotAlias):
        alias = node.args["alias"]
        return str(alias.name)
    texts = [_text(value) for value in values]
    if len(texts) == 1:
        return texts[0]
    known = [text for text in texts if text is not None]
    return "{" + ", ".join(known) + "}" if len(known) == len(texts) else None


def column_name(aggregate: exp.Expr, count: int) -> str | None:
    """What an aggregate adds to a value's name: nothing when it is the only one."""
    if count == 1:
        return ""
    if aggregate.alias:
        return str(aggregate.alias)
    argument = aggregate.this
    if isinstance(aggregate, exp.Count) and isinstance(argument, exp.Star):
        return "count(1)"
    if isinstance(aggregate, _CALLS) and isinstance(argument, exp.Column):
        return f"{aggregate.key}({argument.name})"
    return None


def _text(value: exp.Expr) -> str | None:
    value = value.unnest()
    match value:
        case exp.Null():
            return "null"
        case exp.Boolean():
            return str(value.this).lower()
        case exp.Literal(is_string=True):
            return str(value.this)
        case exp.Literal() if value.this.isdecimal():
            return str(int(value.this))
        case exp.Neg(this=exp.Literal() as number) if number.this.isdecimal():
            return f"-{int(number.this)}"
        case exp.Cast(this=exp.Literal() as date) if _DATE.fullmatch(date.this):
            return str(date.this) if value.to.is_type("date") else None
    return None
