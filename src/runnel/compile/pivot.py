"""PIVOT: a GROUP BY whose aggregates are filtered by the values of the pivoted columns.

Everything that neither the aggregates nor FOR mention is grouped by. Spark shows NULL where a group
has no row of a value, also for COUNT, if every aggregate is a number or a boolean; COUNT is 0 there
if one of them is not, since then it filters instead of looking up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.algebra.nodes import Node
from runnel.compile.aggregates import is_aggregate
from runnel.compile.dialect import SparkSql
from runnel.compile.grouping import build_grouping
from runnel.compile.lifting import with_arguments
from runnel.compile.pivot_names import column_name, value_name
from runnel.compile.scalars import mark, resolve, to_scalar
from runnel.compile.scope import Entry, Scope
from runnel.compile.typing import decimal_parts
from runnel.compile.unpivot import unpivoted
from runnel.errors import NotDifferentiable

if TYPE_CHECKING:
    from runnel.compile.build import Builder
    from runnel.compile.select import SelectItem

_LOOKED_UP = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "boolean"})
_NULL_OF_NOTHING = (exp.Sum, exp.Avg, exp.Min, exp.Max)


def pivoted(
    builder: Builder, node: Node, scope: Scope, pivots: Sequence[exp.Pivot]
) -> tuple[Node, Scope]:
    """Apply PIVOT and UNPIVOT clauses, one after the other."""
    for pivot in pivots:
        if pivot.args.get("unpivot"):
            node, scope = unpivoted(builder, node, scope, pivot)
        else:
            node, scope = _Pivot.of(builder, node, scope, pivot).build(builder)
    return node, scope


def pivots_of(join: exp.Join) -> tuple[exp.Join, list[exp.Pivot]]:
    """The join, and the clauses behind it: they concern all that is joined, not its last table."""
    pivots = [*(join.this.args.get("pivots") or ()), *(join.args.get("pivots") or ())]
    if not pivots:
        return join, []
    join = join.copy()
    join.this.set("pivots", None)
    return join, pivots


@dataclass(frozen=True, slots=True)
class _Pivot:
    """What is pivoted: columns compared with values, aggregates (resolved) with their names."""

    node: Node
    scope: Scope
    columns: list[exp.Expr]
    values: list[tuple[str | None, list[exp.Expr]]]
    aggregates: list[tuple[str | None, exp.Expr]]
    alias: str | None

    @staticmethod
    def of(builder: Builder, node: Node, scope: Scope, pivot: exp.Pivot) -> _Pivot:
        fields = pivot.args["fields"]
        if len(fields) != 1 or not isinstance(fields[0], exp.In) or pivot.args.get("group"):
            raise NotDifferentiable(
                f"this form of PIVOT: {pivot.sql('spark')[:60]}",
                hint="write PIVOT (aggregates FOR column IN (constants)), or one aggregate with "
                "FILTER (WHERE ...) for each value",
            )
        written, compared = _several(fields[0].this), fields[0].expressions
        columns = [resolve(c, scope) for c in written]
        values = [_value(v, len(columns)) for v in compared]
        _refuse_repeated(values)
        aggregates = [
            (column_name(a, len(pivot.expressions)), resolve(a.unalias(), scope))
            for a in pivot.expressions
        ]
        return _Pivot(node, scope, columns, values, aggregates, pivot.alias or None)

    def build(self, builder: Builder) -> tuple[Node, Scope]:
        from runnel.compile.select import SelectItem, project

        keys = self._keys()
        select = exp.Select(expressions=[])
        if keys:
            select.set("group", exp.Group(expressions=[mark(k.column.name) for k in keys]))
        items = [SelectItem(k.name, mark(k.column.name)) for k in keys] + self._items(builder)
        grouped = build_grouping(builder, select, self.node, self.scope, items)
        node, columns = project(builder, grouped.node, [i.expression for i in grouped.items])
        qualifiers = [k.qualifier for k in keys] + [None] * (len(items) - len(keys))
        entries = [
            Entry(self.alias or qualifier, item.name, column)
            for qualifier, item, column in zip(qualifiers, items, columns, strict=True)
        ]
        return node, Scope(tuple(entries))

    def _keys(self) -> list[Entry]:
        mentioned = {
            name
            for e in (*self.columns, *(a for _, a in self.aggregates))
            for name in to_scalar(e).columns
        }
        return [e for e in self.scope.star() if e.column.name not in mentioned]

    def _items(self, builder: Builder) -> list[SelectItem]:
        from runnel.compile.select import SelectItem

        is_looked_up = self._is_looked_up(builder)
        types = builder.types_of([to_scalar(c) for c in self.columns])
        items = []
        for name, values in self.values:
            condition = exp.and_(
                *(_same(c, v, t) for c, v, t in zip(self.columns, values, types, strict=True))
            )
            for suffix, aggregate in self.aggregates:
                shown = name if suffix == "" or None in (name, suffix) else f"{name}_{suffix}"
                item = _filtered(aggregate, condition)
                if is_looked_up and not isinstance(aggregate, _NULL_OF_NOTHING):
                    item = _where_there_is_one(item, condition)
                items.append(SelectItem(shown if suffix is not None else None, item))
        return items

    def _is_looked_up(self, builder: Builder) -> bool:
        scalars = [to_scalar(a) for _, a in self.aggregates]
        types = builder.types_of(scalars)
        return all(t in _LOOKED_UP or decimal_parts(t) for t in types)


def _several(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _value(node: exp.Expr, width: int) -> tuple[str | None, list[exp.Expr]]:
    """A value of IN: what its columns are called by, and what each FOR column must be."""
    inner = node.this if isinstance(node, exp.PivotAlias) else node
    values = _several(inner.unnest())
    if len(values) != width or inner.find(exp.Column, exp.Query, exp.PivotAny):
        raise NotDifferentiable(
            f"PIVOT with {inner.sql('spark')[:60]} among its values", hint="list constants"
        )
    return value_name(node, values), values


def _refuse_repeated(values: list[tuple[str | None, list[exp.Expr]]]) -> None:
    """Spark fills only one of two equal values."""
    texts = [tuple(v.sql(SparkSql) for v in several) for _, several in values]
    if len(set(texts)) < len(texts):
        raise NotDifferentiable("PIVOT with a value that is listed twice", hint="list it once")


def _same(column: exp.Expr, value: exp.Expr, type_: str) -> exp.Expr:
    cast = exp.Cast(this=value.copy(), to=exp.DataType.build(type_, dialect=SparkSql))
    return exp.NullSafeEQ(this=column.copy(), expression=cast)


def _filtered(node: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """The expression with every aggregate in it restricted to the rows of a value."""
    if isinstance(node, exp.Filter):
        condition = exp.and_(condition.copy(), node.expression.this.copy())
        node = node.this
    if is_aggregate(node) and not isinstance(node, exp.ArraySort):
        return exp.Filter(this=node.copy(), expression=exp.Where(this=condition.copy()))
    return with_arguments(node.copy(), lambda inner: _filtered(inner, condition))


def _where_there_is_one(item: exp.Expr, condition: exp.Expr) -> exp.Expr:
    count = exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=condition.copy()))
    is_there = exp.GT(this=count, expression=exp.Literal.number(0))
    return exp.Paren(this=exp.case().when(is_there, item))
