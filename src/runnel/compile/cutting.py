"""Groupings inside a query that can be tables of their own, and the query that reads them there.

    WITH r AS (SELECT k, SUM(x) AS s FROM t GROUP BY k) SELECT ... FROM r, r AS q
    ->  WITH r AS (SELECT `k` AS `k`, `s` AS `s` FROM part) SELECT ... FROM r, r AS q

Taken is what has no grouping inside it and names no CTE of the query around it. Whether it names
columns of the query around it is found out by compiling it alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from runnel.compile.aggregates import is_aggregate
from runnel.compile.cut_correlated import correlated_grouping
from runnel.compile.cut_places import Grouping, Known, is_read_by_name
from runnel.compile.grouping import is_grouped
from runnel.compile.parse import parse
from runnel.compile.passed_names import column_by_passed_name
from runnel.compile.rewrites.determinism import written
from runnel.compile.sources import is_cte
from runnel.model.names import TableName

_CLAUSES = frozenset("with_ expressions distinct from_ joins where group having".split())


def inner_groupings(query: str, known: Known) -> tuple[str, ...]:
    """The groupings inside a query, as queries of their own; one that is used twice once.

    `known` are the columns of the tables that it reads.
    """
    return tuple(dict.fromkeys(grouping.text for grouping in _groupings(parse(query), known)))


def read_from_tables(query: str, known: Known, tables: Mapping[str, TableName]) -> str:
    """The query with groupings, by their text, read from tables."""
    tree = parse(query)
    for grouping in list(_groupings(tree, known)):
        if (table := tables.get(grouping.text)) is not None:
            grouping.place.replace(grouping.reading(table))
    return written(tree)


def _groupings(tree: exp.Query, known: Known) -> Iterator[Grouping]:
    # What is read elsewhere is written anew.
    if column_by_passed_name(tree) is not None:
        return
    for select in tree.find_all(exp.Select):
        if select is not tree and _is_taken(select):
            found = correlated_grouping(select, known) or _uncorrelated(select)
            if found is not None:
                yield found


def _uncorrelated(select: exp.Select) -> Grouping | None:
    alone = _named(select.copy(), by_name=is_read_by_name(select))
    if alone is None or not _stands_alone(select, alone):
        return None
    names = [item.alias_or_name for item in alone.expressions]
    columns = [exp.alias_(exp.column(n, quoted=True), n, quoted=True) for n in names]
    return Grouping(select, alone, exp.select(*columns))


def _is_taken(select: exp.Select) -> bool:
    if any(value and name not in _CLAUSES for name, value in select.args.items()):
        return False
    if not _is_dear(select) or select.find(exp.Window):
        return False
    others = (other for other in select.find_all(exp.Select) if other is not select)
    return not any(is_grouped(other) or other.args.get("distinct") for other in others)


def _is_dear(select: exp.Select) -> bool:
    """Whether it has to be computed for whole groups.

    Where only the question is whether a value is among its rows, DISTINCT changes nothing.
    """
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        return False
    if distinct is not None or (select.args.get("group") and not _aggregates(select)):
        return is_read_by_name(select)
    return is_grouped(select)


def _aggregates(select: exp.Select) -> bool:
    expressions = [*select.expressions, *filter(None, [select.args.get("having")])]
    nodes = (n for e in expressions for n in e.walk(prune=lambda n: isinstance(n, exp.Query)))
    return any(is_aggregate(node) for node in nodes)


def _named(select: exp.Select, *, by_name: bool) -> exp.Select | None:
    """The SELECT with a name for each column; None when that would be another than it has."""
    items: list[exp.Expr] = []
    for number, item in enumerate(select.expressions):
        if item.is_star:
            return None
        if isinstance(item, (exp.Alias, exp.Column)):
            items.append(item)
        elif by_name:
            return None
        else:
            items.append(exp.alias_(item.copy(), f"_c{number}"))
    names = [item.alias_or_name.lower() for item in items]
    if len(set(names)) < len(names) or not all(names):
        return None
    select.set("expressions", items)
    return select


def _stands_alone(select: exp.Select, alone: exp.Select) -> bool:
    """Whether every name of a table means the same without the query around it."""
    here, there = select.find_all(exp.Table), alone.find_all(exp.Table)
    return all(is_cte(one) == is_cte(two) for one, two in zip(here, there, strict=True))
