"""Aggregates of floating point numbers as folds over their sorted values.

Adding doubles gives other last digits in another order, and Spark adds them as they arrive. Below
another operator the old value must be computed again to the last digit, so they are sorted first:

    sum(x)      aggregate(sort_array(collect_list(x)), NULL, (s, x) -> coalesce(s, 0) + x)
    stddev(x)   the same with count, mean and sum of squared distances, as Spark updates them
"""

from __future__ import annotations

from functools import cache

import sqlglot
from sqlglot import exp

from runnel.compile.dialect import SparkSql

_SUM = "AGGREGATE(__list, CAST(NULL AS DOUBLE), (__f, __v) -> COALESCE(__f, 0D) + __v)"
# The update of Pebay, where __f is the fold so far and __v the next value.
_D = "(__v - __f.avg)"
_DN = f"({_D} / (__f.n + 1D))"
_T = f"({_D} * {_DN} * __f.n)"
_SQUARES = f"__f.m2 + {_T} AS m2"
_CUBES = f"__f.m3 + {_T} * {_DN} * (__f.n - 1D) - 3D * {_DN} * __f.m2 AS m3"
_FOURTHS = (
    f"__f.m4 + {_T} * {_DN} * {_DN} * (__f.n * __f.n - __f.n + 1D) "
    f"+ 6D * {_DN} * {_DN} * __f.m2 - 4D * {_DN} * __f.m3 AS m4"
)
_COUNTED = f"__f.n + 1D AS n, __f.avg + {_DN} AS avg"
_NEXT = {
    "n": "__f.n + 1D",
    "ax": "__f.ax + (__v.x - __f.ax) / (__f.n + 1D)",
    "ay": "__f.ay + (__v.y - __f.ay) / (__f.n + 1D)",
}
_PAIRED = (
    ", ".join(f"{value} AS {name}" for name, value in _NEXT.items())
    + f", __f.ck + (__v.x - __f.ax) * (__v.y - ({_NEXT['ay']})) AS ck"
    + f", __f.xx + (__v.x - __f.ax) * (__v.x - ({_NEXT['ax']})) AS xx"
    + f", __f.yy + (__v.y - __f.ay) * (__v.y - ({_NEXT['ay']})) AS yy"
)
_SLOPE = "__f.ck / __f.xx"
_CORRELATED = "(__f.ck / SQRT(__f.xx * __f.yy))"

_VARIANCE = ("n avg m2", f"{_COUNTED}, {_SQUARES}")
_SKEW = ("n avg m2 m3", f"{_COUNTED}, {_SQUARES}, {_CUBES}")
_CURVE = ("n avg m2 m3 m4", f"{_COUNTED}, {_SQUARES}, {_CUBES}, {_FOURTHS}")
_PAIRS = ("n ax ay ck xx yy", _PAIRED)

