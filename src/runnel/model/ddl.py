"""A statement that takes something away from those who read it, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from runnel.model.names import TableName


class Taken(StrEnum):
    """What kind of thing is dropped, replaced or altered."""

    TABLE = "table"
    VIEW = "view"
    SCHEMA = "schema"
    FUNCTION = "function"


@dataclass(frozen=True, slots=True)
class SourceChange:
    """`columns` are those concerned, or None for all; of a schema, `name.schema` counts."""

    words: str
    kind: Taken
    name: TableName
    columns: tuple[str, ...] | None = None

    def concerns(self, used: tuple[str, ...]) -> bool:
        """Whether it concerns a reader that uses these columns."""
        if self.columns is None:
            return True
        return bool({c.lower() for c in self.columns} & {c.lower() for c in used})
