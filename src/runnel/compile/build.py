"""The syntax tree of a query to an operator tree: FROM clauses, set operations, CTEs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from sqlglot import exp

from runnel.algebra.nodes import Node, Scan
from runnel.algebra.scalar import Scalar
from runnel.compile.clauses import refuse_other_clauses
from runnel.compile.grouping import is_grouped
from runnel.compile.joins import join_relations
from runnel.compile.laterals import is_lateral_function, join_lateral, table_function
from runnel.compile.ordering import is_limited, limit_relation
from runnel.compile.pivot import pivoted, refuse_pivot_of_the_last
from runnel.compile.places import at
from runnel.compile.program import weight_of
from runnel.compile.relation import Relation
from runnel.compile.rewrites.ties import Ties
from runnel.compile.scope import Entry, Scope
from runnel.compile.select import build_select, needs_whole, select_rows
from runnel.compile.select_generator import has_generator
from runnel.compile.sets import combine
from runnel.compile.sources import table_name
from runnel.compile.typing import Typer
from runnel.errors import NotDifferentiable
from runnel.model.columns import Column


@dataclass(frozen=True, slots=True)
class SourceSchema:
    """What the compiler must know of a source. `kind` is `delta` or `trace`."""

    key: str
    kind: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class _Cte:
    query: exp.Expr
    names: tuple[str, ...]
    visible: Mapping[str, _Cte]


@dataclass
class Builder:
    """Builds one query; hands out column names that are unique in it."""

    sources: Mapping[str, SourceSchema]
    typer: Typer
    numbers: count[int] = field(default_factory=count)
    ties: Ties = field(default_factory=Ties)

    def fresh(self, type_: str) -> Column:
        return Column(f"a{next(self.numbers)}", type_)

    def query(self, node: exp.Expr, ctes: Mapping[str, _Cte]) -> Relation:
        with at(node):
            return self._query(node, ctes)

    def _query(self, node: exp.Expr, ctes: Mapping[str, _Cte]) -> Relation:
        refuse_other_clauses(node)
        ctes = self.with_(node, ctes)
        match node:
            case exp.Subquery():
                return limit_relation(self, node, self.query(node.this, ctes))
            case exp.Select():
                return build_select(self, node, ctes)
            case exp.SetOperation():
                left, right = self.query(node.left, ctes), self.query(node.right, ctes)
                return limit_relation(self, node, combine(self, node, left, right))
            case _:
                raise NotDifferentiable(f"the query form {node.key.upper()}")

    def rows(
        self, query: exp.Expr, ctes: Mapping[str, _Cte], outer: Scope
    ) -> tuple[Node, tuple[Scalar, ...], list[exp.Expr]]:
        """A subquery's rows, its output over them, its conditions that read the outer query."""
        while isinstance(query, exp.Subquery) and not (
            query.args.get("with_") or is_limited(query)
        ):
            query = query.this
        if isinstance(query, exp.Select) and not (
            is_grouped(query) or needs_whole(query) or has_generator(query)
        ):
            refuse_other_clauses(query)
            return select_rows(self, query, self.with_(query, ctes), outer)
        relation = self.query(query, ctes)
        return relation.node, tuple(Scalar.column(c.name) for _, c in relation.outputs), []

    def from_item(self, node: exp.Expr, ctes: Mapping[str, _Cte]) -> tuple[Node, Scope]:
        with at(node):
            return self._from_item(node, ctes)

    def _from_item(self, node: exp.Expr, ctes: Mapping[str, _Cte]) -> tuple[Node, Scope]:
        refuse_other_clauses(node)
        if node.args.get("joins"):
            first = node.copy()
            return self.joined(first, first.args.pop("joins"), ctes)
        if node.args.get("pivots"):
            first = node.copy()
            pivots = first.args.pop("pivots")
            return pivoted(self, *self.from_item(first, ctes), pivots)
        match node:
            case exp.Subquery() if _is_parenthesised_join(node.this):
                return self._parenthesised_join(node, ctes)
            case exp.Subquery():
                relation = self.query(node.this, self.with_(node, ctes))
                relation = limit_relation(self, node, relation)
                return relation.node, relation.scope(node.alias or None, _column_aliases(node))
            case exp.Table() if isinstance(node.this, exp.Identifier):
                return self._table(node, ctes)
            case _:
                return table_function(self, node)

    def joined(
        self, first: exp.Expr, joins: list[exp.Join], ctes: Mapping[str, _Cte]
    ) -> tuple[Node, Scope]:
        node, scope = self.from_item(first, ctes)
        for join in joins:
            refuse_other_clauses(join)
            refuse_pivot_of_the_last(join)
            if is_lateral_function(join.this):
                node, scope = join_lateral(self, node, scope, join)
            else:
                right = self.from_item(join.this, ctes)
                node, scope = join_relations(self, node, scope, join, right)
            node, scope = pivoted(self, node, scope, join.args.get("pivots") or [])
        return node, scope

    def _parenthesised_join(
        self, node: exp.Subquery, ctes: Mapping[str, _Cte]
    ) -> tuple[Node, Scope]:
        tree, scope = self.from_item(node.this, ctes)
        if node.alias:
            scope = Scope(tuple(Entry(node.alias, e.name, e.column) for e in scope.star(None)))
        return tree, scope

    def with_(self, node: exp.Expr, ctes: Mapping[str, _Cte]) -> Mapping[str, _Cte]:
        with_ = node.args.get("with_")
        if with_ is None:
            return ctes
        if with_.args.get("recursive"):
            raise NotDifferentiable("WITH RECURSIVE", hint="use refresh mode FULL or AUTO")
        for cte in with_.expressions:
            ctes = {**ctes, cte.alias.lower(): _Cte(cte.this, _column_aliases(cte), ctes)}
        return ctes

    def _table(self, node: exp.Table, ctes: Mapping[str, _Cte]) -> tuple[Node, Scope]:
        alias = node.alias or node.name
        cte = ctes.get(node.name.lower()) if not node.db else None
        if cte is not None:
            relation = self.query(cte.query, cte.visible)
            names = _column_aliases(node) or cte.names
            return relation.node, relation.scope(alias, names)
        name = table_name(node)
        source = self.sources[name.key]
        columns = tuple(self.fresh(c.type) for c in source.columns)
        own = tuple(c.name for c in source.columns)
        scan = Scan(source.key, columns, own, weight_of(own))
        names = _column_aliases(node) or own
        entries = tuple(
            Entry(alias, n, c, schema=name.schema) for n, c in zip(names, columns, strict=True)
        )
        return scan, Scope(entries)


def _is_parenthesised_join(inner: exp.Expr) -> bool:
    if isinstance(inner, exp.Subquery):
        return bool(inner.alias or inner.args.get("joins"))
    return isinstance(inner, exp.Table)


def _column_aliases(node: exp.Expr) -> tuple[str, ...]:
    alias = node.args.get("alias")
    return tuple(c.name for c in alias.args.get("columns") or ()) if alias is not None else ()
