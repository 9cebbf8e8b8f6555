"""The syntax tree of a query to an operator tree: FROM clauses, set operations, CTEs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from sqlglot import exp

from runnel.algebra.nodes import Node, Project, Scan, UnionAll, distinct
from runnel.algebra.scalar import Scalar, wrap
from runnel.compile.clauses import refuse_other_clauses
from runnel.compile.joins import join_relations
from runnel.compile.program import weight_of
from runnel.compile.relation import Relation
from runnel.compile.scope import Entry, Scope
from runnel.compile.select import build_select
from runnel.compile.sources import table_name
from runnel.compile.typing import Typer
from runnel.errors import InvalidQuery, NotDifferentiable
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

    def fresh(self, type_: str) -> Column:
        return Column(f"a{next(self.numbers)}", type_)

    def query(self, node: exp.Expr, ctes: Mapping[str, _Cte]) -> Relation:
        refuse_other_clauses(node)
        ctes = self._with(node, ctes)
        match node:
            case exp.Subquery():
                return self.query(node.this, ctes)
            case exp.Select():
                return build_select(self, node, ctes)
            case exp.Union():
                return self._union(node, ctes)
            case exp.SetOperation():
                raise NotDifferentiable(node.key.upper(), hint="use refresh mode FULL or AUTO")
            case _:
                raise NotDifferentiable(f"the query form {node.key.upper()}")

    def from_item(self, node: exp.Expr, ctes: Mapping[str, _Cte]) -> tuple[Node, Scope]:
        self._refuse_time_travel(node)
        refuse_other_clauses(node)
        if node.args.get("joins"):
            first = node.copy()
            return self.joined(first, first.args.pop("joins"), ctes)
        match node:
            case exp.Subquery() if _is_parenthesised_join(node.this):
                return self._parenthesised_join(node, ctes)
            case exp.Subquery():
                relation = self.query(node.this, self._with(node, ctes))
                return relation.node, relation.scope(node.alias or None, _column_aliases(node))
            case exp.Table() if isinstance(node.this, exp.Identifier):
                return self._table(node, ctes)
            case _:
                raise NotDifferentiable(
                    f"the table function {node.sql('spark')[:60]}",
                    hint="use refresh mode FULL or AUTO",
                )

    def joined(
        self, first: exp.Expr, joins: list[exp.Join], ctes: Mapping[str, _Cte]
    ) -> tuple[Node, Scope]:
        node, scope = self.from_item(first, ctes)
        for join in joins:
            refuse_other_clauses(join)
            node, scope = join_relations(self, node, scope, join, self.from_item(join.this, ctes))
        return node, scope

    def _parenthesised_join(
        self, node: exp.Subquery, ctes: Mapping[str, _Cte]
    ) -> tuple[Node, Scope]:
        tree, scope = self.from_item(node.this, ctes)
        if node.alias:
            scope = Scope(tuple(Entry(node.alias, e.name, e.column) for e in scope.star(None)))
        return tree, scope

    def _with(self, node: exp.Expr, ctes: Mapping[str, _Cte]) -> Mapping[str, _Cte]:
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

    def _union(self, node: exp.Union, ctes: Mapping[str, _Cte]) -> Relation:
        left, right = self.query(node.left, ctes), self.query(node.right, ctes)
        if len(left.outputs) != len(right.outputs):
            raise InvalidQuery(
                f"UNION of {len(left.outputs)} and {len(right.outputs)} columns",
                detail="both sides need the same number of columns",
            )
        columns = tuple(
            self.fresh(self._common_type(a, b))
            for (_, a), (_, b) in zip(left.outputs, right.outputs, strict=True)
        )
        union: Node = UnionAll((_cast(left, columns, self), _cast(right, columns, self)), columns)
        if node.args.get("distinct"):
            union = distinct(union)
        names = (name for name, _ in left.outputs)
        return Relation(union, tuple(zip(names, columns, strict=True)))

    def _common_type(self, left: Column, right: Column) -> str:
        if left.type == right.type:
            return left.type
        return self.typer.types((left, right), [f"coalesce({left.name}, {right.name})"])[0]

    def _refuse_time_travel(self, node: exp.Expr) -> None:
        if node.args.get("version"):
            raise InvalidQuery(
                "time travel in a stream table's query",
                detail="Runnel decides which version of each source is read",
                hint="remove VERSION AS OF / TIMESTAMP AS OF",
            )


def _cast(relation: Relation, columns: tuple[Column, ...], builder: Builder) -> Node:
    """Bring a branch to the union's types, with its columns in output order."""
    items = []
    for (_, own), target in zip(relation.outputs, columns, strict=True):
        value = Scalar.column(own.name)
        if own.type != target.type:
            value = wrap("CAST(", value, f" AS {target.type})")
        items.append((builder.fresh(target.type), value))
    return Project(relation.node, tuple(items))


def _is_parenthesised_join(inner: exp.Expr) -> bool:
    if isinstance(inner, exp.Subquery):
        return bool(inner.alias or inner.args.get("joins"))
    return isinstance(inner, exp.Table)


def _column_aliases(node: exp.Expr) -> tuple[str, ...]:
    alias = node.args.get("alias")
    return tuple(c.name for c in alias.args.get("columns") or ()) if alias is not None else ()
