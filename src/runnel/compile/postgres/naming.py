"""What PostgreSQL calls a column that has no alias."""

from __future__ import annotations

from sqlglot import exp

from runnel.compile.postgres.scope import folded

_NAMES: dict[type[exp.Expr], str] = {
    exp.Case: "case", exp.Exists: "exists", exp.Extract: "extract", exp.GroupConcat: "string_agg",
    exp.Trim: "btrim", exp.Substring: "substring", exp.Overlay: "overlay",
    exp.StrPosition: "position", exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp", exp.Array: "array", exp.Boolean: "bool",
    exp.Interval: "interval", exp.AtTimeZone: "timezone",
}  # fmt: skip
_TYPES = {
    "int": "int4", "bigint": "int8", "smallint": "int2", "decimal": "numeric", "double": "float8",
    "float": "float4", "boolean": "bool", "double precision": "float8", "real": "float4",
}  # fmt: skip
_INSIDE = (exp.Paren, exp.Filter, exp.Window, exp.WithinGroup, exp.Bracket, exp.Collate)


def column_name(node: exp.Expr, place: int) -> str:
    """The name, or `column` and the place where PostgreSQL has only a question mark."""
    return _name(node) or f"column{place}"


def _name(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Alias):
        return folded(node.args["alias"])
    if isinstance(node, exp.Column):
        return folded(node.this)
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    if isinstance(node, exp.Cast):
        type_ = node.to.this.value.lower() if isinstance(node.to, exp.DataType) else None
        return _name(node.this) or _TYPES.get(type_ or "", type_)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
        return _name(node.this.expressions[0])
    if isinstance(node, _INSIDE):
        return _name(node.this)
    return _NAMES.get(type(node))
