"""Names in sight: which column a PostgreSQL name means, and how it is written for Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from runnel.compile.dialect import SparkSql
from runnel.compile.postgres.types import Type
from runnel.errors import InvalidQuery
from runnel.model.names import quote

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset(SparkSql.Tokenizer.KEYWORDS) | frozenset(
    "USER DATE TIME TIMESTAMP VALUE KEY POSITION LOCALTIME CURRENT_TIME SOME ANY".split()
)


def write_name(name: str) -> str:
    """An identifier as Spark takes it, quoted where it must be."""
    if _PLAIN.fullmatch(name) and name.upper() not in _KEYWORDS:
        return name
    return quote(name)


def folded(identifier: exp.Expr) -> str:
    """PostgreSQL folds a name to lower case unless it is quoted."""
    is_quoted = bool(identifier.args.get("quoted"))
    return identifier.name if is_quoted else identifier.name.lower()


@dataclass(frozen=True, slots=True)
class Entry:
    """A column in sight. `written` replaces its name where it has to be computed."""

    name: str
    type: Type
    qualifier: str | None
    written: str | None = None
    only_qualified: bool = False

    def sql(self, is_qualified: bool) -> str:
        if self.written is not None:
            return self.written
        own = write_name(self.name)
        return f"{write_name(self.qualifier)}.{own}" if is_qualified and self.qualifier else own


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns of FROM, in the order of *; then those of the query around."""

    entries: tuple[Entry, ...] = ()
    outer: Scope | None = None
    aliases: frozenset[str] = frozenset()

    def with_aliases(self, names: Iterable[str]) -> Scope:
        """Columns called like one of the select list are qualified: Spark would mix them up."""
        return replace(self, aliases=frozenset(n.lower() for n in names))

    def find(self, name: str, qualifier: str | None) -> tuple[Entry, str] | None:
        """The column and its text; None when there is none of that name."""
        found = [e for e in self.entries if _fits(e, name, qualifier)]
        if len(found) > 1:
            raise InvalidQuery(
                f"column {name} is ambiguous",
                detail=" or ".join(f"{e.qualifier}.{e.name}" for e in found),
                hint="write the table's name or alias before it",
            )
        if found:
            is_qualified = qualifier is not None or name.lower() in self.aliases
            return found[0], found[0].sql(is_qualified)
        outer = self.outer.find(name, qualifier) if self.outer is not None else None
        return (outer[0], outer[0].sql(True)) if outer is not None else None

    def star(self, qualifier: str | None) -> list[tuple[Entry, str]]:
        if qualifier is None:
            shown = [e for e in self.entries if not e.only_qualified]
        else:
            shown = [e for e in self.entries if _same(e.qualifier, qualifier)]
        if not shown:
            raise InvalidQuery(f"{qualifier or ''}* stands for no column here")
        names = [e.name.lower() for e in shown]
        return [(e, e.sql(qualifier is not None or names.count(e.name.lower()) > 1)) for e in shown]


def _fits(entry: Entry, name: str, qualifier: str | None) -> bool:
    if not _same(entry.name, name):
        return False
    return not entry.only_qualified if qualifier is None else _same(entry.qualifier, qualifier)


def _same(left: str | None, right: str) -> bool:
    return left is not None and left.lower() == right.lower()
