"""A translated query: Spark's text, and the names and types of its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from runnel.compile.postgres.types import Type
from runnel.model.columns import Column
from runnel.model.names import TableName

Columns = tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class Relation:
    sql: str
    columns: Columns


@dataclass(frozen=True, slots=True)
class Known:
    """What can be read: CTEs by name, and tables by whoever knows their columns."""

    columns_of: Callable[[TableName], tuple[Column, ...]]
    ctes: Mapping[str, Columns]

    def with_cte(self, name: str, columns: Columns) -> Known:
        return Known(self.columns_of, {**self.ctes, name.lower(): columns})
