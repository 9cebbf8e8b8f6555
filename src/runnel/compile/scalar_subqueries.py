"""A scalar subquery becomes a column: a join with its single row, or with its row for each key.

Without a reference to the outer query it is one row, which every row meets. With one, which must
be an equality, it is grouped by its side of that; a row without a group has the value that the
aggregates have over nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from runnel.algebra.nodes import (
    Aggregate,
    Call,
    InnerJoin,
    JoinKind,
    Node,
    OuterJoin,
    Project,
)
from runnel.compile.clauses import refuse_other_clauses
from runnel.compile.grouping import build_grouping, is_grouped
from runnel.compile.scalars import mark, to_scalar
from runnel.compile.scope import Scope
from runnel.compile.select import project, refuse_whole, rows_of, select_items
from runnel.compile.subqueries import refuse_distant_columns
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder

_TOO_MANY = "a subquery used as a value returned more than one row"


def attach_scalar(
    builder: Builder, node: Node, scope: Scope, query: exp.Expr, ctes: Mapping[str, Any]
) -> tuple[Node, exp.Expr]:
    """The rows with the subquery's value, and the expression that stands for it."""
    query = query.unnest()
    if isinstance(query, exp.Select):
        refuse_other_clauses(query)
        inner = builder.with_(query, ctes)
        rows, inner_scope, correlated = rows_of(builder, query, inner, scope)
        if correlated:
            refuse_whole(query)
            return _Correlated(builder, node, query, rows, inner_scope, correlated).attach()
    relation = builder.query(query, ctes)
    if len(relation.outputs) != 1:
        raise InvalidQuery(f"a subquery used as a value has {len(relation.outputs)} columns")
    single, value = relation.node, relation.outputs[0][1]
    if not _is_one_row(single):
        single, value = _single(builder, single, (), value)
    return InnerJoin((node, single), ()), mark(value.name)


class _Correlated:
    """One that compares something of its own with something of the outer query."""

    def __init__(
        self, builder: Builder, node: Node, select: exp.Select, rows: Node, scope: Scope,
        correlated: list[exp.Expr],
    ) -> None:  # fmt: skip
        self.builder, self.node, self.select = builder, node, select
        self.rows, self.scope = rows, scope
        own = {c.name for c in rows.columns}
        self.pairs = [_pair(c, own) for c in correlated]

    def attach(self) -> tuple[Node, exp.Expr]:
        items = select_items(self.select, self.scope)
        if len(items) != 1:
            raise InvalidQuery(f"a subquery used as a value has {len(items)} columns")
        if not is_grouped(self.select):
            return self._attach_single(items[0].expression)
        if self.select.args.get("group") or self.select.args.get("having"):
            raise NotDifferentiable("GROUP BY or HAVING in a correlated scalar subquery")
        keys = [pair.inner for pair in self.pairs]
        grouped = build_grouping(self.builder, self.select, self.rows, self.scope, items, keys)
        shown = [*(mark(k.name) for k in grouped.keys), grouped.items[0].expression, exp.true()]
        right, columns = project(self.builder, grouped.node, shown)
        joined = self._join(right, columns[: len(keys)])
        value, flag = mark(columns[-2].name), mark(columns[-1].name)
        empty = grouped.empty[0].expression
        if isinstance(empty, exp.Null):
            return joined, value
        return joined, exp.Paren(this=exp.case().when(flag, value).else_(empty))

    def _attach_single(self, value: exp.Expr) -> tuple[Node, exp.Expr]:
        keys = [pair.inner for pair in self.pairs]
        rows, columns = project(self.builder, self.rows, [*keys, value])
        right, result = _single(self.builder, rows, columns[:-1], columns[-1])
        return self._join(right, right.columns[: len(keys)]), mark(result.name)

    def _join(self, right: Node, keys: tuple[Column, ...]) -> Node:
        conditions = tuple(
            to_scalar(pair.kind(this=mark(key.name), expression=pair.outer))
            for pair, key in zip(self.pairs, keys, strict=True)
        )
        refuse_distant_columns(conditions, self.node, right)
        return OuterJoin(JoinKind.LEFT, self.node, right, conditions)


@dataclass(frozen=True, slots=True)
class _Pair:
    """An equality between an expression of the subquery and one of the outer query."""

    kind: type[exp.Expr]
    inner: exp.Expr
    outer: exp.Expr


def _pair(condition: exp.Expr, own: set[str]) -> _Pair:
    condition = condition.unnest()
    if isinstance(condition, (exp.EQ, exp.NullSafeEQ)):
        for inner, outer in (
            (condition.left, condition.right),
            (condition.right, condition.left),
        ):
            reads, others = to_scalar(inner).reads, to_scalar(outer).reads
            if reads and reads <= own and not others & own:
                return _Pair(type(condition), inner.unnest(), outer)
    raise NotDifferentiable(
        "a scalar subquery that refers to the outer query by something else than an equality",
        hint="write it as a join with GROUP BY, or use refresh mode FULL or AUTO",
    )


def _is_one_row(node: Node) -> bool:
    while isinstance(node, Project):
        node = node.input
    return isinstance(node, Aggregate) and node.is_global


def _single(
    builder: Builder, rows: Node, keys: tuple[Column, ...], value: Column
) -> tuple[Node, Column]:
    """The keys, and the only value for each; the program fails where there are more."""
    calls = (
        Call("count_star", (), builder.fresh("bigint")),
        Call("max", (value,), builder.fresh(value.type)),
    )
    grouped = Aggregate(rows, tuple(k.name for k in keys), calls, is_global=not keys)
    count, only = (mark(call.output.name) for call in calls)
    error = exp.Anonymous(this="raise_error", expressions=[exp.Literal.string(_TOO_MANY)])
    checked = exp.case().when(exp.GT(this=count, expression=exp.Literal.number(1)), error)
    right, columns = project(builder, grouped, [*(mark(k.name) for k in keys), checked.else_(only)])
    return right, columns[-1]
