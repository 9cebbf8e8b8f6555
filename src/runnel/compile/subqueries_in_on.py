"""ON conditions that ask a subquery: M = the pairs that fulfil it, and then

    L left-join R = M + pad(L anti M)      FULL is both sides; semi and anti joins keep L's rows

A row of L is found in M by all its columns, since equal rows have equal partners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from runnel.algebra.nodes import InnerJoin, Node, Project, SemiJoin, UnionAll, identity
from runnel.algebra.scalar import Scalar
from runnel.compile.scope import Scope
from runnel.compile.subqueries import filter_by
from runnel.compile.typing import is_comparable
from runnel.errors import NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder

_CONSTRUCT = "a subquery in ON"
_PADDED = {"LEFT": (True, False), "RIGHT": (False, True), "FULL": (True, True)}


def join_on_subquery(
    builder: Builder, left: Node, right: Node, join: exp.Join, scope: Scope, ctes: Mapping[str, Any]
) -> Node:
    """The joined rows; `scope` has the columns of both sides."""
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    seen = Scope(scope.entries, builder.outer)
    pairs = filter_by(builder, InnerJoin((left, right), ()), seen, join.args["on"], ctes)
    if kind in ("SEMI", "ANTI"):
        return _found(builder, left, pairs, is_anti=kind == "ANTI")
    if side not in _PADDED:
        return pairs
    kept = [n for n, is_kept in zip((left, right), _PADDED[side], strict=True) if is_kept]
    return with_unmatched(builder, pairs, kept, left.columns + right.columns)


def with_unmatched(
    builder: Builder,
    pairs: Node,
    kept: Sequence[Node],
    columns: tuple[Column, ...],
    construct: str = _CONSTRUCT,
) -> Node:
    """The pairs, and padded with NULLs the rows of the kept sides that are in none."""
    branches: list[Node] = [Project(pairs, identity(columns))]
    for node in kept:
        unmatched = _found(builder, node, pairs, is_anti=True, construct=construct)
        branches.append(_padded(unmatched, columns))
    return UnionAll(tuple(branches), columns)


def _found(
    builder: Builder, node: Node, pairs: Node, *, is_anti: bool, construct: str = _CONSTRUCT
) -> Node:
    """The rows of a side that are, or are not, in a pair."""
    for column in node.columns:
        if not is_comparable(column.type):
            raise NotDifferentiable(
                f"{construct} beside a column of type {column.type}",
                hint="leave the column out in a subquery in FROM",
            )
    copies = tuple((builder.fresh(c.type), Scalar.column(c.name)) for c in node.columns)
    same = tuple(
        Scalar(("", " <=> ", ""), (c.name, copy.name))
        for c, (copy, _) in zip(node.columns, copies, strict=True)
    )
    return SemiJoin(node, Project(pairs, copies), same, is_anti)


def _padded(node: Node, columns: tuple[Column, ...]) -> Node:
    own = {c.name for c in node.columns}
    return Project(
        node,
        tuple(
            (c, Scalar.column(c.name) if c.name in own else Scalar.constant(_null(c)))
            for c in columns
        ),
    )


def _null(column: Column) -> str:
    return f"CAST(NULL AS {column.type})"
