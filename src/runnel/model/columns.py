"""Columns and how the columns of a trace become what the user sees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

KEY = "__key"
WEIGHT = "__weight"
EPOCH = "__epoch"


@dataclass(frozen=True, slots=True)
class Column:
    """A name and a Spark type in its simple string form, such as `decimal(12,2)`."""

    name: str
    type: str


def holds_type(type_: str, *kinds: str) -> bool:
    """Whether a type is one of these, or nests one; fields may be called like types."""
    # A field's name is followed by a colon, a type by the end of what it stands in.
    words = "|".join(kinds)
    return re.search(rf"(?:^|[<,:])(?:{words})(?=[,> ]|$)", type_) is not None


def hashable_names(columns: Iterable[Column]) -> tuple[str, ...]:
    """The columns that can take part in `__key`: Spark hashes no maps."""
    return tuple(c.name for c in columns if "map<" not in c.type)


@dataclass(frozen=True, slots=True)
class Layout:
    """What a trace stores, and the readout: a map of each stored row to what the user sees.

    `stored` are the internal columns (c0, c1, ...); `key` those that `__key` hashes; `visible`
    pairs each user column with SQL over stored ones; `visible_when` filters rows (HAVING).
    """

    stored: tuple[Column, ...]
    key: tuple[str, ...]
    visible: tuple[tuple[Column, str], ...]
    visible_when: str | None = None
    is_state: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in self.visible)

    def to_json(self) -> dict[str, Any]:
        return {
            "stored": [[c.name, c.type] for c in self.stored],
            "key": list(self.key),
            "visible": [[c.name, c.type, sql] for c, sql in self.visible],
            "visible_when": self.visible_when,
            "is_state": self.is_state,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Layout:
        return Layout(
            stored=tuple(Column(n, t) for n, t in data["stored"]),
            key=tuple(data["key"]),
            visible=tuple((Column(n, t), sql) for n, t, sql in data["visible"]),
            visible_when=data["visible_when"],
            is_state=data["is_state"],
        )
