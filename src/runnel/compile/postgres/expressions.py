"""Expressions: each kind of syntax has its translation here, or is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.compile.postgres import arrays, documents, functions
from runnel.compile.postgres.aggregates import aggregate, is_aggregate, within_group
from runnel.compile.postgres.arithmetic import BINARY, negate
from runnel.compile.postgres.casts import coerce, convert, typed
from runnel.compile.postgres.comparisons import SIGNS, any_of, compare, compare_rows, is_in
from runnel.compile.postgres.dates import extract
from runnel.compile.postgres.intervals import parse_interval
from runnel.compile.postgres.numbers import number
from runnel.compile.postgres.patterns import like, matches, similar
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
from runnel.compile.postgres.values import Value, bare, refused
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
        kind = type(node)
        if kind in BINARY:
            return BINARY[kind](self.of(node.this), self.of(node.expression))
        if kind in SIGNS:
            return self._comparison(node, SIGNS[kind])
        if kind in _NOW and not node.this:
            return Value(*_NOW[kind])
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise refused(_construct(node))
        return handler(self, node)

    def all(self, nodes: list[exp.Expr]) -> list[Value]:
        return [self.of(node) for node in nodes]

    def boolean(self, node: exp.Expr) -> Value:
        value = self.of(node)
        if value.type.kind not in ("bool", "unknown"):
            raise refused(f"a condition of type {value.type}", hint="compare it with something")
        return coerce(value, BOOL)

    def condition(self, node: exp.Expr, is_sure: bool = True) -> Value:
        """A condition that only has to tell true from the rest: there Spark's IN will do.

        `is_sure`: also what is below a NOT is tested as a conjunct of its own.
        """
        inner = node.unnest()
        if isinstance(inner, (exp.And, exp.Or)):
            sure = is_sure and isinstance(inner, exp.And)
            sides = (self.condition(s, sure).sql for s in (inner.this, inner.expression))
            return Value(f"({inner.key.upper().join(f' {s} ' for s in sides).strip()})", BOOL)
        test = _membership(inner)
        if test is None or (test[2] and not is_sure):
            return self.boolean(node)
        found = in_query(self, test[0], test[1])
        return Value(f"(NOT {found.sql})", BOOL) if test[2] else found

    def relation(self, node: exp.Expr) -> Relation:
        return self.query(node, self.known, self.scope)

    def _comparison(self, node: exp.Expr, sign: str) -> Value:
        left, right = node.this, node.expression
        array = _any_or_all(right)
        if array is not None:
            return self._any(sign, left, *array)
        rows = [_row(left), _row(right)]
        if rows[0] is not None and rows[1] is not None:
            return compare_rows(sign, self.all(rows[0]), self.all(rows[1]))
        return compare(sign, self.of(left), self.of(right))

    def _any(self, sign: str, left: exp.Expr, inner: exp.Expr, is_all: bool) -> Value:
        if isinstance(inner, exp.Query):
            if (sign, is_all) in (("=", False), ("<>", True)):
                test = in_value(self, left, inner)
                return Value(f"(NOT {test.sql})", BOOL) if is_all else test
            raise refused(
                f"{sign} {'ALL' if is_all else 'ANY'} of a subquery",
                hint="compare with (SELECT min(...) or max(...)), or use EXISTS",
            )
        if isinstance(inner, exp.Array) and (sign, is_all) in (("=", False), ("<>", True)):
            test = is_in(self.of(left), self.all(inner.expressions))
            return Value(f"(NOT {test.sql})", BOOL) if is_all else test
        return any_of(sign, self.of(left), self.of(inner), is_all)


def _construct(node: exp.Expr) -> str:
    shown = node.sql("postgres")
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _membership(node: exp.Expr) -> tuple[exp.Expr, exp.Expr, bool] | None:
    """What is looked for, the subquery, and whether it must not be there."""
    if isinstance(node, exp.Not):
        inner = _membership(node.this.unnest())
        return (inner[0], inner[1], not inner[2]) if inner is not None else None
    if isinstance(node, exp.In) and node.args.get("query"):
        return node.this, node.args["query"], False
    array = _any_or_all(node.expression) if isinstance(node, (exp.EQ, exp.NEQ)) else None
    if array is not None and isinstance(array[0], exp.Query):
        is_all = isinstance(node, exp.NEQ)
        return (node.this, array[0], is_all) if array[1] == is_all else None
    return None


def _any_or_all(node: exp.Expr) -> tuple[exp.Expr, bool] | None:
    if isinstance(node, (exp.Any, exp.All)):
        return node.this.unnest(), isinstance(node, exp.All)
    if isinstance(node, exp.Anonymous) and node.name.lower() in ("all", "some", "any"):
        return node.expressions[0].unnest(), node.name.lower() == "all"
    return None


def _row(node: exp.Expr) -> list[exp.Expr] | None:
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    if isinstance(node, exp.Anonymous) and node.name.lower() == "row":
        return list(node.expressions)
    return None


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


def _logic(word: str) -> Callable[[Expressions, exp.Expr], Value]:
    def apply(x: Expressions, node: exp.Expr) -> Value:
        return Value(f"({x.boolean(node.this).sql} {word} {x.boolean(node.expression).sql})", BOOL)

    return apply


def _not(x: Expressions, node: exp.Expr) -> Value:
    return Value(f"(NOT {x.boolean(node.this).sql})", BOOL)


def _is(x: Expressions, node: exp.Expr) -> Value:
    if _row(node.this.unnest()) is not None:
        raise refused("IS of a row", hint="test its fields")
    word = "IS NOT" if node.args.get("negate") else "IS"
    tested = node.expression
    if isinstance(tested, exp.Null):
        value = x.of(node.this)
        sql = value.interval.total if value.interval is not None else typed(value).sql
        return Value(f"({sql} {word} NULL)", BOOL)
    if isinstance(tested, exp.Boolean):
        return Value(f"({x.boolean(node.this).sql} {word} {str(tested.this).upper()})", BOOL)
    raise refused(_construct(node))


def _between(x: Expressions, node: exp.Expr) -> Value:
    value, low, high = x.of(node.this), x.of(node.args["low"]), x.of(node.args["high"])

    def within(a: Value, b: Value) -> str:
        return f"{compare('>=', value, a).sql} AND {compare('<=', value, b).sql}"

    if node.args.get("symmetric"):
        return Value(f"(({within(low, high)}) OR ({within(high, low)}))", BOOL)
    return Value(f"({within(low, high)})", BOOL)


def _in(x: Expressions, node: exp.Expr) -> Value:
    if node.args.get("query") is not None:
        return in_value(x, node.this, node.args["query"])
    row = _row(node.this.unnest())
    if row is None:
        return is_in(x.of(node.this), x.all(node.expressions))
    wanted = x.all(row)
    tests = [compare_rows("=", wanted, x.all(_row(item) or [])) for item in node.expressions]
    return Value(f"({' OR '.join(t.sql for t in tests)})", BOOL)


def in_query(x: Expressions, wanted: exp.Expr, query: exp.Expr) -> Value:
    """`x IN (SELECT ...)` as Spark has it: unknown is false, unless it is a condition."""
    values, relation = _looked_up(x, wanted, query)
    shown = ", ".join(v.sql for v in values)
    return Value(f"({shown if len(values) == 1 else f'({shown})'} IN ({relation.sql}))", BOOL)


def in_value(x: Expressions, wanted: exp.Expr, query: exp.Expr) -> Value:
    """`x IN (SELECT ...)` as a value: unknown where nothing is equal but something could be."""
    values, relation = _looked_up(x, wanted, query)
    names = [f"__in{place}" for place in range(len(values))]
    rows = f"SELECT 1 FROM ({relation.sql}) AS looked({', '.join(names)})"
    pairs = [(value.sql, name) for value, name in zip(values, names, strict=True)]
    equal = " AND ".join(f"{a} = {b}" for a, b in pairs)
    possible = " AND ".join(f"({a} = {b} OR {a} IS NULL OR {b} IS NULL)" for a, b in pairs)
    known = f"WHEN EXISTS({rows} WHERE {equal}) THEN TRUE"
    unknown = f"WHEN EXISTS({rows} WHERE {possible}) THEN NULL"
    return Value(f"CASE {known} {unknown} ELSE FALSE END", BOOL)


def _looked_up(x: Expressions, wanted: exp.Expr, query: exp.Expr) -> tuple[list[Value], Relation]:
    row = _row(wanted.unnest())
    values = [typed(v) for v in x.all(row if row is not None else [wanted])]
    relation = x.relation(query)
    if len(values) != len(relation.columns):
        raise InvalidQuery(f"{len(values)} values IN a subquery of {len(relation.columns)} columns")
    for value, (_, type_) in zip(values, relation.columns, strict=True):
        a, b = value.type, type_
        if a.kind != b.kind and not (a.is_number and b.is_number and not a.is_float | b.is_float):
            raise refused(f"{a} IN a subquery of {b}", hint="cast one of them")
    return values, relation


def _exists(x: Expressions, node: exp.Expr) -> Value:
    if not isinstance(node.this, exp.Query):
        raise refused(_construct(node))
    return Value(f"EXISTS({x.relation(node.this).sql})", BOOL)


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


def _like(is_blind: bool) -> Callable[[Expressions, exp.Expr], Value]:
    def apply(x: Expressions, node: exp.Expr) -> Value:
        return _negated(node, _liked(x, node, is_blind, None))

    return apply


def _liked(x: Expressions, node: exp.Expr, is_blind: bool, escape: str | None) -> Value:
    array = _any_or_all(node.expression)
    if array is None:
        return like(x.of(node.this), x.of(node.expression), escape, is_blind)
    items = array[0].expressions if isinstance(array[0], exp.Array) else None
    if not items:
        raise refused("LIKE ANY of something else than ARRAY[...]")
    tests = [like(x.of(node.this), x.of(item), escape, is_blind).sql for item in items]
    return Value(f"({(' AND ' if array[1] else ' OR ').join(tests)})", BOOL)


def _negated(node: exp.Expr, value: Value) -> Value:
    return Value(f"(NOT {value.sql})", BOOL) if node.args.get("negate") else value


def _escape(x: Expressions, node: exp.Expr) -> Value:
    inner = node.this
    if not isinstance(inner, (exp.Like, exp.ILike)) or len(node.expression.name) > 1:
        raise refused(_construct(node))
    return _negated(inner, _liked(x, inner, isinstance(inner, exp.ILike), node.expression.name))


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
    exp.Column: _column, exp.Literal: _literal, exp.RawString: _string, exp.ByteString: _string,
    exp.Concat: _adjacent,
    exp.Null: lambda x, n: Value("NULL", UNKNOWN),
    exp.Boolean: lambda x, n: Value(str(n.this).upper(), BOOL),
    exp.Paren: lambda x, n: x.of(n.this), exp.Neg: lambda x, n: negate(x.of(n.this)),
    exp.And: _logic("AND"), exp.Or: _logic("OR"), exp.Not: _not, exp.Is: _is,
    exp.Between: _between, exp.In: _in, exp.Exists: _exists, exp.Subquery: _subquery,
    exp.Case: _case, exp.Cast: _cast, exp.Interval: _interval,
    exp.Like: _like(False), exp.ILike: _like(True), exp.Escape: _escape,
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
    exp.Collate: _collate, exp.BitwiseNot: _complement,
    exp.Anonymous: _function, exp.GroupConcat: _function, exp.Filter: _filter,
    exp.WithinGroup: _within_group, exp.Window: window,
}  # fmt: skip
