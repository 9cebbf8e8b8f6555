"""The quotient of numerics with as many digits as PostgreSQL gives it.

PostgreSQL chooses the scale from the values: 16 - 4 * w digits, but no less than either operand's
scale, where w is the power of 10000 that the quotient begins with, as estimated from the first
base-10000 digits of both operands. The quotient is rounded half away from zero to that scale.
"""

from __future__ import annotations

from runnel.compile.postgres.numbers import digits_of
from runnel.compile.postgres.types import MAX_DIGITS, numeric
from runnel.compile.postgres.values import Value

_LEAST_SCALE = 20
_POINT = 40


def quotient(left: Value, right: Value, whole: int | None = None) -> Value:
    """`left / right`; where the digits do not fit DECIMAL(38), an error and never another number.

    `whole` is how many digits it can have before the point, when that is known.
    """
    (p1, s1), (p2, s2) = digits_of(left), digits_of(right)
    before = p1 - s1 + s2 if whole is None else whole
    scale = max(_LEAST_SCALE, s1, s2, min(28, MAX_DIGITS - before))
    x, y = f"CAST({left.sql} AS DECIMAL({p1}, {s1}))", f"CAST({right.sql} AS DECIMAL({p2}, {s2}))"
    fields = f"'x', {x}, 'y', {y}, 'a', {_digits(x, s1)}, 'b', {_digits(y, s2)}"
    borrowed = "CASE WHEN LEFT(v.a, 4) <= LEFT(v.b, 4) THEN 4 ELSE 0 END"
    least = max(s1, s2)
    digits = f"GREATEST(16 - (LENGTH(v.a) - LENGTH(v.b)) + {borrowed}, {least})"
    chosen = f"CASE WHEN v.x = 0 THEN {least} ELSE {digits} END"
    body = _let("r", chosen, _rounded(s2, scale))
    return Value(
        _let("v", f"NAMED_STRUCT({fields})", body), numeric(MAX_DIGITS, scale, exact=False)
    )


def _let(name: str, value: str, body: str) -> str:
    return f"TRANSFORM(ARRAY({value}), {name} -> {body})[0]"


def _digits(operand: str, scale: int) -> str:
    """All digits about a fixed place for the point, from the first four that are not all zero."""
    shown = f"REPLACE(CAST(ABS({operand}) AS STRING), '.', '')"
    padded = f"RPAD(LPAD({shown}, {_POINT + scale}, '0'), {2 * _POINT}, '0')"
    return f"REGEXP_REPLACE({padded}, '^(0000)*', '')"


def _rounded(scale_of_divisor: int, scale: int) -> str:
    """The quotient in units of 10^-r, rounded by its remainder, brought back by its exponent."""
    dividend = _shifted("v.x", f"CAST(r + {scale_of_divisor} AS STRING)")
    divisor = _shifted("v.y", f"'{scale_of_divisor}'")
    operands = f"NAMED_STRUCT('m', {dividend}, 'n', {divisor})"
    half = "CASE WHEN (q.m % q.n) * 2 >= q.n THEN 1 ELSE 0 END"
    units = f"CAST((q.m - q.m % q.n) / q.n AS DECIMAL(38, 0)) + {half}"
    sign = "CASE WHEN (v.x < 0) = (v.y < 0) THEN '' ELSE '-' END"
    text = f"CONCAT({sign}, CAST({units} AS STRING), 'E-', CAST(r AS STRING))"
    return _let("q", operands, _let("t", text, _checked(scale)))


def _shifted(operand: str, exponent: str) -> str:
    return f"CAST(CONCAT(CAST(ABS({operand}) AS STRING), 'E', {exponent}) AS DECIMAL(38, 0))"


def _checked(scale: int) -> str:
    answer = f"CAST(t AS DECIMAL(38, {scale}))"
    # Both sides in one type: of two scales Spark would compare the shorter.
    lost = f"r > {scale} AND CAST({answer} AS DECIMAL(38, 38)) <> CAST(t AS DECIMAL(38, 38))"
    message = f"RAISE_ERROR('a quotient with more than {scale} decimals: cast to double precision')"
    return f"CASE WHEN {lost} THEN {message} ELSE {answer} END"
