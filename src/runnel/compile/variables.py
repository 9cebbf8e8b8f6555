"""Names in a query that are neither columns nor given in it: session variables, or mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from runnel.compile.parse import parse
from runnel.model.names import quote


def unknown_names(query: str, columns: Iterable[str]) -> tuple[str, ...]:
    """The references that begin with a name nobody gives; as SQL, each once."""
    tree = parse(query)
    known = {name.lower() for name in (*columns, *_given(tree))}
    found: dict[str, None] = {}
    for column in tree.find_all(exp.Column):
        parts = [part.name for part in column.parts]
        if parts[0].lower() not in known and not isinstance(column.this, exp.Star):
            found[".".join(quote(part) for part in parts)] = None
    return tuple(found)


def _given(tree: exp.Query) -> Iterator[str]:
    for node in tree.walk():
        match node:
            case exp.Alias() | exp.CTE():
                yield node.alias
            case exp.TableAlias():
                yield node.name
                yield from (column.name for column in node.args.get("columns") or ())
            case exp.Aliases():
                yield from (alias.name for alias in node.expressions)
            case exp.Table():
                yield from (part for part in (node.name, node.db, node.catalog) if part)
            case exp.Lambda():
                yield from (parameter.name for parameter in node.expressions)
