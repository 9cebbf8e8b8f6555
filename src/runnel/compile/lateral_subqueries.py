"""LATERAL subqueries in FROM: each row is joined with what the subquery gives for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from runnel.algebra.nodes import JoinKind, Node, OuterJoin, Project, identity
from runnel.algebra.scalar import Scalar
from runnel.compile.relation import column_aliases
from runnel.compile.scalars import conjuncts, resolve, to_scalar
from runnel.compile.scope import Scope
from runnel.compile.subqueries import filter_by
from runnel.compile.unnest.lookup import Lookup, look_up, look_up_each, look_up_rows
from runnel.errors import NotDifferentiable

if TYPE_CHECKING:
    from runnel.compile.build import Builder


def is_lateral_subquery(node: exp.Expr) -> bool:
    return isinstance(node, exp.Lateral) and isinstance(node.this, exp.Query)


def join_lateral_subquery(
    builder: Builder, node: Node, scope: Scope, join: exp.Join, ctes: Mapping[str, Any]
) -> tuple[Node, Scope]:
    """Join the next FROM item, which sees what stands before it."""
    side, lateral = (join.side or "").upper(), join.this
    _check(join, side)
    relation = builder.inner_query(lateral.this, ctes, Scope(scope.entries, builder.outer))
    found = relation.scope(lateral.alias or None, column_aliases(lateral))
    scope = Scope(scope.entries + found.entries)
    on = join.args.get("on")
    if side == "LEFT":
        condition = _plain(builder, scope, on)
        return _left(builder, node, relation.node, condition), scope
    lookup = look_up(builder, node, relation.node)
    joined = _with_values(lookup.join(node), node, relation.node, lookup)
    if on is not None:
        joined = filter_by(builder, joined, Scope(scope.entries, builder.outer), on, ctes)
    return joined, scope


def _left(builder: Builder, node: Node, subquery: Node, on: tuple[Scalar, ...]) -> Node:
    """LEFT JOIN LATERAL; all that it shows is computed below the join that pads it."""
    lookup = look_up(builder, node, subquery)
    if lookup.is_one_row and not on:
        return _with_values(lookup.join(node), node, subquery, lookup)
    lookup = look_up_rows(builder, node, subquery)
    own = {c.name for c in node.columns}
    if any(value.reads & own for value in lookup.values.values()):
        lookup = look_up_each(builder, node, subquery)
    right = _shown(lookup.right, subquery, lookup)
    return OuterJoin(JoinKind.LEFT, node, right, lookup.conditions + on)


def _shown(right: Node, subquery: Node, lookup: Lookup) -> Node:
    own = {c.name for c in right.columns}
    computed = tuple((c, lookup.values[c.name]) for c in subquery.columns if c.name not in own)
    kept = identity(right.columns)
    return Project(right, kept + computed) if computed else right


def _with_values(joined: Node, node: Node, subquery: Node, lookup: Lookup) -> Node:
    """The joined rows with the subquery's columns under their names."""
    if all(value.bare_column == name for name, value in lookup.values.items()):
        return joined
    kept = identity(node.columns)
    shown = tuple((c, lookup.values[c.name]) for c in subquery.columns)
    return Project(joined, kept + shown)


def _plain(builder: Builder, scope: Scope, on: exp.Expr | None) -> tuple[Scalar, ...]:
    if on is None:
        return ()
    seen = Scope(scope.entries, builder.outer)
    found = [c for c in conjuncts(on) if c != exp.true()]
    return tuple(to_scalar(resolve(c, seen)) for c in found)


def _check(join: exp.Join, side: str) -> None:
    if (join.method or "").upper() == "NATURAL" or join.args.get("using"):
        raise NotDifferentiable("NATURAL or USING with LATERAL", hint="write the condition with ON")
    if side not in ("", "LEFT") or (join.kind or "").upper() in ("SEMI", "ANTI"):
        raise NotDifferentiable(
            f"{side or join.kind} JOIN LATERAL", hint="use CROSS, INNER or LEFT JOIN LATERAL"
        )
