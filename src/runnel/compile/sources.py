"""Which tables a query reads, and the same text reading something else in their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from runnel.compile.parse import parse
from runnel.compile.relation_names import table_word
from runnel.model.names import TableName, quote


@dataclass(frozen=True, slots=True)
class TableReference:
    """One mention of a table: its name, where it stands in the text, how it is written there."""

    name: TableName
    start: int
    end: int
    has_alias: bool
    is_qualified: bool
    catalog: str
    word: tuple[int, int] | None = None
    """Where TABLE stands, if the mention is TABLE name."""


def table_references(query: str, schema: str = "default") -> tuple[TableReference, ...]:
    """Every mention of a table that is not a CTE of the query itself.

    `schema` is what a name without one means.
    """
    tree = parse(query)
    offset = _offset(query)
    return tuple(
        TableReference(
            table_name(table, schema),
            start=offset + _first(table).meta["start"],
            end=offset + table.this.meta["end"] + 1,
            has_alias=bool(table.alias),
            is_qualified=bool(table.db),
            catalog=table.catalog,
            word=_shifted(table_word(table), offset),
        )
        for table in named_tables(tree)
    )


def source_names(query: str) -> tuple[TableName, ...]:
    """The distinct tables the query reads, in order of first mention."""
    seen: dict[str, TableName] = {}
    for reference in table_references(query):
        seen.setdefault(reference.name.key, reference.name)
    return tuple(seen.values())


def redirect(query: str, replacement: Callable[[TableName], str]) -> str:
    """The user's own text, with each table name replaced (by position, so nothing else changes)."""
    return substitute(query, lambda reference: replacement(reference.name))


def substitute(
    query: str, replacement: Callable[[TableReference], str | None], schema: str = "default"
) -> str:
    """Like redirect, by mention; one for which there is no replacement stays as it is."""
    out = query
    for start, end, text, alias in sorted(edits(query, replacement, schema), reverse=True):
        out = out[:start] + text + alias + out[end:]
    return out


def edits(
    query: str, replacement: Callable[[TableReference], str | None], schema: str = "default"
) -> list[tuple[int, int, str, str]]:
    """What is to be done for that: from where to where, the new text, and what follows it."""
    references = table_references(query, schema)
    texts = [(r, text) for r in references if (text := replacement(r)) is not None]
    names = _aliases(r.name for r in references if not r.has_alias)
    aliases = {r.name.key: names[r.name.key] for r, _ in texts if not r.has_alias}
    found = [
        (r.start, r.end, text, "" if r.has_alias else f" AS {aliases[r.name.key]}")
        for r, text in texts
    ]
    # TABLE wants a name; FROM by itself is the same query.
    words = [(*r.word, "FROM", "") for r, _ in texts if r.word is not None]
    return [*found, *words, *((*edit, "") for edit in _qualifiers(query, aliases))]


def _shifted(word: tuple[int, int] | None, offset: int) -> tuple[int, int] | None:
    return (word[0] + offset, word[1] + offset + 1) if word is not None else None


def _aliases(names: Iterable[TableName]) -> dict[str, str]:
    """What tables without an alias are called; tables of one name in two schemas differ."""
    named = {name.key: name for name in names}
    count = Counter(name.name.lower() for name in named.values())
    return {
        key: quote(name.name if count[name.name.lower()] == 1 else key)
        for key, name in named.items()
    }


def _qualifiers(query: str, aliases: dict[str, str]) -> Iterator[tuple[int, int, str]]:
    """Where a column is qualified with a table's schema, which an alias does not have."""
    offset = _offset(query)
    for column in parse(query).find_all(exp.Column):
        parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
        first = 1 if parts and parts[0].name.lower() == "spark_catalog" else 0
        if len(column.parts) - first < 3:
            continue
        alias = aliases.get(TableName(parts[first].name, parts[first + 1].name).key)
        if alias is not None:
            start, end = parts[0].meta["start"], parts[first + 1].meta["end"]
            yield offset + start, offset + end + 1, alias


def _offset(query: str) -> int:
    """The parser counts from the first character that is not blank."""
    return len(query) - len(query.lstrip())


def table_name(table: exp.Table, schema: str = "default") -> TableName:
    """The name a syntax node stands for."""
    return TableName(table.db or schema, table.name)


def _first(table: exp.Table) -> exp.Identifier:
    for part in ("catalog", "db"):
        if table.args.get(part):
            return table.args[part]  # type: ignore[no-any-return]
    return table.this  # type: ignore[no-any-return]


def named_tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """The tables in a tree that have a name and are no CTE of it."""
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not is_cte(table):
            yield table


def is_cte(table: exp.Table) -> bool:
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
