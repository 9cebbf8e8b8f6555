"""Conditions: comparisons, IN, EXISTS, ANY and ALL, LIKE, BETWEEN, IS."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.compile.postgres.casts import typed
from runnel.compile.postgres.comparisons import SIGNS, any_of, compare, compare_rows, is_in
from runnel.compile.postgres.patterns import like
from runnel.compile.postgres.types import BOOL
from runnel.compile.postgres.values import Value, construct, refused
from runnel.errors import InvalidQuery

if TYPE_CHECKING:
    from runnel.compile.postgres.expressions import Expressions
    from runnel.compile.postgres.relation import Relation


def condition(x: Expressions, node: exp.Expr, is_sure: bool = True) -> Value:
    """A condition that only has to tell true from the rest: there Spark's IN will do.

    `is_sure`: also what is below a NOT is tested as a conjunct of its own.
    """
    inner = node.unnest()
    if isinstance(inner, (exp.And, exp.Or)):
        sure = is_sure and isinstance(inner, exp.And)
        sides = (condition(x, s, sure).sql for s in (inner.this, inner.expression))
        return Value(f"({inner.key.upper().join(f' {s} ' for s in sides).strip()})", BOOL)
    test = _membership(inner)
    if test is None or (test[2] and not is_sure):
        return x.boolean(node)
    found = in_query(x, test[0], test[1])
    return Value(f"(NOT {found.sql})", BOOL) if test[2] else found


def comparison(x: Expressions, node: exp.Expr) -> Value:
    """`a = b` and the like, also of rows and with ANY or ALL."""
    sign = SIGNS[type(node)]
    left, right = node.this, node.expression
    array = _any_or_all(right)
    if array is not None:
        return _any(x, sign, left, *array)
    rows = [_row(left), _row(right)]
    if rows[0] is not None and rows[1] is not None:
        return compare_rows(sign, x.all(rows[0]), x.all(rows[1]))
    return compare(sign, x.of(left), x.of(right))


def _any(x: Expressions, sign: str, left: exp.Expr, inner: exp.Expr, is_all: bool) -> Value:
    if isinstance(inner, exp.Array) and (sign, is_all) in (("=", False), ("<>", True)):
        test = is_in(x.of(left), x.all(inner.expressions))
        return Value(f"(NOT {test.sql})", BOOL) if is_all else test
    return any_of(sign, x.of(left), x.of(inner), is_all)


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
    raise refused(construct(node))


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
        raise refused(construct(node))
    return Value(f"EXISTS({x.relation(node.this).sql})", BOOL)


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
        raise refused(construct(node))
    return _negated(inner, _liked(x, inner, isinstance(inner, exp.ILike), node.expression.name))


def _membership(node: exp.Expr) -> tuple[exp.Expr, exp.Expr, bool] | None:
    """What is looked for, the subquery, and whether it must not be there."""
    if isinstance(node, exp.Not):
        inner = _membership(node.this.unnest())
        return (inner[0], inner[1], not inner[2]) if inner is not None else None
    if isinstance(node, exp.In) and node.args.get("query"):
        return node.this, node.args["query"], False
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


HANDLERS: dict[type[exp.Expr], Callable[[Expressions, exp.Expr], Value]] = {
    **dict.fromkeys(SIGNS, comparison),
    exp.And: _logic("AND"), exp.Or: _logic("OR"), exp.Not: _not, exp.Is: _is,
    exp.Between: _between, exp.In: _in, exp.Exists: _exists,
    exp.Like: _like(False), exp.ILike: _like(True), exp.Escape: _escape,
}  # fmt: skip
