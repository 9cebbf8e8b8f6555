"""Views a query reads: what was found under their names, and what the query came to by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runnel.model.columns import Column
from runnel.model.names import TableName


@dataclass(frozen=True, slots=True)
class View:
    """A view as it was found.

    `schema` is where its text looks for names; `outputs` are the columns of its text that
    `columns` shows, in this order; `stamp` differs for every other definition. `is_new`: the table
    that it is stored with does not read it in this form yet.
    """

    name: TableName
    is_temporary: bool
    text: str
    schema: str
    columns: tuple[Column, ...]
    outputs: tuple[str, ...]
    stamp: str
    is_new: bool = False

    @property
    def key(self) -> str:
        return f"{'temporary' if self.is_temporary else 'catalog'}:{self.name.key}"

    def __str__(self) -> str:
        return f"{self.name}{' (temporary)' if self.is_temporary else ''}"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": [self.name.schema, self.name.name],
            "is_temporary": self.is_temporary,
            "text": self.text,
            "schema": self.schema,
            "columns": [[c.name, c.type] for c in self.columns],
            "outputs": list(self.outputs),
            "stamp": self.stamp,
            **({"is_new": True} if self.is_new else {}),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> View:
        return View(
            name=TableName(*data["name"]),
            is_temporary=data["is_temporary"],
            text=data["text"],
            schema=data["schema"],
            columns=tuple(Column(n, t) for n, t in data["columns"]),
            outputs=tuple(data["outputs"]),
            stamp=data["stamp"],
            is_new=data.get("is_new", False),
        )


@dataclass(frozen=True, slots=True)
class Resolution:
    """What is evaluated in a query's place: its text with the views put in, and these views.

    `follows_time`: it asks for the current time, which is the data timestamp of the refresh.
    """

    text: str
    views: tuple[View, ...] = ()
    follows_time: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "views": [view.to_json() for view in self.views],
            "follows_time": self.follows_time,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Resolution:
        return Resolution(
            text=data["text"],
            views=tuple(View.from_json(view) for view in data["views"]),
            follows_time=data["follows_time"],
        )
