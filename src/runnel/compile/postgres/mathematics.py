"""Functions of numbers: numerics round half away from zero, doubles half to even."""

from __future__ import annotations

from collections.abc import Callable

from runnel.compile.postgres.arithmetic import modulo, power
from runnel.compile.postgres.casts import coerce, settled, to_int
from runnel.compile.postgres.types import FLOAT8, Type, numeric
from runnel.compile.postgres.values import Value, bare, cast, refused

Function = Callable[[list[Value]], Value]
# From here on every double is whole, and a BIGINT could not hold it.
_WHOLE = "9e15"


def _number(value: Value, function: str) -> Value:
    value = coerce(value, FLOAT8) if value.type.kind == "unknown" else value
    if not value.type.is_number:
        raise refused(f"{function}() of {value.type}", hint="cast it to a number")
    return value


def round_(arguments: list[Value]) -> Value:
    value = _number(arguments[0], "round")
    scale = _scale(arguments, "round")
    if value.rounding is not None:
        type_ = numeric(38, max(scale, 0))
        rounded = f"CAST({value.rounding} AS {type_.spark})"
        return Value(rounded if scale >= 0 else f"ROUND({rounded}, {scale})", type_)
    if value.type.is_float:
        if len(arguments) > 1:
            raise refused(
                "round(double precision, n)", hint="cast to numeric: round(x::numeric, n)"
            )
        return Value(f"RINT({bare(cast(value.sql, FLOAT8))})", FLOAT8)
    if value.type.is_integer and len(arguments) == 1:
        return Value(f"RINT({cast(value.sql, FLOAT8)})", FLOAT8)
    return _exact_round(value, scale)


def _exact_round(value: Value, scale: int) -> Value:
    precision, own = value.type.digits
    type_ = numeric(precision - own + max(scale, 0) + 1, max(scale, 0))
    if scale >= own:
        return Value(cast(value.sql, type_), type_)
    start = value.sql if value.type.kind == "numeric" else cast(value.sql, numeric(precision, 0))
    return Value(cast(f"ROUND({bare(start)}, {scale})", type_), type_)


def _scale(arguments: list[Value], function: str) -> int:
    if len(arguments) == 1:
        return 0
    scale = to_int(arguments[1], f"{function}()").integer()
    if scale is None or scale > 30:
        raise refused(f"{function}() to a number of digits that is not a small constant")
    return scale


def trunc(arguments: list[Value]) -> Value:
    value = settled(_number(arguments[0], "trunc"))
    scale = _scale(arguments, "trunc")
    if value.type.is_integer and len(arguments) == 1:
        return Value(cast(value.sql, FLOAT8), FLOAT8)
    if value.type.is_float:
        if len(arguments) > 1:
            raise refused("trunc(double precision, n)", hint="cast to numeric(p, s) first")
        cut = f"CASE WHEN {value.sql} < 0 THEN CEIL({value.sql}) ELSE FLOOR({value.sql}) END"
        return Value(_guarded(value.sql, cut), FLOAT8)
    precision, own = value.type.digits
    type_ = numeric(precision - own + max(scale, 0), max(scale, 0))
    if scale >= own:
        return Value(cast(value.sql, type_), type_)
    inside = f"{bare(value.sql)}, {scale}"
    cut = f"CASE WHEN {value.sql} < 0 THEN CEIL({inside}) ELSE FLOOR({inside}) END"
    return Value(cast(cut, type_), type_)


def _guarded(value: str, sql: str) -> str:
    answer = f"CASE WHEN ABS({value}) < {_WHOLE} THEN {sql} ELSE {value} END"
    return f"CAST({answer} AS DOUBLE)"


def _step(spark: str) -> Function:
    def apply(arguments: list[Value]) -> Value:
        value = settled(_number(arguments[0], spark.lower()))
        if value.type.is_integer:
            return Value(cast(value.sql, FLOAT8), FLOAT8)
        if value.type.is_float:
            return Value(_guarded(value.sql, f"{spark}({value.sql})"), FLOAT8)
        precision, scale = value.type.digits
        type_ = numeric(precision - scale + 1, 0)
        return Value(cast(f"{spark}({bare(value.sql)})", type_), type_)

    return apply


def abs_(arguments: list[Value]) -> Value:
    value = settled(_number(arguments[0], "abs"))
    return Value(f"ABS({bare(value.sql)})", value.type)


def sign(arguments: list[Value]) -> Value:
    value = settled(_number(arguments[0], "sign"))
    type_: Type = numeric(1, 0) if value.type.kind == "numeric" else FLOAT8
    return Value(cast(f"SIGN({bare(value.sql)})", type_), type_)


def _of_double(spark: str) -> Function:
    def apply(arguments: list[Value]) -> Value:
        value = settled(_number(arguments[0], spark.lower()))
        if value.type.kind == "numeric":
            raise refused(
                f"{spark.lower()}() of numeric", detail="PostgreSQL computes it to more digits",
                hint="cast to double precision",
            )  # fmt: skip
        if len(arguments) != 1:
            raise refused(f"{spark.lower()}() with {len(arguments)} arguments")
        return Value(f"{spark}({cast(value.sql, FLOAT8)})", FLOAT8)

    return apply


FUNCTIONS: dict[str, Function] = {
    "round": round_, "trunc": trunc, "ceil": _step("CEIL"), "ceiling": _step("CEIL"),
    "floor": _step("FLOOR"), "abs": abs_, "sign": sign,
    "mod": lambda a: modulo(a[0], a[1]), "power": lambda a: power(a[0], a[1]),
    "pow": lambda a: power(a[0], a[1]),
    "sqrt": _of_double("SQRT"), "exp": _of_double("EXP"), "ln": _of_double("LN"),
    "log": _of_double("LOG10"), "log10": _of_double("LOG10"), "cbrt": _of_double("CBRT"),
    "sin": _of_double("SIN"), "cos": _of_double("COS"), "tan": _of_double("TAN"),
    "radians": _of_double("RADIANS"), "degrees": _of_double("DEGREES"),
}  # fmt: skip
