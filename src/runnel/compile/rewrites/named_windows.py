"""OVER w becomes the window that the WINDOW clause calls w, so that only one form is built."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from runnel.errors import InvalidQuery

_PARTS = ("partition_by", "order", "spec")


def expand_named_windows(tree: exp.Query) -> exp.Query:
    """A copy of the query without WINDOW clauses."""
    if not any(s.args.get("windows") for s in tree.find_all(exp.Select)):
        return tree
    tree = tree.copy()
    for select in tree.find_all(exp.Select):
        named = select.args.get("windows")
        if named:
            select.set("windows", None)
            _expand(select, {w.name.lower(): w for w in named})
    return tree


def _expand(select: exp.Select, named: dict[str, exp.Expr]) -> None:
    for window in list(_own_windows(select)):
        while name := _base(window):
            if name.lower() not in named:
                raise InvalidQuery(f"the window {name} is not defined by a WINDOW clause")
            _inherit(window, named[name.lower()])


def _inherit(window: exp.Window, base: exp.Expr) -> None:
    """What the window does not say itself is said by the one it refers to."""
    further = base.args.get("alias")
    window.set("alias", further.copy() if further is not None else None)
    for part in _PARTS:
        value = base.args.get(part)
        if value and not window.args.get(part):
            copied = [v.copy() for v in value] if isinstance(value, list) else value.copy()
            window.set(part, copied)


def _base(window: exp.Window) -> str | None:
    alias = window.args.get("alias")
    return alias.name if alias is not None else None


def _own_windows(select: exp.Select) -> Iterator[exp.Window]:
    """Those of the SELECT itself, not of its subqueries."""
    for node in select.walk(prune=lambda n: isinstance(n, exp.Query) and n is not select):
        if isinstance(node, exp.Window):
            yield node