# For each function: what is folded, when there is a value, and the value. SQL's regr_f(y, x) has
# its arguments the other way round, so that x is the second one everywhere below.
_FOLDS = {
    **dict.fromkeys(
        ("std", "stddev", "stddev_samp"), (_VARIANCE, "__f.n > 1D", "SQRT(__f.m2 / (__f.n - 1D))")
    ),
    "stddev_pop": (_VARIANCE, "__f.n > 0D", "SQRT(__f.m2 / __f.n)"),
    **dict.fromkeys(("variance", "var_samp"), (_VARIANCE, "__f.n > 1D", "__f.m2 / (__f.n - 1D)")),
    "var_pop": (_VARIANCE, "__f.n > 0D", "__f.m2 / __f.n"),
    "skewness": (_SKEW, "__f.m2 <> 0D", "SQRT(__f.n) * __f.m3 / SQRT(__f.m2 * __f.m2 * __f.m2)"),
    "kurtosis": (_CURVE, "__f.m2 <> 0D", "__f.n * __f.m4 / (__f.m2 * __f.m2) - 3D"),
    "covar_pop": (_PAIRS, "__f.n > 0D", "__f.ck / __f.n"),
    "covar_samp": (_PAIRS, "__f.n > 1D", "__f.ck / (__f.n - 1D)"),
    "corr": (_PAIRS, "__f.n > 1D", _CORRELATED),
    "regr_avgx": (_PAIRS, "__f.n > 0D", "__f.ax"),
    "regr_avgy": (_PAIRS, "__f.n > 0D", "__f.ay"),
    "regr_sxx": (_PAIRS, "__f.n > 0D", "__f.xx"),
    "regr_syy": (_PAIRS, "__f.n > 0D", "__f.yy"),
    "regr_sxy": (_PAIRS, "__f.n > 0D", "__f.ck"),
    "regr_slope": (_PAIRS, "__f.xx <> 0D", _SLOPE),
    "regr_intercept": (_PAIRS, "__f.xx <> 0D", f"__f.ay - {_SLOPE} * __f.ax"),
    "regr_r2": (
        _PAIRS,
        "__f.xx <> 0D",
        f"CASE WHEN __f.yy = 0D THEN 1D ELSE {_CORRELATED} * {_CORRELATED} END",
    ),
}
_SUMS = frozenset({"sum", "try_sum"})
_AVERAGES = frozenset({"avg", "mean", "try_avg"})
_HIGHER = frozenset({"skewness", "kurtosis"})
FUNCTIONS = _SUMS | _AVERAGES | _FOLDS.keys()


def folded(
    name: str, arguments: list[exp.Expr], is_distinct: bool, condition: exp.Expr | None
) -> exp.Expr | None:
    """The fold that gives a function's value in one way only; None for a function without one."""
    if name not in FUNCTIONS or len(arguments) != (2 if _takes_pairs(name) else 1):
        return None
    values = [_double(a) for a in arguments]
    value = _pair(values, condition) if len(values) == 2 else _chosen(values[0], condition)
    collected: exp.Expr = exp.Distinct(expressions=[value]) if is_distinct else value
    fold = _put_in(_template(name), exp.ArrayAgg(this=collected, nulls_excluded=True))
    if name not in _AVERAGES:
        return fold
    return exp.Div(this=fold, expression=exp.Count(this=collected.copy()), typed=False, safe=False)


def finish_of(name: str) -> str | None:
    """The value of a function over the spread of its numbers, __f; None where more is needed."""
    if name not in _FOLDS or name in _HIGHER:
        return None
    _, condition, value = _FOLDS[name]
    return f"CASE WHEN {condition} THEN {value} END"


def _takes_pairs(name: str) -> bool:
    return name in _FOLDS and _FOLDS[name][0] is _PAIRS


@cache
def _template(name: str) -> exp.Expr:
    if name not in _FOLDS:
        return _parsed(_SUM)
    (names, update), condition, value = _FOLDS[name]
    start = ", ".join(f"0D AS {field}" for field in names.split())
    finish = f"CASE WHEN {condition} THEN {value} END"
    return _parsed(
        f"AGGREGATE(__list, STRUCT({start}), (__f, __v) -> STRUCT({update}), __f -> {finish})"
    )


def _parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect=SparkSql)


def _put_in(template: exp.Expr, collected: exp.Expr) -> exp.Expr:
    made = template.copy()
    made.set("this", exp.ArraySort(this=collected, nulls_first=exp.true()))
    return made


def _double(value: exp.Expr) -> exp.Expr:
    return exp.cast(value.copy(), "double", dialect=SparkSql)


def _chosen(value: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    return exp.case().when(condition.copy(), value) if condition is not None else value


def _pair(values: list[exp.Expr], condition: exp.Expr | None) -> exp.Expr:
    """Both numbers, where both are there: the second one is x."""
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(name), expression=value.copy())
        for name, value in zip("yx", values, strict=True)
    ]
    present: list[exp.Expr] = [value.is_(exp.null()).not_() for value in values]
    if condition is not None:
        present.append(condition.copy())
    return exp.case().when(exp.and_(*present), exp.Struct(expressions=fields))
