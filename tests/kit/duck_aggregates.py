"""Spark's aggregate functions and grouping sets in DuckDB's words."""

from __future__ import annotations

from sqlglot import exp

_SAME_BUT_NAME = {
    "every": "BOOL_AND",
    "some": "BOOL_OR",
    "try_sum": "SUM",
    "try_avg": "AVG",
    "std": "STDDEV",
    "percentile": "QUANTILE_CONT",
}
_BY = {"max_by": "ARG_MAX", "min_by": "ARG_MIN"}
_PERCENTILES = {"percentile_cont": exp.PercentileCont, "percentile_disc": exp.PercentileDisc}
_SETS = (exp.Cube, exp.Rollup, exp.GroupingSets)


def adapt_aggregate(node: exp.Expression) -> exp.Expression | None:
    """The node for DuckDB, or None when it needs no change."""
    match node:
        case exp.Window() if isinstance(_function(node), exp.ArrayAgg):
            return _collected_over(node)
        case exp.Filter() if isinstance(node.this, (exp.ArrayAgg, exp.ArrayUniqueAgg)):
            return _collected(node.this, node.expression.this)
        case exp.ArrayAgg() | exp.ArrayUniqueAgg():
            return _collected(node, None)
        case exp.WithinGroup():
            return _within_group(node)
        case exp.CountIf():
            return exp.Count(this=exp.case().when(node.this, _number(1)))
        case exp.Count() if node.expressions:
            parts = [node.this, *node.expressions]
            present = exp.and_(*(p.copy().is_(exp.null()).not_() for p in parts))
            return exp.Count(this=exp.case().when(present, _number(1)))
        case exp.Any() if not isinstance(node.parent, (exp.Like, exp.ILike)) and not isinstance(
            node.this, exp.Query
        ):
            return exp.LogicalOr(this=node.this)
        case exp.Mode() if node.args.get("deterministic"):
            order = exp.Order(this=node.this, expressions=[exp.Ordered(this=node.this.copy())])
            return exp.Anonymous(this="MODE", expressions=[order])
        case exp.Anonymous() if node.name.lower() in _BY:
            name = _BY[node.name.lower()] + ("_NULL" if len(node.expressions) == 2 else "")
            return exp.Anonymous(this=name, expressions=node.expressions)
        case exp.Anonymous() if node.name.lower() in _SAME_BUT_NAME:
            name = _SAME_BUT_NAME[node.name.lower()]
            return exp.Anonymous(this=name, expressions=node.expressions)
        case exp.Reduce() if node.args.get("finish"):
            return _finished(node)
        case exp.Group():
            _adapt_group(node)
    return None


def show_no_total_of_nothing(node: exp.Select) -> None:
    """Where () is one set of several, Spark shows no row of it over no rows."""
    if _has_sets(node):
        node.having(exp.GT(this=exp.Count(this=exp.Star()), expression=_number(0)), copy=False)


def _function(window: exp.Window) -> exp.Expression:
    return window.this.this if isinstance(window.this, exp.Filter) else window.this


def _collected_over(window: exp.Window) -> exp.Expression:
    condition = window.this.expression.this if isinstance(window.this, exp.Filter) else None
    window.set("this", _list(_function(window), condition))
    return exp.func("COALESCE", window.copy(), exp.Array())


def _collected(node: exp.Expression, condition: exp.Expression | None) -> exp.Expression:
    return exp.func("COALESCE", _list(node, condition), exp.Array())


def _list(node: exp.Expression, condition: exp.Expression | None) -> exp.Expression:
    """The list of what is not NULL; an empty one, where DuckDB gives NULL."""
    value = node.this
    shown = value.expressions[0] if isinstance(value, exp.Distinct) else value
    is_distinct = shown is not value or isinstance(node, exp.ArrayUniqueAgg)
    call = exp.Anonymous(
        this="LIST", expressions=[exp.Distinct(expressions=[shown]) if is_distinct else shown]
    )
    present = shown.copy().is_(exp.null()).not_()
    where = exp.and_(present, condition) if condition is not None else present
    return exp.Filter(this=call, expression=exp.Where(this=where))


def _finished(node: exp.Reduce) -> exp.Expression:
    """A fold has no last step in DuckDB: it is a list of one, transformed."""
    fold = exp.Reduce(this=node.this, initial=node.args["initial"], merge=node.args["merge"])
    found = exp.Transform(this=exp.Array(expressions=[fold]), expression=node.args["finish"])
    return exp.Anonymous(this="LIST_EXTRACT", expressions=[found, _number(1)])


def _within_group(node: exp.WithinGroup) -> exp.Expression | None:
    name = node.this.name.lower()
    ordered = node.expression.expressions
    if isinstance(node.this, exp.Mode):
        return exp.Anonymous(
            this="MODE", expressions=[exp.Order(this=ordered[0].this.copy(), expressions=ordered)]
        )
    if name in _PERCENTILES:
        function = _PERCENTILES[name](this=node.this.expressions[0])
        return exp.WithinGroup(this=function, expression=node.expression)
    return _string_agg(node.this, ordered)


def _string_agg(call: exp.Expression, ordered: list[exp.Expression]) -> exp.Expression:
    arguments = call.expressions
    is_distinct = isinstance(arguments[0], exp.Distinct)
    value, *rest = arguments[0].expressions if is_distinct else arguments
    between = rest[0] if rest else exp.Literal.string("")
    order = exp.Order(this=between, expressions=[o.copy() for o in ordered])
    shown = exp.Distinct(expressions=[value]) if is_distinct else value
    return exp.Anonymous(this="STRING_AGG", expressions=[shown, order])


def _adapt_group(node: exp.Group) -> None:
    for name in ("cube", "rollup"):
        for found in node.args.get(name) or ():
            if not found.expressions:
                node.set("expressions", [type(found)(expressions=node.expressions)])
                node.set(name, None)


def _has_sets(node: exp.Select) -> bool:
    group = node.args.get("group")
    if group is None or group.args.get("cube") or group.args.get("rollup"):
        return group is not None
    found = [e for e in group.expressions if isinstance(e, _SETS)]
    return bool(found) and any(
        not isinstance(p, exp.Tuple) or p.expressions for e in found for p in e.expressions
    )


def _number(value: int) -> exp.Literal:
    return exp.Literal.number(value)
