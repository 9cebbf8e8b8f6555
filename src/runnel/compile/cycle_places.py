"""Where in a query an operator stands that a cycle must not go through."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from runnel.compile.parse import parse
from runnel.compile.places import at, point
from runnel.compile.sources import table_name
from runnel.errors import UserError

_KINDS: tuple[tuple[str, tuple[type[exp.Expr], ...]], ...] = (
    ("the aggregate", (exp.AggFunc,)),
    ("a window", (exp.Window,)),
    ("LIMIT", (exp.Limit,)),
    ("NOT EXISTS", (exp.Except, exp.Not)),
    ("INTERSECT ALL", (exp.SetOperation,)),
    ("a subquery", (exp.Subquery, exp.AggFunc)),
    ("WITH RECURSIVE", (exp.With,)),
)


def refuse_at(error: UserError, query: str, found: str, keys: Collection[str]) -> UserError:
    """The error, with the place of the first such operator whose SELECT reads one of the tables."""
    kinds = next((kinds for words, kinds in _KINDS if found.startswith(words)), (exp.Join,))
    for node in parse(query).find_all(*kinds):
        around = node if isinstance(node, exp.Query) else node.find_ancestor(exp.Select)
        tables = around.find_all(exp.Table) if around is not None else ()
        if any(table_name(table).key in keys for table in tables):
            try:
                with at(node):
                    raise error
            except UserError:
                point(error, query)
            break
    return error
