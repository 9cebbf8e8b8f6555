"""Stream tables that read each other, as one recursion.

Which rows a monotone query gives depends only on which rows its inputs have. So the rows of all
members that are sets are one set R(tag, values), the least that contains what each member's query
gives over it. A member that is not a set is put in its readers' place; its own query counts its
rows, over members whose rows are found by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runnel.compile.sources import TableReference, source_names, substitute
from runnel.errors import InvalidQuery
from runnel.model.columns import Column
from runnel.model.names import TableName, quote

TAG = "tag"


@dataclass(frozen=True, slots=True)
class Member:
    """A table of a cycle; `text` is its query, reading tables only."""

    name: TableName
    text: str
    columns: tuple[Column, ...]
    is_set: bool

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(name.key for name in source_names(self.text))

    def to_json(self) -> dict[str, Any]:
        return {
            "name": [self.name.schema, self.name.name],
            "text": self.text,
            "columns": [[c.name, c.type] for c in self.columns],
            "is_set": self.is_set,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Member:
        columns = tuple(Column(*column) for column in data["columns"])
        return Member(TableName(*data["name"]), data["text"], columns, data["is_set"])


@dataclass(frozen=True, slots=True)
class Component:
    """The members of a cycle; `name` is the table that keeps R."""

    name: TableName
    members: tuple[Member, ...]

    @property
    def sets(self) -> tuple[Member, ...]:
        return tuple(m for m in self.members if m.is_set)

    @property
    def values(self) -> tuple[Column, ...]:
        """The columns of R besides the tag: members share those of one type."""
        types: list[str] = []
        for member in self.sets:
            own = [c.type for c in member.columns]
            for type_ in dict.fromkeys(own):
                types += [type_] * (own.count(type_) - types.count(type_))
        return tuple(Column(f"v{i}", type_) for i, type_ in enumerate(types))

    def places(self, member: Member) -> tuple[str, ...]:
        """Which column of R each column of a member is kept in."""
        free = list(self.values)
        found = []
        for column in member.columns:
            place = next(v for v in free if v.type == column.type)
            free.remove(place)
            found.append(place.name)
        return tuple(found)

    def recursion(self) -> str:
        """R as a query over what lies outside the cycle."""
        name = quote(self.name.name)
        nothing = [f"CAST(NULL AS {c.type}) AS {c.name}" for c in self.values]
        branches = "\nUNION ALL\n".join(self._tagged(member, name) for member in self.sets)
        chosen = ", ".join([TAG, *(c.name for c in self.values)])
        return (
            f"WITH RECURSIVE {name} AS (\n"
            f"SELECT {', '.join([f'CAST(NULL AS int) AS {TAG}', *nothing])} WHERE FALSE\n"
            f"UNION\n({branches})\n) SELECT {chosen} FROM {name}"
        )

    def shown(self, member: Member, relation: str) -> str:
        """The rows of one set, from R."""
        places = zip(self.places(member), member.columns, strict=True)
        items = ", ".join(f"{place} AS {quote(c.name)}" for place, c in places)
        tag = self.sets.index(member)
        return f"SELECT {items} FROM {relation} WHERE {TAG} = {tag}"

    def body(self, member: Member, relation: str) -> str:
        """A member's query over R and what lies outside the cycle."""
        members = {m.name.key: m for m in self.members}

        def replacement(reference: TableReference) -> str | None:
            other = members.get(reference.name.key)
            if other is None:
                return None
            if other.is_set:
                return f"({self.shown(other, relation)})"
            return f"({self.body(other, relation)}\n)"

        return substitute(member.text, replacement)

    def _tagged(self, member: Member, relation: str) -> str:
        own = [f"c{i}" for i in range(len(member.columns))]
        kept = dict(zip(self.places(member), own, strict=True))
        items = [
            f"b.{kept[c.name]}" if c.name in kept else f"CAST(NULL AS {c.type})"
            for c in self.values
        ]
        tag = self.sets.index(member)
        body = self.body(member, relation)
        return f"SELECT {', '.join([str(tag), *items])} FROM ({body}\n) AS b({', '.join(own)})"

    def to_json(self) -> list[dict[str, Any]]:
        return [member.to_json() for member in self.members]

    @staticmethod
    def from_json(name: TableName, data: Iterable[Mapping[str, Any]]) -> Component:
        return Component(name, tuple(Member.from_json(member) for member in data))


def in_order(members: Iterable[Member]) -> tuple[Member, ...]:
    """Sets first, then each other member after those that it reads.

    Refuses members that go round without a set among them: their rows would be counted for ever.
    """
    members = tuple(members)
    ordered = [m for m in members if m.is_set]
    left = {m.name.key: m for m in members if not m.is_set}
    while left:
        ready = [key for key, m in left.items() if not m.reads & left.keys()]
        if not ready:
            raise _endless([str(m.name) for m in left.values()])
        ordered += [left.pop(key) for key in ready]
    return tuple(ordered)


def _endless(names: list[str]) -> InvalidQuery:
    return InvalidQuery(
        f"the rows of {', '.join(names)} would be counted without end",
        detail="they read each other, or themselves, and each row counts as often as it is found",
        hint="write UNION instead of UNION ALL, or SELECT DISTINCT, in one of them",
    )
