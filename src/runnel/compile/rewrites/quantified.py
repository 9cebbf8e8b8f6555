"""x > ANY (SELECT ...) and ALL, which Spark has not, as comparisons with the subquery's bounds.

    x = ANY S       x IN S                          x <> ALL S      x NOT IN S
    x > ANY S       x > min(S)                      x > ALL S       x > max(S), or S is empty
    x <> ANY S      x <> min(S) OR x <> max(S)      x = ALL S       x = min(S) AND x = max(S)

with NULL where a NULL of S, or x, leaves it open. Where only TRUE counts that part is left out.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp

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
    found = [n for n in tree.find_all(exp.Any, exp.All) if _is_quantified(n)]
    try:
        for node in reversed(found):
            with at(node):
                _rewrite(node)
    except UserError as error:
        point(error, query)
        raise
    return tree.sql(SparkSql) if found else query


def _is_quantified(node: exp.Expr) -> bool:
    is_over_query = isinstance(node.this, exp.Query)
    return is_over_query and isinstance(node.parent, exp.Predicate) and node.arg_key == "expression"


def _rewrite(node: exp.Expr) -> None:
    comparison = node.parent
    assert comparison is not None
    is_all, query = isinstance(node, exp.All), node.this.unnest()
    negated, equal = (exp.NEQ, exp.EQ) if is_all else (exp.EQ, exp.NEQ)
    if isinstance(comparison, negated):
        member = exp.In(this=comparison.this.copy(), query=exp.Subquery(this=query.copy()))
        comparison.replace(exp.Paren(this=exp.Not(this=member)) if is_all else member)
        return
    sign = _SIGNS.get(type(comparison))
    if sign is None or isinstance(comparison.this, exp.Tuple):
        raise InvalidQuery(
            f"{'ALL' if is_all else 'ANY'} over a subquery in this comparison",
            hint="compare single values by = <> < <= > or >=, or write it with EXISTS",
        )
    least = (sign in (">", ">=") and not is_all) or (sign in ("<", "<=") and is_all)
    bounds = ("MIN", "MAX") if isinstance(comparison, equal) else ("MIN" if least else "MAX",)
    both = " AND " if is_all else " OR "
    tests = both.join(f"__x {sign} (SELECT {b}(__y) FROM __s AS __q(__y))" for b in bounds)
    text = (_all if is_all else _any)(f"({tests})", _is_deciding(comparison))
    comparison.replace(_filled(text, comparison.this, query))


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


def _filled(text: str, value: exp.Expr, query: exp.Expr) -> exp.Expr:
    """The text with the value for __x and the subquery for __s."""

    def fill(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name == "__x":
            return exp.Paren(this=value.copy())
        if isinstance(node, exp.Table) and node.name == "__s":
            return exp.Subquery(this=query.copy(), alias=node.args["alias"].copy())
        return node

    return sqlglot.parse_one(text, dialect=SparkSql).transform(fill)
