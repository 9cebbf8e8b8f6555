"""Spark's result types without Spark, for the expressions that tests use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import sqlglot
from sqlglot import exp

from kit.dialect import LooseSql
from kit.nested_types import nested_type
from runnel.compile.aggregates import is_aggregate, spark_name
from runnel.compile.type_text import fields_of
from runnel.compile.typing import decimal_parts
from runnel.model.columns import Column

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_AS_DECIMAL = {"tinyint": (3, 0), "smallint": (5, 0), "int": (10, 0), "bigint": (20, 0)}
_PREDICATES = (
    exp.Predicate,
    exp.And,
    exp.Or,
    exp.Not,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Is,
)
_TEXT = (
    *(exp.Upper, exp.Lower, exp.Concat, exp.DPipe, exp.Substring, exp.Trim),
    exp.ArrayToString,
)
_INTS = (exp.Length, exp.ArraySize, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile)
_SAME = (
    exp.Filter,
    exp.Window,
    exp.IgnoreNulls,
    exp.RespectNulls,
    exp.Min,
    exp.Max,
    exp.Neg,
    exp.Paren,
    exp.Abs,
    exp.Round,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
    exp.NthValue,
)
_COMMON = (exp.Coalesce, exp.Greatest, exp.Least)
_DOUBLES = frozenset(
    "percentile percentile_cont median std stddev stddev_pop stddev_samp variance var_pop corr "
    "covar_pop covar_samp kurtosis skewness var_samp regr_slope regr_avgx regr_avgy regr_r2 "
    "regr_intercept regr_sxx regr_sxy regr_syy".split()
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)


class RuleTyper:
    """The compiler's `Typer`, answered by Spark's rules as written down here."""

    def types(self, columns: Sequence[Column], expressions: Sequence[str]) -> tuple[str, ...]:
        known = {c.name: c.type for c in columns}
        answers = []
        for text in expressions:
            tree = _parse(text)
            used = tuple(sorted({c.table or c.name for c in tree.find_all(exp.Column)}))
            answers.append(_typed(text, tuple((n, known[n]) for n in used)))
        return tuple(answers)


@lru_cache(maxsize=100_000)
def _parse(text: str) -> exp.Expression:
    return sqlglot.parse_one(text, dialect=LooseSql)


@lru_cache(maxsize=100_000)
def _typed(text: str, columns: tuple[tuple[str, str], ...]) -> str:
    return type_of(_parse(text), dict(columns))


def type_of(node: exp.Expression, columns: dict[str, str]) -> str:
    """The type of an expression over columns of these types."""

    def of(inner: exp.Expression) -> str:
        return type_of(inner, columns)

    match node:
        case exp.Column() if node.table:
            return dict(fields_of(columns[node.table]) or ())[node.name]
        case exp.Column():
            return columns[node.name]
        case exp.Literal():
            return _literal(node)
        case exp.Cast():
            return _simple(node.to)
        case exp.Null():
            return "void"
        case exp.Anonymous() if node.name.lower() == "raise_error":
            return "void"
        case exp.Boolean() | exp.And() | exp.Or():
            return "boolean"
        case exp.Count():
            return "bigint"
        case exp.Sum():
            return sum_type(of(_argument(node)))
        case exp.Avg():
            return avg_type(of(_argument(node)))
        case exp.Case():
            results = [i.args["true"] for i in node.args["ifs"]]
            return common([of(e) for e in (*results, node.args.get("default")) if e is not None])
        case exp.If():
            ends = (node.args["true"], node.args.get("false"))
            return common([of(e) for e in ends if e is not None])
        case exp.IntDiv():
            return "bigint"
    return _by_class(node, of)


def _by_class(node: exp.Expression, of: object) -> str:
    assert callable(of)
    if isinstance(node, _PREDICATES):
        return "boolean"
    if isinstance(node, _TEXT):
        return "string"
    if isinstance(node, _INTS):
        return "int"
    if isinstance(node, (exp.PercentRank, exp.CumeDist, exp.Reduce)):
        return "double"
    if isinstance(node, _SAME):
        return str(of(_argument(node)))
    if isinstance(node, _COMMON):
        return common([of(e) for e in (node.this, *node.expressions)])
    if isinstance(node, _ARITHMETIC):
        return arithmetic(type(node), of(node.left), of(node.right))
    if is_aggregate(node):
        return _aggregate(node, of)
    nested = nested_type(node, of, common)
    if nested is not None:
        return nested
    raise NotImplementedError(f"no type rule for {node.sql('spark')}")


def _aggregate(node: exp.Expression, of: Callable[[exp.Expression], str]) -> str:
    """The type of a call that is evaluated as it stands."""
    first = next(iter(node.iter_expressions()), None)
    if isinstance(node, (exp.Filter, exp.ArraySort)):
        return of(node.this)
    if isinstance(node, exp.WithinGroup):
        name = node.this.name.lower() if isinstance(node.this, exp.Anonymous) else "mode"
        is_value = name in ("mode", "percentile_disc")
        return of(node.expression.expressions[0].this) if is_value else _named(name, "string")
    assert first is not None
    if isinstance(first, exp.Distinct):
        first = first.expressions[0]
    if isinstance(node, (exp.ArrayAgg, exp.ArrayUniqueAgg)):
        return f"array<{of(first)}>"
    if spark_name(node) in ("max_by", "min_by") and len(list(node.iter_expressions())) == 3:
        return f"array<{of(first)}>"
    return _named(spark_name(node), of(first))


def _named(name: str, argument: str) -> str:
    if name in _DOUBLES:
        return "double"
    if name == "try_sum":
        return sum_type(argument)
    if name == "try_avg":
        return avg_type(argument)
    return "bigint" if name == "approx_count_distinct" else argument


def _argument(node: exp.Expression) -> exp.Expression:
    inner = node.this
    return inner.expressions[0] if isinstance(inner, exp.Distinct) else inner


def _literal(node: exp.Literal) -> str:
    if node.is_string:
        return "string"
    text = node.this
    if "e" in text.lower():
        return "double"
    if "." in text:
        whole, _, fraction = text.partition(".")
        return f"decimal({max(len(whole.lstrip('0')) + len(fraction), 1)},{len(fraction)})"
    return "int" if abs(int(text)) < 2**31 else "bigint"


def _simple(type_: exp.DataType) -> str:
    text = type_.sql("spark").lower().replace(", ", ",")
    return {"decimal": "decimal(10,0)", "integer": "int", "long": "bigint"}.get(text, text)


def sum_type(type_: str) -> str:
    """SUM: decimals gain ten digits, integers become bigint."""
    parts = decimal_parts(type_)
    if parts:
        return f"decimal({min(38, parts[0] + 10)},{parts[1]})"
    return "bigint" if type_ in _INTEGERS else "double"


def avg_type(type_: str) -> str:
    """AVG: decimals gain four digits before and after the point."""
    parts = decimal_parts(type_)
    return bounded(parts[0] + 4, parts[1] + 4) if parts else "double"


def bounded(precision: int, scale: int) -> str:
    """A decimal type within 38 digits."""
    return f"decimal({min(38, precision)},{min(38, scale)})"


def adjusted(precision: int, scale: int) -> str:
    """A decimal type whose scale gives way (down to six) before its whole digits do."""
    if precision <= 38:
        return f"decimal({precision},{scale})"
    whole = precision - scale
    return f"decimal(38,{max(38 - whole, min(scale, 6))})"


def arithmetic(operator: type[exp.Expression], left: str, right: str) -> str:
    """The result of + - * / % by Spark's rules."""
    if left.startswith("timestamp") and right == "interval":
        return left
    if "double" in (left, right) or "string" in (left, right):
        return "double"
    if "void" in (left, right):
        left, right = (right, right) if left == "void" else (left, left)
    is_exact = left in _INTEGERS and right in _INTEGERS
    if is_exact:
        return "double" if operator is exp.Div else common([left, right])
    (p1, s1), (p2, s2) = _digits(left), _digits(right)
    if operator is exp.Mul:
        return adjusted(p1 + p2 + 1, s1 + s2)
    if operator is exp.Div:
        scale = max(6, s1 + p2 + 1)
        return adjusted(p1 - s1 + s2 + scale, scale)
    if operator is exp.Mod:
        return adjusted(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))
    return adjusted(max(p1 - s1, p2 - s2) + max(s1, s2) + 1, max(s1, s2))


def _digits(type_: str) -> tuple[int, int]:
    return decimal_parts(type_) or _AS_DECIMAL[type_]


def common(types: Sequence[str]) -> str:
    """The type that CASE, COALESCE and UNION bring their branches to."""
    known = [t for t in types if t != "void"]
    if not known:
        return "void"
    if len(set(known)) == 1:
        return known[0]
    if "string" in known:
        return "string"
    if any(t in ("double", "float") for t in known):
        return "double"
    if all(t in _INTEGERS for t in known):
        return max(known, key=_INTEGERS.index)
    if set(known) == {"date", "timestamp"}:
        return "timestamp"
    digits = [_digits(t) for t in known]
    scale = max(s for _, s in digits)
    return bounded(max(p - s for p, s in digits) + scale, scale)


class GuessingTyper:
    """Spark's types where the kit knows them, else a text: enough to see that something compiles."""

    def types(self, columns: Sequence[Column], expressions: Sequence[str]) -> tuple[str, ...]:
        return tuple(self._type(columns, text) for text in expressions)

    def _type(self, columns: Sequence[Column], text: str) -> str:
        try:
            return RuleTyper().types(columns, [text])[0]
        except (NotImplementedError, KeyError, AttributeError, AssertionError, TypeError):
            return "string"
