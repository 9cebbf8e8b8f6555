"""Aggregates: sums that do not overflow, averages of as many digits, arrays with their NULLs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.compile.postgres.casts import coerce, typed
from runnel.compile.postgres.division import quotient
from runnel.compile.postgres.ordering import key_text
from runnel.compile.postgres.ordering import orderable as _orderable
from runnel.compile.postgres.types import (
    BOOL,
    FLOAT8,
    INT4,
    INT8,
    MAX_DIGITS,
    TEXT,
    Type,
    array_of,
    numeric,
)
from runnel.compile.postgres.values import Value, bare, cast, refused

if TYPE_CHECKING:
    from runnel.compile.postgres.expressions import Expressions


@dataclass(frozen=True, slots=True)
class Call:
    """One aggregate: its arguments, and what FILTER, DISTINCT and OVER add to each function."""

    name: str
    arguments: list[Value]
    order: list[tuple[Value, exp.Expr]]
    is_distinct: bool
    condition: str | None
    over: str | None

    def text(self, function: str, *arguments: str) -> str:
        """A call of one of Spark's functions in the place of this one."""
        inside = ", ".join(arguments)
        if self.is_distinct:
            inside = f"DISTINCT {inside}"
        if self.condition is not None and self.over is None:
            return f"{function}({inside}) FILTER (WHERE {self.condition})"
        return f"{function}({inside})" + (f" OVER ({self.over})" if self.over is not None else "")

    def argument(self) -> Value:
        """The only argument; a window takes FILTER as a CASE, which Spark's cannot."""
        if len(self.arguments) != 1:
            raise refused(f"{self.name}() with {len(self.arguments)} arguments")
        value = typed(self.arguments[0])
        if self.condition is None or self.over is None:
            return value
        return Value(f"CASE WHEN {self.condition} THEN {value.sql} END", value.type)


def is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.GroupConcat):
        return True
    return isinstance(node, exp.Anonymous) and node.name.lower() in _AGGREGATES


def aggregate(
    x: Expressions, node: exp.Expr, condition: exp.Expr | None = None, over: str | None = None
) -> Value:
    """The translated aggregate, in a group or over a window."""
    if isinstance(node, exp.WithinGroup):
        return within_group(x, node, condition)
    if not is_aggregate(node):
        raise refused(f"FILTER or OVER after {node.sql('postgres')[:40]}")
    call = _call(x, node, condition, over)
    return _AGGREGATES[call.name](call)


def _call(x: Expressions, node: exp.Expr, condition: exp.Expr | None, over: str | None) -> Call:
    name = "string_agg" if isinstance(node, exp.GroupConcat) else node.name.lower()
    arguments = _syntax_arguments(node)
    order: list[exp.Expr] = []
    if arguments and isinstance(arguments[0], exp.Order):
        order, arguments[0] = arguments[0].expressions, arguments[0].this
    is_distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if is_distinct:
        arguments = [*arguments[0].expressions, *arguments[1:]]
    is_star = name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star)
    return Call(
        name,
        [] if is_star else x.all(arguments),
        [(x.of(item.this), item) for item in order],
        is_distinct,
        bare(x.boolean(condition).sql) if condition is not None else None,
        over,
    )


def _syntax_arguments(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.GroupConcat):
        separator = node.args.get("separator")
        return [node.this, *([separator] if separator is not None else [])]
    arguments = list(node.expressions)
    if arguments and isinstance(arguments[-1], exp.Order) and len(arguments) > 1:
        raise refused(f"ORDER BY inside {node.name.lower()}()")
    return arguments


def _count(call: Call) -> Value:
    if not call.arguments:
        if call.condition is not None and call.over is not None:
            return Value(call.text("COUNT", f"CASE WHEN {call.condition} THEN 1 END"), INT8)
        return Value(call.text("COUNT", "*"), INT8)
    return Value(call.text("COUNT", bare(call.argument().sql)), INT8)


