"""Spark's result types for arrays, maps and structs, for the expressions that tests use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

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
        case exp.ArrayFilter():
            return of(node.this)
        case exp.GenerateSeries():
            return f"array<{of(node.args['start'])}>"
    return None
