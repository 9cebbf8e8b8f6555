"""JOIN clauses: ON, USING, NATURAL and the comma, and what each brings into sight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from runnel.algebra.nodes import InnerJoin, JoinKind, Node, OuterJoin, Project, SemiJoin, identity
from runnel.algebra.scalar import Scalar
from runnel.compile.scalars import conjuncts, resolve, to_scalar
from runnel.compile.scope import Entry, Scope
from runnel.compile.subqueries_in_on import join_on_subquery
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

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
        condition = [Scalar(("", " = ", ""), (a.name, b.name)) for a, b in pairs]
    elif (on := join.args.get("on")) and on.find(exp.Query):
        node = join_on_subquery(builder, left, right_node, join, scope, ctes)
        return node, left_scope if kind in ("SEMI", "ANTI") else scope
    else:
        pairs = []
        seen = Scope(scope.entries, builder.outer)
        condition = [to_scalar(resolve(c, seen)) for c in conjuncts(on)] if on else []
    if kind in ("SEMI", "ANTI"):
        return SemiJoin(left, right_node, tuple(condition), kind == "ANTI"), left_scope
    node = _join_node(side, left, right_node, tuple(condition))
    if shared:
        node, scope = _merge(builder, node, side, shared, pairs, left_scope, right_scope)
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
    on_right = {e.name.lower() for e in right.star(None) if e.name}
    return [e.name for e in left.star(None) if e.name and e.name.lower() in on_right]


def _only(scope: Scope, name: str) -> Column:
    found = scope.resolve([name])
    if found is None:
        raise InvalidQuery(f"column {name} of USING is not on both sides of the join")
    return found[0]


def _merge(
    builder: Builder,
    node: Node,
    side: str,
    shared: list[str],
    pairs: list[tuple[Column, Column]],
    left: Scope,
    right: Scope,
) -> tuple[Node, Scope]:
    """USING shows each shared column once, first; the originals stay reachable by their table."""
    merged: list[Entry] = []
    items = [*identity(node.columns)]
    for name, (a, b) in zip(shared, pairs, strict=True):
        if side == "FULL":
            column = builder.fresh(
                builder.typer.types((a, b), [f"coalesce({a.name}, {b.name})"])[0]
            )
            items.append((column, Scalar(("COALESCE(", ", ", ")"), (a.name, b.name))))
        else:
            column = b if side == "RIGHT" else a
        merged.append(Entry(None, name, column))
    lowered = {n.lower() for n in shared}

    def hide(entry: Entry) -> Entry:
        if entry.only_qualified or (entry.name or "").lower() not in lowered:
            return entry
        return Entry(entry.qualifier, entry.name, entry.column, entry.schema, only_qualified=True)

    rest = tuple(hide(e) for e in left.entries + right.entries)
    # An entry merged by an earlier USING has no qualifier: hidden, it could never be reached again.
    scope = Scope((*merged, *(e for e in rest if not (e.only_qualified and e.qualifier is None))))
    return (Project(node, tuple(items)) if side == "FULL" else node), scope
