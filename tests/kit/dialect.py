"""Spark SQL to DuckDB: by sqlglot with the gaps filled, or by replacing words where speed counts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.parsers.spark import SparkParser

from kit.duck_aggregates import adapt_aggregate, show_no_total_of_nothing
from kit.lateral import adapt_item, adapt_select
from runnel.compile.as_written import VERBATIM
from runnel.compile.dialect import SparkSql
from runnel.compile.type_text import element_of, entry_of, fields_of

_WORDS = (
    ("LEFT SEMI JOIN", "SEMI JOIN"),
    ("LEFT ANTI JOIN", "ANTI JOIN"),
    ("RAISE_ERROR(", "ERROR("),
    ("<=>", "IS NOT DISTINCT FROM"),
    ("EXPLODE(ARRAY(-1, 1))", "UNNEST([-1, 1])"),
    ("EXPLODE(SEQUENCE(", "UNNEST(GENERATE_SERIES("),
    ("EXPLODE(", "UNNEST("),
    ("MAX_BY(", "ARG_MAX_NULL("),
    ("`", '"'),
)
_BEYOND_WORDS = re.compile(
    r"COUNT\(DISTINCT [^()]*,|COUNT\(DISTINCT CASE[^()]*, CASE|STRUCT\(|LATERAL VIEW|array<"
    r"|\b(COLLECT_LIST|COLLECT_SET|SORT_ARRAY|LISTAGG|PERCENTILE\w*|MODE|ARRAY_JOIN|MIN_BY|TRY_SUM|SOME|COUNT_IF)\("
    r"|ROLLUP|CUBE|GROUPING SETS|(?<!EXPLODE\()\bARRAY\("
)

_DIGITS = 30
# An instant is told as a time in UTC, which is the zone of the sessions that it is compared with.
_INSTANTS = (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ)


class LooseSql(SparkSql):
    """Functions by what they mean in all dialects, not as Spark's text has them."""

    class Parser(SparkSql.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            **{n: f for n, f in SparkParser.FUNCTIONS.items() if n not in VERBATIM},
            "MEAN": exp.Avg.from_arg_list,
        }


def duck_type(spark: str) -> str:
    """The DuckDB type for a Spark type."""
    entry, element, fields = entry_of(spark), element_of(spark), fields_of(spark)
    if entry is not None:
        return f"MAP({duck_type(entry[0])}, {duck_type(entry[1])})"
    if element is not None:
        return f"{duck_type(element)}[]"
    if fields is not None:
        named = [f'"{name}" {duck_type(type_)}' for name, type_ in fields]
        return f"STRUCT({', '.join(named)})"
    return {"string": "VARCHAR", "void": "INTEGER", "timestamp_ntz": "TIMESTAMP"}.get(spark, spark)


def replace_words(sql: str) -> str:
    """A program's text for DuckDB, when its expressions mean the same in both dialects."""
    if _BEYOND_WORDS.search(sql):
        return transpile(sql)
    for spark, duck in _WORDS:
        sql = sql.replace(spark, duck)
    return sql


def transpile(sql: str, scales: Mapping[str, int] | None = None) -> str:
    """Any statement for DuckDB.

    `scales` gives the scale of decimal columns by name: DuckDB's AVG of a decimal is a double, Spark's
    is a decimal with four more digits, so that AVG over such a column is written as a rounded quotient.
    """
    tree = sqlglot.parse_one(sql, dialect=LooseSql)
    for type_ in tree.find_all(exp.DataType):
        if type_.this in _INSTANTS:
            type_.set("this", exp.DataType.Type.TIMESTAMP)
    return tree.transform(lambda node: _adapt(node, scales or {})).sql("duckdb")


def _adapt(node: exp.Expression, scales: Mapping[str, int]) -> exp.Expression:
    match node:
        case exp.TryCast():
            return exp.Cast(this=node.this, to=node.to)
        case exp.Div():
            node.set("safe", False)
        case exp.Lambda():
            _name_no_columns(node)
        case exp.Anonymous() if node.name.lower() == "raise_error":
            return exp.Anonymous(this="ERROR", expressions=node.expressions)
        case exp.Select():
            show_no_total_of_nothing(node)
            return adapt_select(node)
        case exp.Lateral() if not isinstance(node.this, exp.Query):
            return adapt_item(node)
        case exp.Table() if isinstance(node.this, exp.Func):
            return adapt_item(node)
        case exp.Table() if node.db.lower() == "default":
            node.set("db", None)
        case exp.Filter() if isinstance(node.this, exp.Avg):
            return _decimal_average(node.this, scales, node.expression) or node
        case exp.Avg() if not isinstance(node.parent, exp.Filter):
            return _decimal_average(node, scales, None) or node
        case exp.Filter() if isinstance(node.this, exp.Sum):
            return _decimal_sum(node, node.this, scales)
        case exp.Sum() if not isinstance(node.parent, (exp.Filter, exp.Window)):
            return _decimal_sum(node, node, scales)
    return adapt_aggregate(node) or node


def _name_no_columns(node: exp.Lambda) -> None:
    """A field of a variable: in HAVING DuckDB takes `v.f` for a column that is not grouped by."""
    variables = {variable.name for variable in node.expressions}
    for field in list(node.this.find_all(exp.Dot)):
        if isinstance(field.this, exp.Identifier) and field.this.name in variables:
            parts = [field.this, exp.Literal.string(field.expression.name)]
            field.replace(exp.Anonymous(this="STRUCT_EXTRACT", expressions=parts))


def _decimal_sum(node: exp.Expression, call: exp.Sum, scales: Mapping[str, int]) -> exp.Expression:
    """A sum has 38 digits in DuckDB, which leaves none for the scale of another branch of a union."""
    column = call.this.expressions[0] if isinstance(call.this, exp.Distinct) else call.this
    if not isinstance(column, exp.Column) or column.name.lower() not in scales:
        return node
    return exp.cast(node.copy(), f"DECIMAL({_DIGITS}, {scales[column.name.lower()]})")


def _decimal_average(
    node: exp.Avg, scales: Mapping[str, int], where: exp.Expression | None
) -> exp.Expression | None:
    inner = node.this
    column = inner.expressions[0] if isinstance(inner, exp.Distinct) else inner
    if not isinstance(column, exp.Column) or column.name.lower() not in scales:
        return None
    ends: list[exp.Expression] = [exp.Sum(this=inner.copy()), exp.Count(this=inner.copy())]
    if where is not None:
        ends = [exp.Filter(this=end, expression=where.copy()) for end in ends]
    type_ = f"DECIMAL({_DIGITS}, {scales[column.name.lower()] + 4})"
    return exp.cast(exp.Div(this=ends[0], expression=ends[1], typed=False, safe=False), type_)
