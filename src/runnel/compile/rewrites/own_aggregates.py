"""A user's aggregate becomes a function of the sorted list of the group's values.

my_agg(x)                       my_agg(array_sort(collect_list(x)))
my_agg(x, y)                    my_agg(array_sort(collect_list(struct(x, y))))
my_agg(x) FILTER (WHERE c)      my_agg(array_sort(collect_list(x) FILTER (WHERE c)))
my_agg(x) OVER (...)            my_agg(array_sort(collect_list(x) OVER (...)))

So it is kept as a list is, and its value does not depend on the order in which rows arrive.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from runnel.compile.dialect import SparkSql
from runnel.compile.parse import parse

_AROUND = (exp.Filter, exp.Window)


def own_aggregates(query: str, names: Collection[str]) -> str:
    """The query with each call of these aggregates written so; the same text when it has none."""
    if not names:
        return query
    tree = parse(query)
    calls = [n for n in tree.find_all(exp.Anonymous) if n.name.lower() in names]
    for call in reversed(calls):
        _rewrite(call)
    return tree.sql(SparkSql) if calls else query


def _rewrite(call: exp.Anonymous) -> None:
    shown = f"{call.name}({', '.join(a.sql(SparkSql) for a in call.expressions)})"
    collected: exp.Expr = exp.Anonymous(this="collect_list", expressions=[_argument(call)])
    whole: exp.Expr = call
    while isinstance(whole.parent, _AROUND) and whole.arg_key == "this":
        whole = whole.parent
    if whole is not call:
        call.replace(collected)
        collected = whole.copy()
    made = exp.Anonymous(
        this=call.this,
        expressions=[exp.Anonymous(this="array_sort", expressions=[collected])],
    )
    is_item = isinstance(whole.parent, exp.Select) and whole.arg_key == "expressions"
    whole.replace(exp.alias_(made, shown, quoted=True) if is_item else made)


def _argument(call: exp.Anonymous) -> exp.Expr:
    arguments: list[exp.Expr] = [a.copy() for a in call.expressions]
    if len(arguments) == 1:
        return arguments[0]
    return exp.Anonymous(this="struct", expressions=arguments)
