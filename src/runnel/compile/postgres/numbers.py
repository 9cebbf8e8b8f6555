"""Numeric constants, and the digits that results of exact arithmetic have in Spark."""

from __future__ import annotations

from decimal import Decimal

from runnel.compile.postgres.types import INT4, INT8, MAX_DIGITS, Type, numeric
from runnel.compile.postgres.values import Value, refused


def number(text: str) -> Value:
    """A number as PostgreSQL reads it: 1e3 and 1.5 are numeric, long integers too."""
    value = Decimal(text)
    is_whole = not any(mark in text.lower() for mark in ".e")
    if is_whole and abs(value) < 2**31:
        return _literal(text, INT4)
    if is_whole and abs(value) < 2**63:
        return _literal(text, INT8)
    return exact_number(value)


def exact_number(value: Decimal) -> Value:
    if not value.is_finite():
        raise refused(f"the numeric {value}", hint="use double precision")
    plain = f"{value:f}"
    whole, _, fraction = plain.lstrip("+-").partition(".")
    type_ = numeric(len(whole.lstrip("0")) + len(fraction), len(fraction))
    if len(whole.lstrip("0")) + len(fraction) > MAX_DIGITS:
        raise refused("a number of more than 38 digits")
    # Spark reads a number without a point as an integer.
    text = plain if fraction else f"CAST({plain} AS {type_.spark})"
    return Value(f"({text})" if text.startswith("-") else text, type_, constant=plain)


def integer(value: int, type_: Type) -> Value:
    return _literal(str(value), type_)


def _literal(text: str, type_: Type) -> Value:
    is_int = type_ == INT4 or (type_ == INT8 and abs(int(text)) >= 2**31)
    if not is_int:
        # Spark reads a short number as INT.
        return Value(f"CAST({text} AS {type_.spark})", type_, constant=text)
    return Value(f"({text})" if text.startswith("-") else text, type_, constant=text)


def digits_of(value: Value) -> tuple[int, int]:
    """Precision and scale; Spark takes a constant integer for as long as it is written."""
    if value.constant is not None and value.type.is_integer:
        return len(value.constant.lstrip("-")), 0
    return value.type.digits


def fitted(value: Value, precision: int, scale: int) -> str:
    """The operand, narrowed where Spark would otherwise cut the result's scale."""
    if digits_of(value)[0] <= precision:
        return value.sql
    return f"CAST({value.sql} AS DECIMAL({precision}, {scale}))"


def sum_digits(left: Value, right: Value) -> tuple[Type, int | None]:
    """The type of a sum or difference, and the precision the operands must be narrowed to."""
    (p1, s1), (p2, s2) = digits_of(left), digits_of(right)
    scale = max(s1, s2)
    whole = max(p1 - s1, p2 - s2) + 1
    exact = left.type.exact and right.type.exact
    if whole + scale <= MAX_DIGITS or max(MAX_DIGITS - whole, min(scale, 6)) >= scale:
        return numeric(whole + scale, scale, exact), None
    return numeric(MAX_DIGITS, scale, exact), MAX_DIGITS - 1


def product_digits(left: Value, right: Value) -> tuple[Type, tuple[int, int] | None]:
    """The type of a product, and the precisions the operands must be narrowed to."""
    (p1, s1), (p2, s2) = digits_of(left), digits_of(right)
    scale = s1 + s2
    exact = left.type.exact and right.type.exact
    if p1 + p2 + 1 <= MAX_DIGITS or scale <= 6:
        return numeric(p1 + p2 + 1, scale, exact), None
    room = MAX_DIGITS - 1 - scale
    if room < 2:
        raise refused(
            "a product with more than 38 digits", hint="cast the factors to a smaller scale"
        )
    whole1 = min(p1 - s1, max(room - (p2 - s2), room // 2))
    whole2 = min(p2 - s2, room - whole1)
    return numeric(MAX_DIGITS, scale, exact), (whole1 + s1, whole2 + s2)
