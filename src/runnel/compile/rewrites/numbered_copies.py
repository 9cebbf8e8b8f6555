"""Rows that are equal in all that a SELECT computes with, numbered once for all of its windows.

Two window functions with different orders may each put such copies as they like: which value of
the one stands beside which of the other would be open. So the rows get a number in a subquery,

    SELECT x, LAG(y) OVER (ORDER BY x, y), ROW_NUMBER() OVER (ORDER BY y, x) FROM t
    SELECT r0 AS x, LAG(r1) OVER (ORDER BY r0, r1, copy), ROW_NUMBER() OVER (ORDER BY r1, r0, copy)
    FROM (SELECT x AS r0, y AS r1, ROW_NUMBER() OVER (PARTITION BY x, y ORDER BY x) AS copy FROM t)

where all its columns are called anew, since those of a join have no common name.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from sqlglot import exp

from runnel.compile.scalars import marked, star_items, star_of
from runnel.compile.scope import Scope, parts_of
from runnel.errors import NotDifferentiable

COPY = "__runnel_copy"
_ROWS = "__runnel_rows"
_INNER = ("from_", "joins", "laterals", "where")


@dataclass(frozen=True, slots=True)
class Numbered:
    """A SELECT whose copies are numbered: what its stars stand for, and what the copies share."""

    stars: dict[int, list[exp.Expr]]
    scope: Scope
    ties: list[exp.Expr]

    def write(self, select: exp.Select) -> None:
        """Put the rows of a SELECT, its windows completed already, into a numbering subquery."""
        items = [
            _named(item)
            for place, node in enumerate(select.expressions)
            for item in self.stars.get(place, [node])
        ]
        called = _Called(self.scope)
        select.set("expressions", [called.anew(item) for item in items])
        if qualify := select.args.get("qualify"):
            select.set("qualify", called.anew(qualify))
        if order := select.args.get("order"):
            # Names of the output win here.
            select.set("order", called.anew(order, {item.alias_or_name.lower() for item in items}))
        inner = exp.Select(expressions=[exp.alias_(c, n) for c, n in called.names.items()])
        inner.append("expressions", exp.alias_(self._number(), COPY))
        for name in _INNER:
            inner.set(name, select.args.get(name))
            select.set(name, None)
        select.set("from_", exp.From(this=inner.subquery(_ROWS)))

    def _number(self) -> exp.Expr:
        order = exp.Order(expressions=[exp.Ordered(this=self.ties[0].copy(), nulls_first=True)])
        ties = [tie.copy() for tie in self.ties]
        return exp.Window(this=exp.RowNumber(), partition_by=ties, order=order, over="OVER")


@dataclass
class _Called:
    """New names for the columns of FROM; aliases and columns of a query around keep theirs."""

    scope: Scope
    names: dict[exp.Expr, str] = field(default_factory=dict)

    def anew(self, node: exp.Expr, hidden: Collection[str] = ()) -> exp.Expr:
        def rename(inner: exp.Expr) -> exp.Expr:
            if (
                not isinstance(inner, exp.Column)
                or self.scope.resolve_here(parts_of(inner)) is None
            ):
                return inner
            if not inner.table and inner.name.lower() in hidden:
                return inner
            return exp.column(self.names.setdefault(inner.copy(), f"__runnel_r{len(self.names)}"))

        return node.transform(rename)


def numbered(select: exp.Select, scope: Scope, ties: list[exp.Expr]) -> Numbered:
    """What the text of a SELECT needs; refused where it cannot be said."""
    parts = [*select.expressions, select.args.get("qualify"), select.args.get("order")]
    is_asking = any(part.find(exp.Query) for part in parts if part is not None)
    if is_asking or select.args.get("group"):
        raise NotDifferentiable(
            "window functions with different orders beside a subquery",
            detail="rows that are there twice have to be numbered for all of them alike",
            hint="compute the subquery, or one of the window functions, in a FROM subquery",
        )
    stars = {n: _columns(e, scope) for n, e in enumerate(select.expressions) if star_of(e)}
    return Numbered(stars, scope, ties)


def _columns(node: exp.Expr, scope: Scope) -> list[exp.Expr]:
    star = star_of(node)
    columns = [scope.spell(marked(value) or "") for _, value in star_items(node, scope)]
    found = [column for column in columns if column is not None]
    if (star and star.args.get("replace")) or len(found) < len(columns):
        raise NotDifferentiable(
            "window functions with different orders beside *",
            detail="rows that are there twice have to be numbered for all of them alike",
            hint="list the columns",
        )
    return found


def _named(item: exp.Expr) -> exp.Expr:
    if isinstance(item, (exp.Column, exp.Dot)):
        return exp.alias_(item.copy(), item.name, quoted=True)
    return item
