"""Aggregates whose value depends on the order of the rows get an order; without one are refused.

collect_list(x), collect_set(x)     sorted
listagg(x)                          in the order of x; ties of WITHIN GROUP are broken by x
max_by(x, y), min_by(x, y)          ties of y are broken by x
mode(x)                             the least of the most frequent values
"""

from __future__ import annotations

from sqlglot import exp

from runnel.compile.aggregates import AROUND, WAYS, Way, spark_name
from runnel.compile.places import at
from runnel.compile.rewrites.named_windows import expand_named_windows
from runnel.errors import InvalidQuery

_COLLECTIONS = (exp.ArrayAgg, exp.ArrayUniqueAgg)
_INSTEAD = {"first": "min_by(x, y)", "last": "max_by(x, y)", "any": "max(x)"}


def order_aggregates(tree: exp.Query) -> exp.Query:
    """The query with an order for each such aggregate; the same object when it has none."""
    # A window that is only named here has the order that WINDOW gives it.
    copy = expand_named_windows(tree.copy())
    is_changed = False
    for node in reversed(list(copy.walk())):
        if isinstance(node, (exp.AggFunc, exp.Anonymous)):
            is_changed |= _order(node)
    return copy if is_changed else tree


def _order(node: exp.Expr) -> bool:
    """Give one call an order; whether it was changed."""
    if isinstance(node, _COLLECTIONS):
        return _sort(node)
    if isinstance(node, exp.Mode):
        return _choose_mode(node)
    name = spark_name(node)
    if WAYS.get(name) is Way.INVALID and not _is_windowed(_call(node)):
        with at(node):
            raise _no_order(name)
    if name in ("max_by", "min_by"):
        return _break_ties(node)
    if name in ("listagg", "string_agg"):
        return _order_list(node)
    return False


def _call(node: exp.Expr) -> exp.Expr:
    """The function with its FILTER, WITHIN GROUP and the like."""
    while isinstance(node.parent, AROUND) and node.arg_key == "this":
        node = node.parent
    return node


def _is_windowed(call: exp.Expr) -> bool:
    return isinstance(call.parent, exp.Window) and call.arg_key == "this"


def _sort(node: exp.Expr) -> bool:
    call = _call(node)
    if _is_windowed(call):
        window = call.parent
        assert window is not None
        if window.args.get("order") and isinstance(node, exp.ArrayAgg):
            return False
        call = window
    if isinstance(call.parent, exp.ArraySort) and not call.parent.args.get("expression"):
        return False
    call.replace(exp.ArraySort(this=call.copy(), nulls_first=exp.false()))
    return True


def _choose_mode(node: exp.Mode) -> bool:
    chosen = node.args.get("deterministic")
    if node.this is None or (isinstance(chosen, exp.Boolean) and chosen.this):
        return False
    node.set("deterministic", exp.true())
    return True


def _break_ties(node: exp.Expr) -> bool:
    """Order by the pair; rows whose `y` is NULL stay out."""
    holder = node
    if node.expressions and isinstance(node.expressions[0], exp.Distinct):
        holder = node.expressions[0]
    if len(holder.expressions) < 2:
        return False
    value, by, *more = holder.expressions
    if isinstance(by, exp.Case) and isinstance(by.args["ifs"][0].args["true"], exp.Struct):
        return False
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(name), expression=field.copy())
        for name, field in (("o", by), ("v", value))
    ]
    pair = exp.case().when(by.copy().is_(exp.null()).not_(), exp.Struct(expressions=fields))
    holder.set("expressions", [value, pair, *more])
    return True


def _order_list(node: exp.Expr) -> bool:
    arguments = node.expressions
    if not arguments:
        return False
    is_distinct = isinstance(arguments[0], exp.Distinct)
    value = arguments[0].expressions[0] if is_distinct else arguments[0]
    by_value = exp.Ordered(this=value.copy(), nulls_first=True)
    within = node.parent
    if not isinstance(within, exp.WithinGroup):
        order = exp.Order(expressions=[by_value])
        node.replace(exp.WithinGroup(this=node.copy(), expression=order))
        return True
    order = within.expression
    if is_distinct or any(ordered.this == value for ordered in order.expressions):
        return False
    order.append("expressions", by_value)
    return True


def _no_order(name: str) -> InvalidQuery:
    instead = _INSTEAD[name.partition("_")[0]]
    return InvalidQuery(
        f"{name}() is not deterministic",
        detail="which row's value it takes depends on the order in which Spark reads the rows",
        hint=f"say which row is meant, for example with {instead}",
    )
