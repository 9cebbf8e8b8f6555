"""Name resolution: which column of which input a name in the query means."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from runnel.errors import InvalidQuery
from runnel.model.columns import Column


@dataclass(frozen=True, slots=True)
class Entry:
    """A column in sight: `qualifier` is its table's alias; merged USING columns have none."""

    qualifier: str | None
    name: str | None
    column: Column
    schema: str | None = None
    only_qualified: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """Everything a FROM clause brings into sight, in star order; then what the query around has."""

    entries: tuple[Entry, ...]
    outer: Scope | None = None

    def star(self) -> tuple[Entry, ...]:
        """What `*` stands for."""
        return tuple(e for e in self.entries if not e.only_qualified)

    def table(self, parts: list[str]) -> tuple[Entry, ...]:
        """The columns of the table that a name means, also with its schema; none if it is none."""
        *before, name = parts
        schema = before[-1] if before else None
        return tuple(
            e
            for e in self.entries
            if _same(e.qualifier, name) and (schema is None or _same(e.schema, schema))
        )

    def resolve(self, parts: list[str]) -> tuple[Column, list[str]] | None:
        """The column, and the parts left over that are struct fields; None when nothing fits."""
        found = self.resolve_here(parts)
        if found is None and self.outer is not None:
            return self.outer.resolve(parts)
        return found

    def resolve_here(self, parts: list[str]) -> tuple[Column, list[str]] | None:
        """The same, the query around left out."""
        candidates: list[tuple[str | None, str | None, int]] = []
        if len(parts) >= 4 and _same(parts[0], "spark_catalog"):
            candidates.append((parts[1], parts[2], 3))
        if len(parts) >= 3:
            candidates.append((parts[0], parts[1], 2))
        if len(parts) >= 2:
            candidates.append((None, parts[0], 1))
        candidates.append((None, None, 0))
        for schema, qualifier, used in candidates:
            found = self._matches(schema, qualifier, parts[used])
            if len(found) > 1:
                raise InvalidQuery(
                    f"column {'.'.join(parts)} is ambiguous",
                    detail=f"it could be {' or '.join(_describe(e) for e in found)}",
                    hint="write the table's name or alias before it",
                )
            if found:
                return found[0].column, parts[used + 1 :]
        return None

    def spell(self, column: str) -> exp.Expr | None:
        """How the query's text calls a column of the tree; None when it has no name there."""
        for entry in self.entries:
            if entry.column.name == column and entry.name is not None:
                return exp.column(entry.name, table=entry.qualifier, quoted=True)
        return None

    def origin(self, column: str, name: str | None) -> Entry | None:
        """The table's column of that name, which USING may have merged with another."""
        for entry in self.entries:
            if entry.column.name == column and entry.qualifier and _same(entry.name, name or ""):
                return entry
        return None

    def _matches(self, schema: str | None, qualifier: str | None, name: str) -> list[Entry]:
        return [
            e
            for e in self.entries
            if _same(e.name, name)
            and (not e.only_qualified if qualifier is None else _same(e.qualifier, qualifier))
            and (schema is None or _same(e.schema, schema))
        ]


def parts_of(column: exp.Column) -> list[str]:
    """The identifiers of a column reference, left to right."""
    return [part.name for part in column.parts]


def _same(left: str | None, right: str) -> bool:
    return left is not None and left.lower() == right.lower()


def _describe(entry: Entry) -> str:
    return f"{entry.qualifier}.{entry.name}" if entry.qualifier else str(entry.name)
