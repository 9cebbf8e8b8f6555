"""Window functions: bigint ranks, NULLs at PostgreSQL's end, named windows written out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.compile.postgres.aggregates import aggregate, is_aggregate
from runnel.compile.postgres.casts import coerce, to_int, typed
from runnel.compile.postgres.ordering import order_list
from runnel.compile.postgres.types import FLOAT8, INT4, INT8, Type, common
from runnel.compile.postgres.values import Value, bare, refused
from runnel.errors import InvalidQuery

if TYPE_CHECKING:
    from runnel.compile.postgres.expressions import Expressions

_RANKS: dict[str, Type] = {
    "row_number": INT8, "rank": INT8, "dense_rank": INT8, "ntile": INT4,
    "percent_rank": FLOAT8, "cume_dist": FLOAT8,
}  # fmt: skip
_SHIFTS = ("lag", "lead")
_PLACES = ("first_value", "last_value", "nth_value")


def window(x: Expressions, node: exp.Expr) -> Value:
    """`function OVER (...)`."""
    function, condition = node.this, None
    if isinstance(function, exp.Filter):
        function, condition = function.this, function.expression.this
    name = function.name.lower() if isinstance(function, exp.Anonymous) else ""
    partition, frame = _specification(x, node)
    if is_aggregate(function):
        return aggregate(x, function, condition, f"{partition} {frame}".strip())
    if name in _RANKS and condition is None:
        return _rank(x, name, function, partition)
    if name in _SHIFTS and condition is None:
        return _shift(x, name, function, partition)
    if name in _PLACES and condition is None:
        return _place(x, name, function, f"{partition} {frame}".strip())
    raise refused(f"the window function {function.sql('postgres')[:40]}")


def _rank(x: Expressions, name: str, function: exp.Expr, over: str) -> Value:
    arguments = [to_int(v, name).sql for v in x.all(function.expressions)]
    text = f"{name.upper()}({', '.join(arguments)}) OVER ({over})"
    type_ = _RANKS[name]
    return Value(f"CAST({text} AS BIGINT)" if type_ == INT8 else text, type_)


def _shift(x: Expressions, name: str, function: exp.Expr, over: str) -> Value:
    value, *rest = x.all(function.expressions)
    value = typed(value)
    arguments = [bare(value.sql)]
    if rest:
        offset = to_int(rest[0], name)
        if offset.integer() is None:
            raise refused(f"{name}() by a number that is not constant")
        arguments.append(offset.sql)
    if len(rest) > 1:
        type_ = common([value.type, rest[1].type], f"{name}()")
        value = coerce(value, type_)
        arguments = [bare(value.sql), arguments[1], coerce(rest[1], type_).sql]
    return Value(f"{name.upper()}({', '.join(arguments)}) OVER ({over})", value.type)


def _place(x: Expressions, name: str, function: exp.Expr, over: str) -> Value:
    value, *rest = x.all(function.expressions)
    value = typed(value)
    arguments = [bare(value.sql), *(to_int(v, name).sql for v in rest)]
    return Value(f"{name.upper()}({', '.join(arguments)}) OVER ({over})", value.type)


def _specification(x: Expressions, node: exp.Expr) -> tuple[str, str]:
    """PARTITION BY and ORDER BY, and the frame, of a window and of the named one it builds on."""
    base = _base(x, node)
    partition = (base or node).args.get("partition_by") or node.args.get("partition_by") or []
    order = node.args.get("order") or (base.args.get("order") if base is not None else None)
    spec = node.args.get("spec") or (base.args.get("spec") if base is not None else None)
    parts = []
    if partition:
        keys = ", ".join(bare(typed(x.of(key)).sql) for key in partition)
        parts.append(f"PARTITION BY {keys}")
    if order is not None:
        parts.append(f"ORDER BY {order_list(x, order.expressions)}")
    return " ".join(parts), _frame(x, spec) if spec is not None else ""


def _base(x: Expressions, node: exp.Expr) -> exp.Expr | None:
    name = node.args.get("alias") or node.args.get("first")
    if not isinstance(name, exp.Expr):
        return None
    found = x.windows.get(name.name.lower())
    if found is None:
        raise InvalidQuery(f"window {name.name} is not defined")
    return found


def _frame(x: Expressions, spec: exp.Expr) -> str:
    kind = str(spec.args.get("kind") or "").upper()
    if kind not in ("ROWS", "RANGE") or spec.args.get("exclude"):
        raise refused("a window frame with GROUPS or EXCLUDE")
    start = _bound(x, spec, "start")
    end = _bound(x, spec, "end") if spec.args.get("end") is not None else "CURRENT ROW"
    return f"{kind} BETWEEN {start} AND {end}"


def _bound(x: Expressions, spec: exp.Expr, end: str) -> str:
    bound, side = spec.args.get(end), str(spec.args.get(f"{end}_side") or "").upper()
    if isinstance(bound, str):
        return f"{bound.upper()} {side}".strip()
    assert isinstance(bound, exp.Expr)
    value = x.of(bound)
    if value.interval is not None and value.interval.months == value.interval.seconds == "0":
        return f"INTERVAL '{value.interval.days}' DAY {side}"
    if value.constant is None or not value.type.is_number:
        raise refused("a window frame bounded by something else than a constant number or days")
    return f"{value.sql} {side}"
