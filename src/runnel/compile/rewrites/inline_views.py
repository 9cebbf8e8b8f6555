"""Views put into the text of the query that reads them, to any depth.

    FROM v  ->  FROM (SELECT `a` AS `a`, ... FROM (the text of v) AS view(`a`, ...)) AS v

The names in a view's text get their schema, so that no CTE of the query around captures them. A
column that `SELECT *` in it finds later is not shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from runnel.compile.origins import Woven, weave
from runnel.compile.parse import parse
from runnel.compile.refuse import refuse
from runnel.compile.sources import TableReference, edits
from runnel.errors import InvalidQuery, RunnelError, UserError
from runnel.model.columns import Column
from runnel.model.names import TableName, quote
from runnel.model.views import View

FindView = Callable[[TableName, bool], View | None]
"""The view with a name, if it is one; True: a temporary view of that name comes first."""

ColumnsOf = Callable[[str], tuple[Column, ...]]
"""What a query without views returns."""

_LONGEST = 200_000
_CATALOGS = ("", "spark_catalog")


@dataclass(frozen=True, slots=True)
class Inlined:
    """A query that reads tables only, and the views it was given through.

    `woven` says where its text comes from, `written` is what the user wrote, if they are known.
    """

    query: str
    views: tuple[View, ...]
    woven: Woven = field(default=Woven(""), compare=False, repr=False)
    written: str | None = field(default=None, compare=False)

    def point(self, error: UserError) -> None:
        """Let an error that was found in this query say where it stands in the user's texts."""
        if error.span is None or self.query == self.written:
            return
        place = self.woven.place(error.span) if self.woven.text == self.query else None
        is_own = self.written is None or self.woven.pieces[0].source == self.written
        # In a text that was rewritten lines and columns mean nothing to the user.
        error.place = place if is_own else (error.place or "").partition(": ")[2] or None


def inline_views(query: str, find: FindView, columns_of: ColumnsOf) -> Inlined:
    """Replace every view; without views the query comes back as it is."""
    inliner = _Inliner(find, columns_of)
    woven = inliner.inline(query, "default", True, ())
    return Inlined(woven.text, tuple(inliner.used.values()), woven)


@dataclass
class _Inliner:
    find: FindView
    columns_of: ColumnsOf
    used: dict[str, View] = field(default_factory=dict)
    texts: dict[str, Woven] = field(default_factory=dict)

    def inline(self, query: str, schema: str, is_free: bool, path: tuple[View, ...]) -> Woven:
        """`is_free`: names without a schema may mean temporary views."""
        put_in: dict[str, Woven] = {}

        def replacement(reference: TableReference) -> str | None:
            _refuse_catalog(reference)
            view = self.find(reference.name, is_free and not reference.is_qualified)
            if view is not None:
                made = self._subquery(view, path)
                put_in[made.text] = made
                return made.text
            return reference.name.sql if path else None

        found = [
            (start, end, put_in.get(text, Woven(text)).inside("", alias))
            for start, end, text, alias in edits(query, replacement, schema)
        ]
        woven = weave(query, found, str(path[-1].name) if path else "")
        if len(woven.text) > _LONGEST:
            raise InvalidQuery(
                "the query reads too many views through views",
                detail=f"with all of them put in, its text has {len(woven.text):,} characters",
                hint="make one of the views a stream table of its own",
            )
        return woven

    def _subquery(self, view: View, path: tuple[View, ...]) -> Woven:
        _refuse_cycle(view, path)
        if view.key not in self.texts:
            self.used.setdefault(view.key, view)
            try:
                refuse(view.text)
                woven = self.inline(view.text, view.schema, view.is_temporary, (*path, view))
                self.texts[view.key] = _picked(view, woven, self.columns_of(woven.text))
            except RunnelError as error:
                _blame(error, view)
                raise
        return self.texts[view.key]


def _blame(error: RunnelError, view: View) -> None:
    """Say in which view it is."""
    where = f"in view {view.name}"
    if error.place is None:
        error.detail = f"{error.detail}; {where}" if error.detail else where
    elif not error.place.startswith("in view"):
        error.place = f"{where}, {error.place}"


def _picked(view: View, woven: Woven, found: tuple[Column, ...]) -> Woven:
    """By place, or by name where the text has a star, which may come to stand for more."""
    if not parse(view.text).is_star:
        if len(found) != len(view.columns):
            raise InvalidQuery(f"its query has {len(found)} columns, not {len(view.columns)}")
        names = [column.name for column in view.columns]
        types = [column.type for column in found]
        alias = f" AS `view`({', '.join(map(quote, names))})"
    else:
        names, alias = list(view.outputs), ""
        types = _types(view, found)
    items = []
    for name, type_, column in zip(names, types, view.columns, strict=True):
        # A view keeps the types it was created with.
        value = quote(name) if type_ == column.type else f"CAST({quote(name)} AS {column.type})"
        items.append(f"{value} AS {quote(column.name)}")
    # The text may end with a comment.
    return woven.inside(f"(SELECT {', '.join(items)} FROM (\n", f"\n){alias})")


def _types(view: View, found: tuple[Column, ...]) -> list[str]:
    known = {column.name.lower(): column.type for column in found}
    names = [output.lower() for output in view.outputs]
    for name in names:
        if name not in known:
            raise InvalidQuery(f"its query no longer has a column {name}")
        if names.count(name) > 1:
            raise InvalidQuery(
                f"its query returns two columns called {name}",
                hint="list the columns inside the view, and give one of them an alias",
            )
    return [known[name] for name in names]


def _refuse_cycle(view: View, path: tuple[View, ...]) -> None:
    keys = [seen.key for seen in path]
    if view.key in keys:
        ring = [*path[keys.index(view.key) :], view]
        raise InvalidQuery(
            f"view {view.name} reads itself",
            detail=" -> ".join(str(step.name) for step in ring),
            hint="let one of these views read a table instead",
        )


def _refuse_catalog(reference: TableReference) -> None:
    if reference.catalog.lower() not in _CATALOGS:
        raise InvalidQuery(
            f"{reference.catalog}.{reference.name} lies in another catalog",
            detail="expected a table of spark_catalog",
            hint="register its location there: CREATE TABLE name USING delta LOCATION '...'",
        )
