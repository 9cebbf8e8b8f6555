"""Table names: case-insensitive, optionally qualified and quoted."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runnel.errors import UserError

OF_CYCLE, OF_PART = "__cycle_", "__part_"
RESERVED = (OF_CYCLE, OF_PART)
"""How the names of tables begin that are not the user's: what holds the rows of a cycle, or a
part of a query."""

_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s`.]+))\s*")


@dataclass(frozen=True, slots=True)
class TableName:
    """A schema and a table; `key` is what the catalog compares, `sql` what Spark is told."""

    schema: str
    name: str

    @staticmethod
    def parse(text: str, default_schema: str = "default") -> TableName:
        parts: list[str] = []
        position = 0
        while position < len(text):
            match = _PART.match(text, position)
            if match is None:
                raise _bad_name(text)
            parts.append((match.group(1) or "").replace("``", "`") or match.group(2))
            position = match.end()
            if position < len(text):
                if text[position] != "." or position + 1 == len(text):
                    raise _bad_name(text)
                position += 1
        if len(parts) == 3 and parts[0].lower() == "spark_catalog":
            parts = parts[1:]
        if len(parts) == 1:
            return TableName(default_schema, parts[0])
        if len(parts) == 2:
            return TableName(parts[0], parts[1])
        raise _bad_name(text)

    @property
    def key(self) -> str:
        return f"{self.schema.lower()}.{self.name.lower()}"

    @property
    def sql(self) -> str:
        return f"{quote(self.schema)}.{quote(self.name)}"

    def __str__(self) -> str:
        return self.name if self.schema.lower() == "default" else f"{self.schema}.{self.name}"


def is_reserved(shown: str) -> bool:
    """Whether a name as it is shown is that of a table which is not the user's."""
    return shown.rpartition(".")[2].lower().startswith(RESERVED)


def quote(identifier: str) -> str:
    """Quote an identifier for Spark SQL."""
    return "`" + identifier.replace("`", "``") + "`"


def _bad_name(text: str) -> UserError:
    return UserError(
        f"{text!r} is not a table name",
        detail="expected name or schema.name, each part plain or in backticks",
        hint="for example sales or mart.sales",
    )
