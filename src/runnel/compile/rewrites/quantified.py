"""x > ANY (SELECT ...) and ALL, which Spark has not, as comparisons with the subquery's bounds.

    x = ANY S       x IN S                          x <> ALL S      x NOT IN S
    x > ANY S       x > min(S)                      x > ALL S       x > max(S), or S is empty
    x <> ANY S      x <> min(S) OR x <> max(S)      x = ALL S       x = min(S) AND x = max(S)

with NULL where a NULL of S, or x, leaves it open. Where only TRUE counts that part is left out.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from runnel.compile.dialect import SparkSql
from runnel.compile.parse import parse
from runnel.compile.places import at, point
from runnel.errors import InvalidQuery, UserError

_SIGNS: dict[type[exp.Expr], str] = {
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.EQ: "=",
    exp.NEQ: "<>",
}
_DECIDING = (exp.Where, exp.Having, exp.Qualify)


def without_quantifiers(query: str) -> str:
    """The query without ANY, SOME and ALL over subqueries; the same text when it has none."""
    tree = parse(query)
    try:
        return tree.sql(SparkSql) if rewrite_quantifiers(tree, SparkSql) else query
    except UserError as error:
        point(error, query)
        raise


def rewrite_quantifiers(tree: exp.Query, dialect: type[Dialect]) -> bool:
    """Change the tree; whether there was anything to change."""
    found = [node for node in tree.walk() if _quantified(node) is not None]
    for node in reversed(found):
        with at(node):
            _rewrite(node, dialect)
    return bool(found)


def _quantified(node: exp.Expr) -> tuple[exp.Expr, bool] | None:
    """The subquery that a value is compared with, and whether with all of its rows."""
    if not isinstance(node.parent, exp.Predicate) or node.arg_key != "expression":
        return None
    inner, word = node.this, node.key
    if isinstance(node, exp.Anonymous):
        inner, word = next(iter(node.expressions), None), node.name.lower()
    if word not in ("any", "some", "all") or not isinstance(inner, exp.Query):
        return None
    return inner.unnest(), word == "all"


def _rewrite(node: exp.Expr, dialect: type[Dialect]) -> None:
    comparison, found = node.parent, _quantified(node)
    assert comparison is not None
    assert found is not None
    query, is_all = found
    member, other = (exp.NEQ, exp.EQ) if is_all else (exp.EQ, exp.NEQ)
    if isinstance(comparison, member):
        inside = exp.In(this=comparison.this.copy(), query=exp.Subquery(this=query.copy()))
        comparison.replace(exp.Paren(this=exp.Not(this=inside)) if is_all else inside)
        return
    sign = _SIGNS.get(type(comparison))
    if sign is None or isinstance(comparison.this, exp.Tuple):
        raise InvalidQuery(
            f"{'ALL' if is_all else 'ANY'} over a subquery in this comparison",
            hint="compare single values by = <> < <= > or >=, or write it with EXISTS",
        )
    bound = "MIN" if (sign in (">", ">=")) is not is_all else "MAX"
    bounds = ("MIN", "MAX") if isinstance(comparison, other) else (bound,)
    both = " AND " if is_all else " OR "
    tests = both.join(f"__x {sign} (SELECT {b}(__y) FROM __s AS __q(__y))" for b in bounds)
    text = (_all if is_all else _any)(f"({tests})", _is_deciding(comparison))
    comparison.replace(_filled(sqlglot.parse_one(text, dialect=dialect), comparison.this, query))


def _any(test: str, is_deciding: bool) -> str:
    if is_deciding:
        return test
    return (
        f"CASE WHEN {test} THEN TRUE WHEN {_count('COUNT(*)')} = 0 THEN FALSE "
        f"WHEN __x IS NULL OR {_count('COUNT(*) - COUNT(__y)')} > 0 THEN NULL ELSE FALSE END"
    )


def _all(test: str, is_deciding: bool) -> str:
    none, unknown = f"{_count('COUNT(*)')} = 0", _count("COUNT(*) - COUNT(__y)")
    if is_deciding:
        return f"({none} OR ({unknown} = 0 AND {test}))"
    return (
        f"CASE WHEN {none} THEN TRUE WHEN NOT {test} THEN FALSE "
        f"WHEN {unknown} > 0 THEN NULL ELSE {test} END"
    )


def _count(counted: str) -> str:
    return f"(SELECT {counted} FROM __s AS __q(__y))"


def _is_deciding(node: exp.Expr) -> bool:
    """Whether it is one of the conditions of a clause, where NULL counts as FALSE."""
    inside = node.parent
    while isinstance(inside, (exp.And, exp.Paren)):
        inside = inside.parent
    return isinstance(inside, _DECIDING)


def _filled(template: exp.Expr, value: exp.Expr, query: exp.Expr) -> exp.Expr:
    """The template with the value for __x and the subquery for __s."""

    def fill(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name == "__x":
            return exp.Paren(this=value.copy())
        if isinstance(node, exp.Table) and node.name == "__s":
            return exp.Subquery(this=query.copy(), alias=node.args["alias"].copy())
        return node

    return template.transform(fill)
