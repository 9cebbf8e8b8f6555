"""Spark's result types for arrays, maps and structs, for the expressions that tests use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from runnel.compile.type_text import element_of, fields_of

_Of = Callable[[exp.Expression], str]


def nested_type(
    node: exp.Expression, of: _Of, common: Callable[[Sequence[str]], str]
) -> str | None:
    """The type of an expression that makes something nested; None when it makes nothing such."""
    match node:
        case exp.Split() | exp.RegexpSplit():
            return "array<string>"
        case exp.Array():
            return f"array<{common([of(e) for e in node.expressions])}>"
        case exp.VarMap():
            keys, values = node.args["keys"].expressions, node.args["values"].expressions
            return f"map<{common([of(k) for k in keys])},{common([of(v) for v in values])}>"
        case exp.Struct():
            fields = [f"{e.name}:{of(e.expression)}" for e in node.expressions]
            return f"struct<{','.join(fields)}>"
        case exp.ArrayFilter() | exp.ArraySort():
            return of(node.this)
        case exp.Bracket():
            return element_of(of(node.this))
        case exp.Dot():
            return dict(fields_of(of(node.this)) or ())[node.name]
        case exp.Transform() if isinstance(node.expression.this, exp.Dot):
            fields = fields_of(element_of(of(node.this)) or "")
            return f"array<{dict(fields or ())[node.expression.this.name]}>"
        case exp.GenerateSeries():
            return f"array<{of(node.args['start'])}>"
    return None
