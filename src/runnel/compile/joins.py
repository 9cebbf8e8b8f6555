"""JOIN clauses: ON, USING, NATURAL and the comma, and what each brings into sight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from runnel.algebra.nodes import InnerJoin, JoinKind, Node, OuterJoin, Project, SemiJoin, identity
from runnel.algebra.scalar import Scalar
from runnel.compile.scalars import conjuncts, resolve, to_scalar
from runnel.compile.scope import Entry, Scope
from runnel.compile.subqueries_in_on import join_on_subquery
from runnel.errors import InvalidQuery, NotDifferentiable

if TYPE_CHECKING:
    from runnel.compile.build import Builder


def join_relations(
    builder: Builder,
    left: Node,
    left_scope: Scope,
    join: exp.Join,
    right: tuple[Node, Scope],
    ctes: Mapping[str, Any],
) -> tuple[Node, Scope]:
    """Join the next FROM item to what stands before it."""
    right_node, right_scope = right
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if (join.method or "").upper() not in ("", "NATURAL"):
        raise NotDifferentiable(
            f"{side} {kind or join.method} JOIN".strip(),
            hint="write it as an inner, outer, LEFT SEMI or LEFT ANTI JOIN, or use refresh mode "
            "FULL or AUTO",
        )
    shared = _shared_names(join, left_scope, right_scope)
    scope = Scope(left_scope.entries + right_scope.entries)
    if shared:
        pairs = [(_only(left_scope, n), _only(right_scope, n)) for n in shared]
        condition = [Scalar(("", " = ", ""), (a.column.name, b.column.name)) for a, b in pairs]
    elif (on := join.args.get("on")) and on.find(exp.Query):
        node = join_on_subquery(builder, left, right_node, join, scope, ctes)
        return node, left_scope if kind in ("SEMI", "ANTI") else scope
    else:
        pairs = []
        seen = Scope(scope.entries, builder.outer)
        condition = [to_scalar(resolve(c, seen)) for c in conjuncts(on)] if on else []
    if kind in ("SEMI", "ANTI"):
        node = SemiJoin(left, right_node, tuple(condition), kind == "ANTI")
        return node, _in_star_order([a for a, _ in pairs], [], left_scope)
    node = _join_node(side, left, right_node, tuple(condition))
    if shared:
        node, scope = _merge(builder, node, side, pairs, scope)
    return node, scope


def _join_node(side: str, left: Node, right: Node, condition: tuple[Scalar, ...]) -> Node:
    match side:
        case "":
            return InnerJoin((left, right), condition)
        case "LEFT":
            return OuterJoin(JoinKind.LEFT, left, right, condition)
        case "RIGHT":
            return OuterJoin(JoinKind.LEFT, right, left, condition)
        case "FULL":
            return OuterJoin(JoinKind.FULL, left, right, condition)
        case _:
            raise NotDifferentiable(f"{side} JOIN", hint="write it as a LEFT, RIGHT or FULL JOIN")


def _shared_names(join: exp.Join, left: Scope, right: Scope) -> list[str]:
    if join.args.get("using"):
        return [identifier.name for identifier in join.args["using"]]
    if (join.method or "").upper() != "NATURAL":
        return []
    on_right = {e.name.lower() for e in right.star() if e.name}
    return [e.name for e in left.star() if e.name and e.name.lower() in on_right]


def _only(scope: Scope, name: str) -> Entry:
    found = scope.resolve([name])
    if found is None:
        raise InvalidQuery(f"column {name} of USING is not on both sides of the join")
    return next(e for e in scope.star() if e.column == found[0])


def _merge(
    builder: Builder, node: Node, side: str, pairs: list[tuple[Entry, Entry]], scope: Scope
) -> tuple[Node, Scope]:
    """USING shows each shared column once; the originals stay reachable by their table."""
    lefts, rights = [a for a, _ in pairs], [b for _, b in pairs]
    if side == "RIGHT":
        return node, _in_star_order(rights, lefts, scope)
    if side != "FULL":
        return node, _in_star_order(lefts, rights, scope)
    items, merged = [*identity(node.columns)], []
    for a, b in pairs:
        value = Scalar(("COALESCE(", ", ", ")"), (a.column.name, b.column.name))
        column = builder.fresh(*builder.types_of([value]))
        items.append((column, value))
        merged.append(Entry(None, a.name, column))
    return Project(node, tuple(items)), _in_star_order(merged, [*lefts, *rights], scope)


def _in_star_order(shown: list[Entry], hidden: list[Entry], scope: Scope) -> Scope:
    """As Spark orders them: `*` begins with what USING shows, and `t.*` with what it hides of t."""
    # An entry merged by an earlier USING has no qualifier: hidden, it could never be reached again.
    newly = [replace(e, only_qualified=True) for e in hidden if e.qualifier is not None]
    earlier = [e for e in scope.entries if e.only_qualified]
    rest = [e for e in scope.star() if e not in shown and e not in hidden]
    return Scope((*newly, *earlier, *shown, *rest))
