"""Operators on numbers: integers divide to integers, numerics keep all their digits."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from runnel.compile.postgres.casts import coerce, settled
from runnel.compile.postgres.dates import add_moments, subtract_moments
from runnel.compile.postgres.division import quotient
from runnel.compile.postgres.numbers import digits_of, fitted, product_digits, sum_digits
from runnel.compile.postgres.types import FLOAT8, INT4, INT8, Type, numeric, operand
from runnel.compile.postgres.values import Value, cast, refused

_Operator = Callable[[Value, Value], Value]


def add(left: Value, right: Value) -> Value:
    if _is_temporal(left) or _is_temporal(right):
        return add_moments(left, right)
    return _plus_or_minus("+", left, right)


def subtract(left: Value, right: Value) -> Value:
    if _is_temporal(left) or _is_temporal(right):
        return subtract_moments(left, right)
    return _plus_or_minus("-", left, right)


def _plus_or_minus(sign: str, left: Value, right: Value) -> Value:
    left, right = numbers(sign, left, right)
    common = operand(left.type, right.type)
    if common.kind != "numeric":
        return _same(sign, left, right, common)
    type_, narrow = sum_digits(left, right)
    a, b = left.sql, right.sql
    if narrow is not None:
        a, b = fitted(left, narrow, type_.scale), fitted(right, narrow, type_.scale)
    return Value(f"({a} {sign} {b})", type_)


def multiply(left: Value, right: Value) -> Value:
    for interval, factor in ((left, right), (right, left)):
        if interval.interval is not None and factor.type.is_integer:
            parts = interval.interval.times(factor.sql)
            return Value(parts.sql, interval.type, interval=parts)
    left, right = numbers("*", left, right)
    common = operand(left.type, right.type)
    if common.kind != "numeric":
        return _same("*", left, right, common)
    type_, narrow = product_digits(left, right)
    if narrow is None:
        return Value(f"({left.sql} * {right.sql})", type_)
    a, b = fitted(left, narrow[0], left.type.scale), fitted(right, narrow[1], right.type.scale)
    return Value(f"({a} * {b})", type_)


def divide(left: Value, right: Value) -> Value:
    left, right = numbers("/", left, right)
    common = operand(left.type, right.type)
    if common.is_integer:
        return Value(f"CAST({left.sql} DIV {right.sql} AS {common.spark})", common)
    if common.is_float:
        return _same("/", left, right, common)
    return quotient(left, right)


def modulo(left: Value, right: Value) -> Value:
    left, right = numbers("%", left, right)
    common = operand(left.type, right.type)
    if common.is_float:
        raise refused("% of double precision", hint="cast to numeric(p, s)")
    if common.is_integer:
        return _same("%", left, right, common)
    (p1, s1), (p2, s2) = digits_of(left), digits_of(right)
    scale = max(s1, s2)
    if max(p1 - s1, p2 - s2) + scale > 38:
        raise refused("% of numerics this wide", hint="cast them to fewer digits")
    exact = left.type.exact and right.type.exact
    return Value(
        f"({left.sql} % {right.sql})", numeric(max(p1 - s1, p2 - s2) + scale, scale, exact)
    )


def power(left: Value, right: Value) -> Value:
    left, right = numbers("power", left, right)
    if (
        "numeric" in (left.type.kind, right.type.kind)
        and not operand(left.type, right.type).is_float
    ):
        raise refused("power of numeric", hint="cast to double precision")
    return Value(f"POWER({left.sql}, {right.sql})", FLOAT8)


def negate(value: Value) -> Value:
    if value.interval is not None:
        parts = value.interval.negated()
        return Value("" if parts.is_difference else parts.sql, value.type, interval=parts)
    if value.type.kind == "unknown":
        value = coerce(value, FLOAT8)
    value = settled(value)
    if not value.type.is_number:
        raise refused(f"- before {value.type}")
    if value.constant is not None:
        constant = value.constant[1:] if value.constant.startswith("-") else f"-{value.constant}"
        shown = constant if value.sql.strip("()-") == value.constant.strip("-") else f"-{value.sql}"
        return Value(f"({shown})", value.type, constant=constant)
    return Value(f"(-{value.sql})", value.type)


def bitwise(sign: str) -> _Operator:
    def apply(left: Value, right: Value) -> Value:
        left, right = numbers(sign, left, right)
        common = operand(left.type, right.type)
        if not common.is_integer:
            raise refused(f"{sign} of {common}")
        return _same("^" if sign == "#" else sign, left, right, common)

    return apply


def shift(function: str) -> _Operator:
    def apply(left: Value, right: Value) -> Value:
        left, right = numbers(function, left, right)
        if left.type not in (INT4, INT8) or not right.type.is_integer:
            raise refused(f"a shift of {left.type}")
        return Value(f"{function}({left.sql}, {cast(right.sql, INT4)})", left.type)

    return apply


def numbers(what: str, left: Value, right: Value) -> tuple[Value, Value]:
    """Both operands as numbers; a quoted constant takes the other's type."""
    if left.type.kind == "unknown" and right.type.is_number:
        left = coerce(left, right.type)
    if right.type.kind == "unknown" and left.type.is_number:
        right = coerce(right, left.type)
    for value in (left, right):
        if not value.type.is_number:
            raise refused(f"{what} of {left.type} and {right.type}", hint="cast to numbers")
    return settled(left), settled(right)


def _same(sign: str, left: Value, right: Value, type_: Type) -> Value:
    """Both operands in the type of the result: Spark's own rules for mixtures differ."""
    a, b = (
        v.sql if v.type == type_ or type_.is_integer else cast(v.sql, type_) for v in (left, right)
    )
    return Value(f"({a} {sign} {b})", type_)


def _is_temporal(value: Value) -> bool:
    return value.type.is_moment or value.interval is not None


BINARY: dict[type[exp.Expr], _Operator] = {
    exp.Add: add,
    exp.Sub: subtract,
    exp.Mul: multiply,
    exp.Div: divide,
    exp.Mod: modulo,
    exp.Pow: power,
    exp.BitwiseAnd: bitwise("&"),
    exp.BitwiseOr: bitwise("|"),
    exp.BitwiseXor: bitwise("#"),
    exp.BitwiseLeftShift: shift("SHIFTLEFT"),
    exp.BitwiseRightShift: shift("SHIFTRIGHT"),
}
