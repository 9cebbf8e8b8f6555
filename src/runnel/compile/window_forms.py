"""What a window function asks of the order of its rows: nothing, a frame, or the place of each."""

from __future__ import annotations

from enum import Enum

from sqlglot import exp

from runnel.compile.aggregates import ADDING_FLOATS, WAYS, Way, spark_name
from runnel.compile.scalars import function_name
from runnel.errors import InvalidQuery, NotDifferentiable

PEERS_ALIKE = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
_NUMBERED = frozenset({"row_number", "ntile", "lag", "lead"})
_POSITIONAL = frozenset({"first_value", "last_value", "nth_value", "first", "last", "any_value"})
# A list over a window without an order is sorted instead.
_LIST = "array_agg"
_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
_SUMS = frozenset({"sum", "avg", "mean", "try_sum", "try_avg"})


def window_function(window: exp.Window) -> exp.Expr:
    """The function itself, without FILTER, IGNORE NULLS and WITHIN GROUP."""
    node = window.this
    while isinstance(node, _WRAPPERS):
        node = node.this
    return node  # type: ignore[no-any-return]


def shown(window: exp.Window) -> str:
    return f"{spark_name(window_function(window)).upper()}()"


class Digits(Enum):
    """Whether the order in which rows are added decides the last digits of a function's value."""

    BY_ORDER = "always"
    BY_TYPE = "of floating point numbers"
    EXACT = "never"


def digits_of(window: exp.Window) -> Digits:
    """By the function alone; of one that is not known it depends on the type."""
    name = spark_name(window_function(window))
    if name in PEERS_ALIKE or (name in WAYS and name not in _SUMS):
        return Digits.BY_ORDER if WAYS.get(name) in ADDING_FLOATS else Digits.EXACT
    return Digits.BY_TYPE


def refuse_unrepeatable(window: exp.Window) -> None:
    """What cannot be kept below another operator cannot over a window: it is evaluated twice."""
    name = spark_name(window_function(window))
    if WAYS.get(name) in (Way.AT_ROOT, Way.REFUSED):
        raise NotDifferentiable(
            f"{name}() OVER (...)",
            detail="its value depends on the order in which the rows arrive",
            hint="take percentile(), which is exact, or use refresh mode FULL or AUTO"
            if "percentile" in name
            else "use refresh mode FULL or AUTO",
        )


def is_running(window: exp.Window) -> bool:
    """From the partition's beginning to the rows that tie with the present one."""
    return _frame(window) == ("UNBOUNDED PRECEDING", "CURRENT ROW")


def _frame(window: exp.Window) -> tuple[str, str]:
    """Both ends of the frame in capitals, without the word for its kind."""
    spec = window.args.get("spec")
    if spec is None:
        return "UNBOUNDED PRECEDING", "CURRENT ROW"
    ends = []
    for end in ("start", "end"):
        value, side = spec.args.get(end) or "CURRENT ROW", spec.args.get(f"{end}_side") or ""
        ends.append(f"{value} {side}".strip().upper())
    return ends[0], ends[1]


def is_open(window: exp.Window) -> bool:
    """Whether the order of rows that tie decides the value."""
    name = function_name(window_function(window))
    if not order_of(window):
        refuse_no_order(window)
        return False
    return name not in PEERS_ALIKE and (
        _has_rows(window) or name in _NUMBERED | _POSITIONAL | {_LIST}
    )


def is_by_copy(window: exp.Window) -> bool:
    """Whether rows that are equal in everything can have different values."""
    if not is_open(window) or _is_whole(window):
        return False
    is_first = function_name(window_function(window)) in ("first_value", "first")
    return not (is_first and _frame(window)[0] == "UNBOUNDED PRECEDING")


def refuse_no_order(window: exp.Window) -> None:
    """Without an order the first rows, and those before and after one, may be any: in no mode."""
    name = function_name(window_function(window))
    is_cut = _has_rows(window) and not _is_whole(window)
    if order_of(window) or not (is_cut or name in _NUMBERED | _POSITIONAL):
        return
    raise InvalidQuery(
        f"{shown(window)} OVER (...) without ORDER BY is not deterministic",
        detail="which rows come first is open, and would change from one refresh to the next",
        hint="add ORDER BY to the window"
        if is_cut
        else "add ORDER BY to the window, or take min() or max() over it",
    )


def is_by_place(window: exp.Window) -> bool:
    """Whether it asks for places among rows of which some tie, and completing would cut them."""
    name = function_name(window_function(window))
    if name not in _POSITIONAL | {_LIST} or _has_rows(window) or not order_of(window):
        return False
    is_first = name in ("first_value", "first") and window.this is window_function(window)
    from_start = _frame(window)[0] == "UNBOUNDED PRECEDING"
    return not _is_whole(window) and not (is_first and from_start)


def _is_whole(window: exp.Window) -> bool:
    return _frame(window) == ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING")


def _has_rows(window: exp.Window) -> bool:
    spec = window.args.get("spec")
    return spec is not None and spec.args["kind"].upper() == "ROWS"


def order_of(window: exp.Window) -> list[exp.Ordered]:
    order = window.args.get("order")
    return list(order.expressions) if order is not None else []
