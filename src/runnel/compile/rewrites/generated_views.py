"""A table function of a select list, as a view whose columns windows and ORDER BY can name.

    SELECT a, explode(xs) AS x, ROW_NUMBER() OVER (ORDER BY a) FROM t
    SELECT a, g.g_0 AS x, ROW_NUMBER() OVER (ORDER BY a, g.g_0)
    FROM t LATERAL VIEW explode(xs) g AS g_0

Spark computes the function before the windows of a SELECT that groups nothing, but gives its
columns no name there: rows that tie could not be ordered by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class GeneratedView:
    """What stands for one table function: its columns, and what each is called in the result."""

    name: str
    shown: Sequence[str]

    @property
    def columns(self) -> list[str]:
        return [f"{self.name}_{place}" for place in range(len(self.shown))]

    @property
    def items(self) -> list[exp.Expr]:
        return [
            exp.alias_(exp.column(column, table=self.name, quoted=True), shown, quoted=True)
            for column, shown in zip(self.columns, self.shown, strict=True)
        ]

    def over(self, call: exp.Expr) -> exp.Lateral:
        """The view itself."""
        columns = [exp.to_identifier(column, quoted=True) for column in self.columns]
        alias = exp.TableAlias(this=exp.to_identifier(self.name, quoted=True), columns=columns)
        return exp.Lateral(this=call.copy(), view=True, alias=alias)


@dataclass(frozen=True, slots=True)
class GeneratedViews:
    """Those of one SELECT, by the places of the functions in its list."""

    views: Mapping[int, GeneratedView]

    def shown(self, select: exp.Select) -> exp.Select:
        """The SELECT with columns in the place of the functions."""
        if not self.views:
            return select
        made = select.copy()
        made.set("expressions", self._items(made))
        return made

    def write(self, select: exp.Select) -> None:
        """The same in the text, where the views have to stand in FROM, but `*` not for them."""
        for place, view in self.views.items():
            select.append("laterals", view.over(unaliased(select.expressions[place])))
        select.set("expressions", self._items(select))
        hidden = [exp.to_identifier(c) for view in self.views.values() for c in view.columns]
        for item in select.expressions:
            if isinstance(item, exp.Star):
                item.set("except_", [*(item.args.get("except_") or []), *hidden])

    def _items(self, select: exp.Select) -> list[exp.Expr]:
        items: list[exp.Expr] = []
        for place, item in enumerate(select.expressions):
            items += self.views[place].items if place in self.views else [item]
        return items


def unaliased(item: exp.Expr) -> exp.Expr:
    """An item of a select list without its names."""
    return item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item
