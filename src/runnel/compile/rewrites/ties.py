"""Ties broken in the text: an order that leaves rows open is completed, for every way alike.

The builder decides what completes it (the columns that a SELECT shows or computes with), notes it
under the number of the window or LIMIT, and the same is written into the text that FULL runs. A
window that is written in another way (`compile/in_frame.py`) is noted with the function that does,
a SELECT whose rows are numbered first (`numbered_copies.py`), or whose table functions have to be
named (`generated_views.py`), with what is needed for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from runnel.compile.rewrites.generated_views import GeneratedViews, unaliased
from runnel.compile.rewrites.numbered_copies import Numbered
from runnel.errors import NotDifferentiable

_NUMBER = "tie"


@dataclass
class Ties:
    """What completes each order, by the number its place in the syntax tree has."""

    noted: dict[int, list[exp.Expr]] = field(default_factory=dict)
    other: dict[int, Callable[[exp.Window], exp.Expr]] = field(default_factory=dict)
    copies: dict[int, Numbered] = field(default_factory=dict)
    views: dict[int, GeneratedViews] = field(default_factory=dict)

    def note(self, place: exp.Expr, keys: list[exp.Expr]) -> None:
        """Complete the order of a window or query; copies of a node have its number."""
        self.noted[place.meta[_NUMBER]] = keys

    def write_as(self, place: exp.Expr, rewrite: Callable[[exp.Window], exp.Expr]) -> None:
        """Let a window be written in another way."""
        self.other[place.meta[_NUMBER]] = rewrite

    def number_copies(self, select: exp.Select, how: Numbered) -> None:
        """Let the rows of a SELECT be numbered before its windows are computed."""
        self.copies[select.meta[_NUMBER]] = how

    def show_generated(self, select: exp.Select, views: GeneratedViews) -> None:
        """Let a SELECT with windows name what its table functions give."""
        if not views.views or not has_windows(select):
            return
        calls = [unaliased(select.expressions[place]) for place in views.views]
        if any(call.find(exp.Query) for call in calls) or _has_stars_inside(select):
            raise NotDifferentiable(
                "a table function of a subquery, or a function of *, beside a window function",
                hint="compute it in a FROM subquery",
            )
        self.views[select.meta[_NUMBER]] = views

    def written(self, tree: exp.Query) -> exp.Query | None:
        """The query with all orders completed; None when none had to be."""
        if not any(self.noted.values()) and not self.other:
            return None
        tree = tree.copy()
        places = list(_ordered(tree))
        for place in places:
            if isinstance(place, exp.Window) and place.meta[_NUMBER] in self.other:
                place.replace(self.other[place.meta[_NUMBER]](place))
                continue
            noted = self.noted.get(place.meta[_NUMBER], [])
            keys = [exp.Ordered(this=k.copy(), nulls_first=True) for k in noted]
            order = place.args.get("order")
            if keys and order is not None:
                order.set("expressions", [*order.expressions, *keys])
        for place in places:
            number = place.meta[_NUMBER]
            if isinstance(place, exp.Select) and number in self.views:
                self.views[number].write(place)
            if isinstance(place, exp.Select) and number in self.copies:
                self.copies[number].write(place)
        return tree


def has_windows(select: exp.Select) -> bool:
    """Whether the list of a SELECT, or what chooses among its rows, has a window function."""
    parts = [*select.expressions, select.args.get("qualify")]
    return any(part.find(exp.Window) for part in parts if part is not None)


def _has_stars_inside(select: exp.Select) -> bool:
    """Whether an item is a function of all columns; COUNT(*) is one of rows."""
    stars = (star for item in select.expressions for star in item.find_all(exp.Star))
    return any(
        isinstance(star.parent, (exp.Func, exp.Distinct)) and not isinstance(star.parent, exp.Count)
        for star in stars
    )


def number_places(tree: exp.Query) -> None:
    """Give every window, SELECT and query with a LIMIT a number that its copies keep."""
    for number, place in enumerate(_ordered(tree)):
        place.meta[_NUMBER] = number


def _ordered(tree: exp.Query) -> Iterator[exp.Expr]:
    for node in tree.walk():
        is_limited = isinstance(node, exp.Query) and node.args.get("order")
        if is_limited or isinstance(node, (exp.Window, exp.Select)):
            yield node
