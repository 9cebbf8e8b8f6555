"""Subqueries of a SELECT that rows or its groups ask for, and which of the two ask.

They stand in the select list, GROUP BY, HAVING, QUALIFY and the ORDER BY of a LIMIT.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from runnel.compile.aggregates import is_aggregate
from runnel.compile.grouping import is_grouped, is_over_window
from runnel.compile.lifting import fill, is_slot, lift
from runnel.compile.ordering import is_limited
from runnel.compile.scalars import marked

_Pending = dict[str, exp.Expr]


def lifted_select(select: exp.Select) -> tuple[exp.Select, _Pending, _Pending]:
    """The SELECT without these subqueries; those that each row asks for, those each group does."""
    group, order = select.args.get("group"), select.args.get("order")
    is_ordered = order is not None and is_limited(select)
    parts = [group, select.args.get("having"), select.args.get("qualify")]
    if not _has_subqueries([*select.expressions, *parts, *([order] if is_ordered else [])]):
        return select, {}, {}
    copy = select.copy()
    shown, pending = _lift_all(copy.expressions)
    copy.set("expressions", shown)
    keys: list[exp.Expr] = []
    asked: _Pending = {}
    if group := copy.args.get("group"):
        keys, asked = _lift_all(group.expressions)
        group.set("expressions", keys)
    for clause in ("having", "qualify"):
        if part := copy.args.get(clause):
            (condition,), found = _lift_all([part.this])
            part.set("this", condition)
            pending |= found
            shown = [*shown, condition]
    if is_ordered:
        places, found = _lift_all(copy.args["order"].expressions)
        copy.args["order"].set("expressions", places)
        pending |= found
        shown = [*shown, *places]
    if not is_grouped(select):
        return copy, pending, {}
    early = set(_in_aggregates(shown)) | set(_slots(_grouped_items(copy, keys)))
    early |= {slot for slot, query in pending.items() if query in asked.values()}
    for_rows = asked | {slot: query for slot, query in pending.items() if slot in early}
    return copy, for_rows, {s: query for s, query in pending.items() if s not in early}


def filled_select(select: exp.Select, values: Mapping[str, exp.Expr]) -> exp.Select:
    """The SELECT with its slots filled."""
    filled = fill(select, values)
    assert isinstance(filled, exp.Select)
    return filled


def _has_subqueries(nodes: Iterable[exp.Expr | None]) -> bool:
    return any(node.find(exp.Query) for node in nodes if node is not None)


def _lift_all(nodes: Iterable[exp.Expr]) -> tuple[list[exp.Expr], _Pending]:
    shown: list[exp.Expr] = []
    pending: _Pending = {}
    for node in nodes:
        lifted, found = lift(node)
        shown.append(lifted)
        pending |= found
    return shown, pending


def _slots(nodes: Iterable[exp.Expr]) -> Iterator[str]:
    for node in nodes:
        for column in node.find_all(exp.Column):
            if is_slot(column):
                yield marked(column) or ""


def _in_aggregates(nodes: Iterable[exp.Expr]) -> Iterator[str]:
    for node in nodes:
        calls = (inner for inner in node.walk() if is_aggregate(inner))
        yield from _slots(call for call in calls if not is_over_window(call))


def _grouped_items(select: exp.Select, keys: list[exp.Expr]) -> Iterator[exp.Expr]:
    """Items of the select list that GROUP BY names by their place or alias."""
    group = select.args.get("group")
    if group is not None and group.args.get("all"):
        yield from select.expressions
    for key in keys:
        if isinstance(key, exp.Literal) and not key.is_string:
            yield from select.expressions[int(key.name) - 1 : int(key.name)]
        elif isinstance(key, exp.Column) and not key.table:
            yield from (e for e in select.expressions if e.alias.lower() == key.name.lower())
