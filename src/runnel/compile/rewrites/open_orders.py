"""Ties broken by the text alone, for a query that only FULL can keep: no operator tree is built.

ORDER BY ... LIMIT goes on with the numbers of the output columns. A window goes on with all columns
of FROM (`STRUCT(*)`), or with what the rows are grouped by: rows equal in these are the same.
"""

from __future__ import annotations

from sqlglot import exp

from runnel.compile.in_frame import by_value
from runnel.compile.parse import parse
from runnel.compile.places import at, point
from runnel.compile.rewrites.determinism import make_deterministic, written
from runnel.compile.rewrites.named_windows import expand_named_windows
from runnel.compile.window_forms import is_by_place, is_open, order_of, shown, window_function
from runnel.errors import InvalidQuery, UserError


def ordered_text(query: str, width: int) -> str | None:
    """The query with every order completed; None when none is open. `width`: its columns."""
    parsed = parse(query)
    tree = expand_named_windows(make_deterministic(parsed))
    tree = tree.copy() if tree is parsed else tree
    try:
        found = [_completed(node, width if node is tree else None) for node in list(tree.walk())]
    except UserError as error:
        point(error, query)
        raise
    return written(tree) if any(found) else None


def _completed(node: exp.Expr, width: int | None) -> bool:
    """Complete one order in place; whether there was one."""
    with at(node):
        if isinstance(node, exp.Window):
            return _complete_window(node)
        is_limited = bool(node.args.get("limit") or node.args.get("offset"))
        if isinstance(node, exp.Query) and is_limited and node.args.get("order"):
            return _complete_limit(node, width)
    return False


def _complete_limit(query: exp.Query, width: int | None) -> bool:
    keys = query.args["order"].expressions
    if any(isinstance(o.this, exp.Var) and o.this.name.upper() == "ALL" for o in keys):
        return False
    count = width if width is not None else _width(query)
    if count is None:
        raise InvalidQuery(
            "ORDER BY ... LIMIT over *, beside something that only FULL can keep",
            detail="rows that tie are ordered by all columns, which are not known here",
            hint="list the columns in that SELECT",
        )
    more = (exp.Ordered(this=exp.Literal.number(n + 1), nulls_first=True) for n in range(count))
    query.args["order"].set("expressions", [*keys, *more])
    return True


def _width(query: exp.Expr) -> int | None:
    """How many columns a query shows; None when a star hides it."""
    while not isinstance(query, exp.Select):
        query = query.left if isinstance(query, exp.SetOperation) else query.this
    if any(item.is_star for item in query.expressions):
        return None
    return len(query.expressions)


def _complete_window(window: exp.Window) -> bool:
    is_placed = is_by_place(window)
    if not is_placed and not is_open(window):
        return False
    if _asks_for_a_key(window):
        return False
    ties = _ties(window)
    if is_placed:
        window.replace(by_value(window, ties))
        return True
    more = (exp.Ordered(this=tie, nulls_first=True) for tie in ties)
    window.args["order"].set("expressions", [*order_of(window), *more])
    return True


def _asks_for_a_key(window: exp.Window) -> bool:
    """FIRST_VALUE(x) OVER (ORDER BY x): rows that tie have the same one."""
    value = next(iter(window_function(window).iter_expressions()), None)
    is_placed = is_by_place(window)
    return is_placed and value is not None and any(value == o.this for o in order_of(window))


def _ties(window: exp.Window) -> list[exp.Expr]:
    select = window.find_ancestor(exp.Select)
    if select is None or window.find_ancestor(exp.Qualify, exp.Order, exp.Select) is not select:
        raise InvalidQuery(
            f"{shown(window)} OVER (...) in this place, beside something that only FULL can keep",
            detail="rows that tie are open, and their order cannot be completed here",
            hint="compute it in the select list of a FROM subquery",
        )
    group = select.args.get("group")
    if group is None:
        return [exp.Anonymous(this="STRUCT", expressions=[exp.Star()])]
    if group.find(exp.Cube, exp.Rollup, exp.GroupingSets) or group.args.get("all"):
        raise InvalidQuery(
            f"{shown(window)} OVER (...) over grouping sets, beside something that only FULL can "
            "keep",
            hint="compute the groups in a FROM subquery",
        )
    return [_key(select, key) for key in group.expressions]


def _key(select: exp.Select, key: exp.Expr) -> exp.Expr:
    if isinstance(key, exp.Literal) and not key.is_string:
        key = select.expressions[int(key.name) - 1].unalias()
    return key.copy()
