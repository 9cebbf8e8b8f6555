"""Expressions: each kind of syntax has its translation here, or is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.compile.places import at
from runnel.compile.postgres import arrays, conditions, documents, functions
from runnel.compile.postgres.aggregates import aggregate, is_aggregate, within_group
from runnel.compile.postgres.arithmetic import BINARY, negate
from runnel.compile.postgres.casts import coerce, convert
from runnel.compile.postgres.comparisons import compare
from runnel.compile.postgres.dates import at_time_zone, extract
from runnel.compile.postgres.intervals import parse_interval
from runnel.compile.postgres.numbers import number
from runnel.compile.postgres.patterns import matches, similar
from runnel.compile.postgres.scope import Scope, folded
from runnel.compile.postgres.text import concatenate, overlay, position, substring, trim
from runnel.compile.postgres.types import (
    BOOL,
    DATE,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    Type,
    common,
    from_syntax,
)
from runnel.compile.postgres.values import Value, bare, construct, refused
from runnel.compile.postgres.windows import window
from runnel.errors import InvalidQuery

if TYPE_CHECKING:
    from runnel.compile.postgres.relation import Known, Relation

_Query = Callable[[exp.Expr, "Known", Scope], "Relation"]
_NOW: dict[type[exp.Expr], tuple[str, Type]] = {
    exp.CurrentDate: ("CURRENT_DATE()", DATE),
    exp.CurrentTimestamp: ("CURRENT_TIMESTAMP()", TIMESTAMPTZ),
    exp.Localtimestamp: ("LOCALTIMESTAMP()", TIMESTAMP),
}


@dataclass(frozen=True, slots=True)
class Expressions:
    """Translates the expressions of one SELECT."""

    scope: Scope
    known: Known
    query: _Query
    windows: Mapping[str, exp.Expr] = field(default_factory=dict)

    def within(self, scope: Scope) -> Expressions:
        return replace(self, scope=scope)

    def of(self, node: exp.Expr) -> Value:
        """The translated expression."""
        with at(node):
            return self._of(node)

    def _of(self, node: exp.Expr) -> Value:
        kind = type(node)
        if kind in BINARY:
            return BINARY[kind](self.of(node.this), self.of(node.expression))
        if kind in _NOW and not node.this:
            return Value(*_NOW[kind])
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise refused(construct(node))
        return handler(self, node)

    def all(self, nodes: list[exp.Expr]) -> list[Value]:
        return [self.of(node) for node in nodes]

    def boolean(self, node: exp.Expr) -> Value:
        value = self.of(node)
        if value.type.kind not in ("bool", "unknown"):
            raise refused(f"a condition of type {value.type}", hint="compare it with something")
        return coerce(value, BOOL)

    def relation(self, node: exp.Expr) -> Relation:
        return self.query(node, self.known, self.scope)


def _column(x: Expressions, node: exp.Expr) -> Value:
    assert isinstance(node, exp.Column)
    if isinstance(node.this, exp.Star):
        raise refused("* inside an expression")
    qualifier = folded(node.args["table"]) if node.args.get("table") else None
    found = x.scope.find(folded(node.this), qualifier)
    if found is None:
        raise InvalidQuery(
            f"column {node.sql('postgres')} is not found in the FROM clause",
            hint="a name of the select list cannot be used here in PostgreSQL",
        )
    entry, sql = found
    return Value(sql, entry.type)


def _literal(x: Expressions, node: exp.Expr) -> Value:
    if not node.is_string:
        return number(node.name)
    return Value("", UNKNOWN, constant=node.name)


def _string(x: Expressions, node: exp.Expr) -> Value:
    return Value("", UNKNOWN, constant=node.name)


def _adjacent(x: Expressions, node: exp.Expr) -> Value:
    """'a' and 'b' on two lines are one string."""
    return Value("", UNKNOWN, constant="".join(part.name for part in node.expressions))


def _subquery(x: Expressions, node: exp.Expr) -> Value:
    relation = x.relation(node)
    if len(relation.columns) != 1:
        raise InvalidQuery("a subquery used as a value must return one column")
    return Value(f"({relation.sql})", relation.columns[0][1])


def _case(x: Expressions, node: exp.Expr) -> Value:
    operand = x.of(node.this) if node.this is not None else None
    branches = [(i.this, x.of(i.args["true"])) for i in node.args["ifs"]]
    default = x.of(node.args["default"]) if node.args.get("default") is not None else None
    results = [value for _, value in branches] + ([default] if default is not None else [])
    type_ = common([v.type for v in results], "CASE")
    text = "CASE"
    for test, value in branches:
        condition = x.boolean(test) if operand is None else compare("=", operand, x.of(test))
        text += f" WHEN {bare(condition.sql)} THEN {coerce(value, type_).sql}"
    if default is not None:
        text += f" ELSE {coerce(default, type_).sql}"
    return Value(f"{text} END", type_)


def _cast(x: Expressions, node: exp.Expr) -> Value:
    assert isinstance(node, exp.Cast)
    if node.args.get("format"):
        raise refused("CAST ... FORMAT")
    value = x.of(node.this)
    type_ = from_syntax(node.to)
    converted = convert(value, type_)
    limit = [p.this for p in node.to.expressions if isinstance(p, exp.DataTypeParam)]
    if node.to.this == exp.DType.VARCHAR and limit:
        return Value(f"LEFT({converted.sql}, {limit[0].name})", TEXT)
    if limit and type_.is_moment:
        raise refused(f"{type_} with fewer digits", hint="use date_trunc")
    return converted


def _interval(x: Expressions, node: exp.Expr) -> Value:
    amount, unit = node.this, node.args.get("unit")
    if not isinstance(amount, exp.Literal):
        raise refused("an interval that is not constant", hint="multiply: n * interval '1 day'")
    return parse_interval(amount.name, unit.name if unit is not None else "")


def _concatenation(x: Expressions, node: exp.Expr) -> Value:
    left, right = x.of(node.this), x.of(node.expression)
    if "array" in (left.type.kind, right.type.kind):
        return arrays.append(left, right)
    return concatenate(left, right)


def _bracket(x: Expressions, node: exp.Expr) -> Value:
    value, (index, *more) = x.of(node.this), node.expressions
    if more:
        raise refused("more than one subscript")
    if isinstance(index, exp.Slice):
        low, high = (x.of(n) if n is not None else None for n in (index.this, index.expression))
        return arrays.array_slice(value, low, high)
    return arrays.subscript(value, x.of(index))


def _array(x: Expressions, node: exp.Expr) -> Value:
    if any(isinstance(e, exp.Query) for e in node.expressions):
        raise refused("ARRAY(SELECT ...)", hint="use array_agg in a subquery")
    return arrays.array(x.all(node.expressions))


def _json(x: Expressions, node: exp.Expr) -> Value:
    document, steps = documents.path_steps(node)
    is_text = isinstance(node, (exp.JSONExtractScalar, exp.JSONBExtractScalar))
    return documents.extracted(x.of(document), steps, is_text)


def _trim(x: Expressions, node: exp.Expr) -> Value:
    characters = x.of(node.expression) if node.args.get("expression") else None
    return trim(x.of(node.this), characters, node.args.get("position") or "BOTH")


def _substring(x: Expressions, node: exp.Expr) -> Value:
    arguments = [node.this, node.args.get("start"), node.args.get("length")]
    return substring([x.of(a) for a in arguments if a is not None])


def _overlay(x: Expressions, node: exp.Expr) -> Value:
    arguments = [node.this, node.expression, node.args.get("from_"), node.args.get("for_")]
    return overlay([x.of(a) for a in arguments if a is not None])


def _collate(x: Expressions, node: exp.Expr) -> Value:
    if node.expression.name.lower() not in ("c", "posix", "ucs_basic", "default"):
        raise refused(f"COLLATE {node.expression.name}", hint='text is ordered as by COLLATE "C"')
    return coerce(x.of(node.this), TEXT)


def _function(x: Expressions, node: exp.Expr) -> Value:
    if any(isinstance(argument, exp.Query) for argument in node.expressions):
        raise refused(f"{node.name.upper()}(SELECT ...)", hint="use a join, or array_agg")
    if is_aggregate(node):
        return aggregate(x, node)
    return functions.call_function(node.name.lower(), x.all(node.expressions))


def _filter(x: Expressions, node: exp.Expr) -> Value:
    return aggregate(x, node.this, node.expression.this)


def _within_group(x: Expressions, node: exp.Expr) -> Value:
    return within_group(x, node)


def _complement(x: Expressions, node: exp.Expr) -> Value:
    value = x.of(node.this)
    if not value.type.is_integer:
        raise refused(f"~ of {value.type}")
    return Value(f"(~{value.sql})", value.type)


_HANDLERS: dict[type[exp.Expr], Callable[[Expressions, exp.Expr], Value]] = {
    **conditions.HANDLERS,
    exp.Column: _column, exp.Literal: _literal, exp.RawString: _string, exp.ByteString: _string,
    exp.Concat: _adjacent,
    exp.Null: lambda x, n: Value("NULL", UNKNOWN),
    exp.Boolean: lambda x, n: Value(str(n.this).upper(), BOOL),
    exp.Paren: lambda x, n: x.of(n.this), exp.Neg: lambda x, n: negate(x.of(n.this)),
    exp.Subquery: _subquery,
    exp.Case: _case, exp.Cast: _cast, exp.Interval: _interval,
    exp.SimilarTo: lambda x, n: similar(x.of(n.this), x.of(n.expression)),
    exp.RegexpLike: lambda x, n: matches(x.of(n.this), x.of(n.expression), False),
    exp.RegexpILike: lambda x, n: matches(x.of(n.this), x.of(n.expression), True),
    exp.DPipe: _concatenation, exp.Bracket: _bracket, exp.Array: _array,
    exp.ArrayContainsAll: lambda x, n: arrays.contains(x.of(n.this), x.of(n.expression)),
    exp.ArrayOverlaps: lambda x, n: arrays.overlaps(x.of(n.this), x.of(n.expression)),
    exp.JSONExtract: _json, exp.JSONExtractScalar: _json, exp.JSONBExtract: _json,
    exp.JSONBExtractScalar: _json,
    exp.Trim: _trim, exp.Substring: _substring, exp.Overlay: _overlay,
    exp.StrPosition: lambda x, n: position(x.of(n.this), x.of(n.args["substr"])),
    exp.StartsWith: lambda x, n: functions.call_function(
        "starts_with", [x.of(n.this), x.of(n.expression)]
    ),
    exp.Extract: lambda x, n: extract(n.this.name, x.of(n.expression)),
    exp.AtTimeZone: lambda x, n: at_time_zone(x.of(n.this), x.of(n.args["zone"])),
    exp.Collate: _collate, exp.BitwiseNot: _complement,
    exp.Anonymous: _function, exp.GroupConcat: _function, exp.Filter: _filter,
    exp.WithinGroup: _within_group, exp.Window: window,
}  # fmt: skip