def _sum(call: Call) -> Value:
    value = _number(call)
    kind = value.type.kind
    if kind in ("int2", "int4"):
        return Value(call.text("SUM", bare(value.sql)), INT8)
    if kind == "int8":
        return Value(call.text("SUM", cast(value.sql, numeric(20, 0))), numeric(30, 0))
    if kind == "numeric":
        precision, scale = value.type.digits
        type_ = numeric(min(precision + 10, MAX_DIGITS), scale, value.type.exact)
        return Value(call.text("SUM", bare(value.sql)), type_)
    if kind == "float4":
        raise refused("sum() of real", hint="cast to double precision: sum(x::float8)")
    return Value(call.text("SUM", bare(value.sql)), FLOAT8)


def _avg(call: Call) -> Value:
    value = _number(call)
    if value.type.is_float:
        return Value(call.text("AVG", cast(value.sql, FLOAT8)), FLOAT8)
    total = _sum(call)
    count = f"NULLIF({call.text('COUNT', bare(value.sql))}, 0)"
    precision, scale = value.type.digits
    return quotient(total, Value(count, INT8), whole=precision - scale)


def _number(call: Call) -> Value:
    value = call.argument()
    if not value.type.is_number:
        raise refused(f"{call.name}() of {value.type}")
    return value


def _extreme(call: Call) -> Value:
    value = call.argument()
    if not (value.type.is_number or value.type.is_moment or value.type == TEXT):
        raise refused(f"{call.name}() of {value.type}")
    return Value(call.text(call.name.upper(), bare(value.sql)), value.type)


def _of_booleans(spark: str) -> Callable[[Call], Value]:
    def apply(call: Call) -> Value:
        return Value(call.text(spark, bare(coerce(call.argument(), BOOL).sql)), BOOL)

    return apply


def _of_integers(spark: str) -> Callable[[Call], Value]:
    def apply(call: Call) -> Value:
        value = call.argument()
        if not value.type.is_integer:
            raise refused(f"{call.name}() of {value.type}")
        return Value(call.text(spark, bare(value.sql)), value.type)

    return apply


def _statistic(spark: str) -> Callable[[Call], Value]:
    def apply(call: Call) -> Value:
        value = _number(call)
        if not value.type.is_float:
            raise refused(
                f"{call.name}() of {value.type}", detail="PostgreSQL gives a numeric",
                hint=f"cast to double precision: {call.name}(x::float8)",
            )  # fmt: skip
        return Value(call.text(spark, cast(value.sql, FLOAT8)), FLOAT8)

    return apply


def _pair(spark: str, result: Type = FLOAT8) -> Callable[[Call], Value]:
    def apply(call: Call) -> Value:
        if len(call.arguments) != 2 or call.over is not None:
            raise refused(f"{call.name}() in this form")
        shown = [cast(coerce(v, FLOAT8).sql, FLOAT8) for v in call.arguments]
        return Value(call.text(spark, *shown), result)

    return apply


def _string_agg(call: Call) -> Value:
    """Without ORDER BY any order would do for PostgreSQL; here it is the text's own."""
    if len(call.arguments) != 2 or call.over is not None:
        raise refused("string_agg() in this form", hint="string_agg(text, 'separator')")
    value, separator = typed(call.arguments[0]), typed(call.arguments[1])
    if value.type != TEXT or separator.type != TEXT or separator.constant is None:
        raise refused("string_agg() of these types", hint="text, and a constant between")
    keys = [key_text(v, item) for v, item in call.order]
    if not any(v.sql == value.sql for v, _ in call.order):
        keys.append(f"{bare(value.sql)} NULLS LAST")
    distinct = "DISTINCT " if call.is_distinct else ""
    filtered = f" FILTER (WHERE {call.condition})" if call.condition is not None else ""
    inside = f"LISTAGG({distinct}{bare(value.sql)}, {separator.sql})"
    return Value(f"{inside} WITHIN GROUP (ORDER BY {', '.join(keys)}){filtered}", TEXT)


def _array_agg(call: Call) -> Value:
    """NULLs are kept, none at all is NULL; sorted with the keys beside each value."""
    if call.over is not None:
        raise refused("array_agg() OVER (...)")
    value = _orderable(call.argument())
    falling = {bool(item.args.get("desc")) for _, item in call.order} or {False}
    if len(falling) > 1:
        raise refused("array_agg() ordered both up and down", hint="use one direction")
    fields = _sort_fields(call.order or [(value, exp.Ordered(this=exp.null()))], falling == {True})
    function = "COLLECT_SET" if call.is_distinct else "COLLECT_LIST"
    plain = Call(call.name, [], [], False, call.condition, None)
    struct = ", ".join([*fields, "'v'", value.sql])
    collected = plain.text(function, f"NAMED_STRUCT({struct})")
    in_order = f"SORT_ARRAY({collected}, {'FALSE' if falling == {True} else 'TRUE'})"
    some = f"{plain.text('COUNT', '*')} > 0"
    return Value(f"CASE WHEN {some} THEN TRANSFORM({in_order}, s -> s.v) END", array_of(value.type))


