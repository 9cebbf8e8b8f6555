"""The syntax tree of a query to an operator tree: FROM clauses, set operations, CTEs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from sqlglot import exp

from runnel.algebra.nodes import Node, Project, Scan
from runnel.algebra.scalar import Scalar
from runnel.compile.clauses import refuse_other_clauses
from runnel.compile.joins import join_relations
from runnel.compile.lateral_subqueries import is_lateral_subquery, join_lateral_subquery
from runnel.compile.laterals import is_lateral_function, join_lateral, table_function
from runnel.compile.ordering import limit_relation
from runnel.compile.passed_names import passes_names
from runnel.compile.pivot import pivoted, pivots_of
from runnel.compile.places import at
from runnel.compile.program import weight_of
from runnel.compile.recursion import OwnRows, Visible, build_recursive, refers_to_itself
from runnel.compile.relation import Relation, column_aliases
from runnel.compile.rewrites.ordered_folds import Folds
from runnel.compile.rewrites.ties import Ties
from runnel.compile.rewrites.time_windows import LocalTimes
from runnel.compile.scope import Entry, Scope
from runnel.compile.select import build_select
from runnel.compile.sets import combine
from runnel.compile.sources import table_name
from runnel.compile.typing import Typer
from runnel.compile.unnest.free import free_columns
from runnel.errors import NotDifferentiable
from runnel.model.columns import Column


@dataclass(frozen=True, slots=True)
class SourceSchema:
    """What the compiler must know of a source. `kind` is `delta` or `trace`.

    `chars` are its columns of type CHAR(n): strings, but for comparisons.
    """

    key: str
    kind: str
    columns: tuple[Column, ...]
    chars: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Cte:
    """A named query and the names it sees; `own` is set when it reads itself."""

    query: exp.Expr
    names: tuple[str, ...]
    visible: Visible
    outer: Scope | None
    own: exp.CTE | None = None


@dataclass
class Builder:
    """Builds one query; hands out column names that are unique in it.

    `known` are all columns handed out, `outer` is what the query around the present one has, `ctes`
    are the named queries that were built, those that another one reads before it.
    """

    sources: Mapping[str, SourceSchema]
    typer: Typer
    numbers: count[int] = field(default_factory=count)
    ties: Ties = field(default_factory=Ties)
    folds: Folds = field(default_factory=Folds)
    local_times: LocalTimes = field(default_factory=LocalTimes)
    known: dict[str, Column] = field(default_factory=dict)
    outer: Scope | None = None
    ctes: dict[Cte, Relation] = field(default_factory=dict)

    def fresh(self, type_: str) -> Column:
        column = Column(f"a{next(self.numbers)}", type_)
        self.known[column.name] = column
        return column

    def columns_of(self, scalars: Sequence[Scalar]) -> tuple[Column, ...]:
        """The columns that expressions read, of this query or one around it."""
        return tuple(self.known[n] for n in dict.fromkeys(n for s in scalars for n in s.columns))

    def types_of(self, scalars: Sequence[Scalar]) -> tuple[str, ...]:
        """The types of expressions; a bare column's is known without asking."""
        asked = [s for s in scalars if s.bare_column is None]
        texts = [s.render() for s in asked]
        answers = iter(self.typer.types(self.columns_of(asked), texts) if texts else ())
        return tuple(
            self.known[s.bare_column].type if s.bare_column else next(answers) for s in scalars
        )

    def inner_query(self, node: exp.Expr, ctes: Visible, outer: Scope | None) -> Relation:
        """A query that sees the columns of the one around it."""
        before, self.outer = self.outer, outer
        try:
            return self.query(node, ctes)
        finally:
            self.outer = before

    def query(self, node: exp.Expr, ctes: Visible) -> Relation:
        with at(node):
            return self._query(node, ctes)

    def _query(self, node: exp.Expr, ctes: Visible) -> Relation:
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
                raise NotDifferentiable(
                    f"the query form {node.key.upper()}",
                    hint="write it as SELECT, or use refresh mode FULL or AUTO",
                )

    def from_item(self, node: exp.Expr, ctes: Visible) -> tuple[Node, Scope]:
        with at(node):
            return self._from_item(node, ctes)

    def _from_item(self, node: exp.Expr, ctes: Visible) -> tuple[Node, Scope]:
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
                if passes_names(node):
                    return relation.node, relation.with_tables()
                return relation.node, relation.scope(node.alias or None, column_aliases(node))
            case exp.Table() if isinstance(node.this, exp.Identifier):
                return self._table(node, ctes)
            case _:
                return table_function(self, node)

    def joined(self, first: exp.Expr, joins: list[exp.Join], ctes: Visible) -> tuple[Node, Scope]:
        node, scope = self.from_item(first, ctes)
        for clause in joins:
            refuse_other_clauses(clause)
            join, pivots = pivots_of(clause)
            if is_lateral_function(join.this):
                node, scope = join_lateral(self, node, scope, join)
            elif is_lateral_subquery(join.this):
                node, scope = join_lateral_subquery(self, node, scope, join, ctes)
            else:
                right = self.from_item(join.this, ctes)
                node, scope = join_relations(self, node, scope, join, right, ctes)
            node, scope = pivoted(self, node, scope, pivots)
        return node, scope

    def _parenthesised_join(self, node: exp.Subquery, ctes: Visible) -> tuple[Node, Scope]:
        tree, scope = self.from_item(node.this, ctes)
        if node.alias:
            scope = Scope(tuple(Entry(node.alias, e.name, e.column) for e in scope.star()))
        return tree, scope

    def with_(self, node: exp.Expr, ctes: Visible) -> Visible:
        with_ = node.args.get("with_")
        if with_ is None:
            return ctes
        is_recursive = bool(with_.args.get("recursive"))
        if is_recursive:
            # A name that comes later cannot be read before; itself it can.
            ctes = {**ctes, **{c.alias.lower(): OwnRows(c.alias) for c in with_.expressions}}
        for cte in with_.expressions:
            own = cte if is_recursive and refers_to_itself(cte) else None
            made = Cte(cte.this, column_aliases(cte), ctes, self.outer, own)
            ctes = {**ctes, cte.alias.lower(): made}
        return ctes

    def _named(self, cte: Cte | OwnRows, names: tuple[str, ...], alias: str) -> tuple[Node, Scope]:
        if isinstance(cte, OwnRows):
            relation = cte.relation(self)
            return relation.node, relation.scope(alias, names)
        relation = self._renamed(self.ctes[cte]) if cte in self.ctes else self._built(cte)
        return relation.node, relation.scope(alias, names or cte.names)

    def _built(self, cte: Cte) -> Relation:
        """What a CTE stands for; noted for the next use unless it depends on where it is read."""
        if cte.own is not None:
            relation = build_recursive(self, cte)
        else:
            relation = self.inner_query(cte.query, cte.visible, cte.outer)
        if not free_columns(relation.node):
            self.ctes[cte] = relation
        return relation

    def _renamed(self, relation: Relation) -> Relation:
        """The same rows in columns of their own, so that a join can hold them twice."""
        items = tuple((self.fresh(c.type), Scalar.column(c.name)) for _, c in relation.outputs)
        outputs = tuple((n, c) for (n, _), (c, _) in zip(relation.outputs, items, strict=True))
        return Relation(Project(relation.node, items), outputs)

    def _table(self, node: exp.Table, ctes: Visible) -> tuple[Node, Scope]:
        alias = node.alias or node.name
        cte = ctes.get(node.name.lower()) if not node.db else None
        if cte is not None:
            return self._named(cte, column_aliases(node), alias)
        name = table_name(node)
        source = self.sources[name.key]
        columns = tuple(self.fresh(c.type) for c in source.columns)
        own = tuple(c.name for c in source.columns)
        scan = Scan(source.key, columns, own, weight_of(own))
        names = column_aliases(node) or own
        entries = tuple(
            Entry(alias, n, c, schema=name.schema) for n, c in zip(names, columns, strict=True)
        )
        return scan, Scope(entries)


def _is_parenthesised_join(inner: exp.Expr) -> bool:
    if isinstance(inner, exp.Subquery):
        return bool(inner.alias or inner.args.get("joins"))
    return isinstance(inner, exp.Table)
