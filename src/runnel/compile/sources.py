"""Which tables a query reads, and the same text reading something else in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from runnel.compile.parse import parse
from runnel.model.names import TableName, quote


@dataclass(frozen=True, slots=True)
class TableReference:
    """One mention of a table: its name, where it stands in the text, whether it has an alias."""

    name: TableName
    start: int
    end: int
    has_alias: bool


def table_references(query: str) -> tuple[TableReference, ...]:
    """Every mention of a table that is not a CTE of the query itself."""
    tree = parse(query)
    offset = len(query) - len(query.lstrip())
    return tuple(
        TableReference(
            table_name(table),
            start=offset + _first(table).meta["start"],
            end=offset + table.this.meta["end"] + 1,
            has_alias=bool(table.alias),
        )
        for table in _tables(tree)
    )


def source_names(query: str) -> tuple[TableName, ...]:
    """The distinct tables the query reads, in order of first mention."""
    seen: dict[str, TableName] = {}
    for reference in table_references(query):
        seen.setdefault(reference.name.key, reference.name)
    return tuple(seen.values())


def redirect(query: str, replacement: Callable[[TableName], str]) -> str:
    """The user's own text, with each table name replaced (by position, so nothing else changes)."""
    out = query
    for reference in sorted(table_references(query), key=lambda r: r.start, reverse=True):
        target = replacement(reference.name)
        if not reference.has_alias:
            target = f"{target} AS {quote(reference.name.name)}"
        out = out[: reference.start] + target + out[reference.end :]
    return out


def table_name(table: exp.Table) -> TableName:
    """The name a syntax node stands for."""
    return TableName(table.db or "default", table.name)


def _first(table: exp.Table) -> exp.Identifier:
    for part in ("catalog", "db"):
        if table.args.get(part):
            return table.args[part]  # type: ignore[no-any-return]
    return table.this  # type: ignore[no-any-return]


def _tables(tree: exp.Expr) -> Iterator[exp.Table]:
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not _is_cte(table):
            yield table


def _is_cte(table: exp.Table) -> bool:
    """Whether a WITH clause in sight defines the name; a CTE sees only those before it."""
    if table.db:
        return False
    name = table.name.lower()
    inside: exp.Expr = table
    node: exp.Expr | None = table
    while node is not None:
        with_ = node.args.get("with_") or node.args.get("with")
        if with_ is not None:
            for cte in with_.expressions:
                if cte is inside and not with_.args.get("recursive"):
                    break
                if cte.alias.lower() == name:
                    return True
        if isinstance(node, exp.CTE):
            inside = node
        node = node.parent
    return False