def _sort_fields(order: list[tuple[Value, exp.Expr]], is_falling: bool) -> list[str]:
    fields: list[str] = []
    for place, (value, item) in enumerate(order):
        # Turned round by a falling sort, what is false comes last.
        nulls_end = bool(item.args.get("nulls_first")) == is_falling
        test = f"({_orderable(value).sql} IS {'' if nulls_end else 'NOT '}NULL)"
        fields += [f"'n{place}'", test, f"'k{place}'", value.sql]
    return fields


def within_group(x: Expressions, node: exp.Expr, condition: exp.Expr | None = None) -> Value:
    """percentile_cont, percentile_disc and mode."""
    name = node.this.name.lower() if isinstance(node.this, exp.Anonymous) else ""
    items = node.expression.expressions
    if name not in ("percentile_cont", "percentile_disc", "mode") or len(items) != 1:
        raise refused(f"{node.sql('postgres')[:50]}")
    value = typed(x.of(items[0].this))
    down = " DESC" if items[0].args.get("desc") else ""
    filtered = f" FILTER (WHERE {bare(x.boolean(condition).sql)})" if condition is not None else ""
    if name == "mode":
        shown = f"MODE() WITHIN GROUP (ORDER BY {bare(_orderable(value).sql)}{down}){filtered}"
        return Value(shown, value.type)
    fraction = x.of(node.this.expressions[0])
    if fraction.constant is None:
        raise refused(f"{name}() of a fraction that is not constant")
    if not value.type.is_number or (name == "percentile_disc" and value.type.kind in _TOO_LONG):
        raise refused(f"{name}() of {value.type}", hint="cast to double precision")
    ordered = f"WITHIN GROUP (ORDER BY {cast(value.sql, FLOAT8)}{down}){filtered}"
    taken = Value(f"{name.upper()}({fraction.sql}) {ordered}", FLOAT8)
    return taken if name == "percentile_cont" else Value(cast(taken.sql, value.type), value.type)


_TOO_LONG = ("int8", "numeric", "float4")


def _grouping(call: Call) -> Value:
    function = "GROUPING" if len(call.arguments) == 1 else "GROUPING_ID"
    inside = ", ".join(v.sql for v in call.arguments)
    return Value(f"CAST({function}({inside}) AS INT)", INT4)


_AGGREGATES: dict[str, Callable[[Call], Value]] = {
    "count": _count, "sum": _sum, "avg": _avg, "min": _extreme, "max": _extreme,
    "bool_and": _of_booleans("BOOL_AND"), "every": _of_booleans("BOOL_AND"),
    "bool_or": _of_booleans("BOOL_OR"),
    "bit_and": _of_integers("BIT_AND"), "bit_or": _of_integers("BIT_OR"),
    "string_agg": _string_agg, "array_agg": _array_agg, "grouping": _grouping,
    "stddev": _statistic("STDDEV_SAMP"), "stddev_samp": _statistic("STDDEV_SAMP"),
    "stddev_pop": _statistic("STDDEV_POP"), "variance": _statistic("VAR_SAMP"),
    "var_samp": _statistic("VAR_SAMP"), "var_pop": _statistic("VAR_POP"),
    "corr": _pair("CORR"), "covar_pop": _pair("COVAR_POP"), "covar_samp": _pair("COVAR_SAMP"),
    "regr_count": _pair("REGR_COUNT", INT8), "regr_slope": _pair("REGR_SLOPE"),
    "regr_intercept": _pair("REGR_INTERCEPT"), "regr_r2": _pair("REGR_R2"),
    "regr_avgx": _pair("REGR_AVGX"), "regr_avgy": _pair("REGR_AVGY"),
}  # fmt: skip
