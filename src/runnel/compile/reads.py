"""Which tables any statement may read, whether or not it is a query of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from runnel.compile.dialect import SparkSql
from runnel.compile.sources import named_tables, table_name
from runnel.errors import InvalidQuery
from runnel.model.names import TableName

_WORD = re.compile(r"(?:`((?:[^`]|``)+)`|([^\W\d]\w*))(?:\s*\.\s*(?:`((?:[^`]|``)+)`|(\w+)))?")
_NO_READING = (exp.Drop, exp.Alter, exp.Set, exp.Describe)


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a statement; one without a schema may mean a temporary view."""

    name: TableName
    is_free: bool


@dataclass(frozen=True, slots=True)
class Reads:
    """The names a statement may read, more rather than fewer; a query writes nothing."""

    mentions: tuple[Mention, ...]
    is_query: bool


def statement_reads(text: str, schema: str = "default") -> Reads:
    """What is not understood may read whatever one of its words names."""
    trees = _parsed(text)
    if trees is None or not all(_is_understood(tree) for tree in trees):
        return Reads(_distinct(_words(text)), False)
    reading = [tree for tree in trees if not isinstance(tree, _NO_READING)]
    tables = (table for tree in reading for table in named_tables(tree))
    mentions = (Mention(table_name(table, schema), not table.db) for table in tables)
    return Reads(_distinct(mentions), all(isinstance(tree, exp.Query) for tree in trees))


def _parsed(text: str) -> list[exp.Expr] | None:
    try:
        found = sqlglot.parse(text, dialect=SparkSql)
    except (SqlglotError, InvalidQuery):
        return None
    return [tree for tree in found if tree is not None]


def _is_understood(tree: exp.Expr) -> bool:
    """Not a command taken as a whole, nor a table given by an expression."""
    if isinstance(tree, (exp.Command, exp.Alias, exp.Column)) or tree.find(exp.Command):
        return False
    return all(isinstance(table.this, exp.Identifier) for table in tree.find_all(exp.Table))


def _words(text: str) -> Iterator[Mention]:
    """Every word, and every pair of words with a dot between, also inside strings."""
    for match in _WORD.finditer(text):
        first = (match.group(1) or "").replace("``", "`") or match.group(2)
        second = (match.group(3) or "").replace("``", "`") or match.group(4)
        if second:
            yield Mention(TableName(first, second), False)
        yield Mention(TableName("default", first), True)


def _distinct(mentions: Iterator[Mention]) -> tuple[Mention, ...]:
    return tuple({(m.name.key, m.is_free): m for m in mentions}.values())
