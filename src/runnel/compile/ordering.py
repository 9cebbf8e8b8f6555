"""ORDER BY ... LIMIT: the first rows in an order that the output columns complete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.algebra.nodes import Node, Project, SortKey, TopK, identity
from runnel.compile.grouping import aliases_of
from runnel.compile.relation import Relation
from runnel.compile.scalars import mark, resolve
from runnel.compile.scope import Scope
from runnel.compile.windows import refuse_unorderable, sort_key
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder
    from runnel.compile.select import SelectItem


def is_limited(query: exp.Expr) -> bool:
    return bool(query.args.get("limit") or query.args.get("offset"))


@dataclass(frozen=True, slots=True)
class Ordering:
    """The keys of ORDER BY, resolved, and how many rows to skip and to take."""

    query: exp.Expr
    keys: tuple[tuple[exp.Expr, exp.Ordered], ...]
    limit: int | None
    offset: int

    @staticmethod
    def of(query: exp.Expr, scope: Scope, items: list[SelectItem]) -> Ordering | None:
        """What a query with a LIMIT asks for; the names of its output win over those of FROM."""
        if not is_limited(query):
            return None
        order = query.args.get("order")
        if order is None:
            raise InvalidQuery("LIMIT or OFFSET without ORDER BY is not deterministic")
        keys = [(e, o) for o in order.expressions for e in _key(o.this, scope, items)]
        return Ordering(query, tuple(keys), _number(query, "limit"), _number(query, "offset") or 0)

    def places(self, expressions: list[exp.Expr]) -> list[int]:
        """Where each key stands, if the expressions are the output and then the keys."""
        shown = len(expressions) - len(self.keys)
        return [
            expressions.index(key) if key in expressions[:shown] else shown + i
            for i, key in enumerate(expressions[shown:])
        ]

    def apply(
        self, builder: Builder, node: Node, outputs: tuple[Column, ...], keys: tuple[Column, ...]
    ) -> Node:
        """The first rows; rows that tie are ordered by the output columns, left to right."""
        order: dict[str, SortKey] = {}
        for column, (_, ordered) in zip(keys, self.keys, strict=True):
            refuse_unorderable(node, column.name, "ORDER BY ... LIMIT")
            order.setdefault(column.name, sort_key(column.name, ordered))
        for column in outputs:
            refuse_unorderable(node, column.name, "ORDER BY ... LIMIT")
            order.setdefault(column.name, SortKey(column.name))
        places = range(1, len(outputs) + 1)
        builder.ties.note(self.query, [exp.Literal.number(place) for place in places])
        top = TopK(node, tuple(order.values()), self.limit, self.offset)
        if top.columns == outputs:
            return top
        return Project(top, identity(outputs))


def limit_relation(builder: Builder, query: exp.Expr, relation: Relation) -> Relation:
    """ORDER BY ... LIMIT after a set operation or a query in parentheses."""
    from runnel.compile.select import SelectItem, project

    items = [SelectItem(name, mark(c.name)) for name, c in relation.outputs]
    ordering = Ordering.of(query, Scope(()), items)
    if ordering is None:
        return relation
    expressions = [*(i.expression for i in items), *(key for key, _ in ordering.keys)]
    node, columns = project(builder, relation.node, expressions)
    places = ordering.places(expressions)
    outputs = columns[: len(items)]
    node = ordering.apply(builder, node, outputs, tuple(columns[place] for place in places))
    names = (name for name, _ in relation.outputs)
    return Relation(node, tuple(zip(names, outputs, strict=True)))


def _key(node: exp.Expr, scope: Scope, items: list[SelectItem]) -> list[exp.Expr]:
    if isinstance(node, exp.Var) and node.name.upper() == "ALL":
        return [item.expression for item in items]
    if isinstance(node, exp.Literal) and not node.is_string:
        if not 1 <= int(node.name) <= len(items):
            raise InvalidQuery(f"ORDER BY {node.name}: the select list has {len(items)} items")
        return [items[int(node.name) - 1].expression]
    by_name = aliases_of(items)
    if isinstance(node, exp.Column) and not node.table and node.name.lower() in by_name:
        return [by_name[node.name.lower()]]

    def replace(inner: exp.Expr) -> exp.Expr:
        if not isinstance(inner, exp.Column) or inner.table or inner.find_ancestor(exp.AggFunc):
            return inner
        found = by_name.get(inner.name.lower())
        return exp.Paren(this=found.copy()) if found is not None else inner

    return [resolve(node.transform(replace), scope, with_windows=True)]


def _number(query: exp.Expr, clause: str) -> int | None:
    node = query.args.get(clause)
    if node is None:
        return None
    value = node.args.get("expression")
    number = _constant(value) if value is not None else None
    if number is not None and number >= 0:
        return number
    if isinstance(value, exp.Var) and value.name.upper() == "ALL":
        return None
    raise NotDifferentiable(
        f"{clause.upper()} {value.sql('spark') if value else ''}".strip(),
        hint="write a whole number",
    )


def _constant(node: exp.Expr) -> int | None:
    """The whole number that an expression of whole numbers comes to."""
    node = node.unnest()
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return int(node.name)
    if not isinstance(node, (exp.Add, exp.Sub, exp.Mul)):
        return None
    left, right = _constant(node.left), _constant(node.right)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Add):
        return left + right
    return left - right if isinstance(node, exp.Sub) else left * right
