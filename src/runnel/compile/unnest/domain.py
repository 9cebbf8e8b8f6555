"""The distinct values of the outer columns that a subquery reads: what it must be evaluated for.

Grouping takes -0.0 for 0.0 and functions do not: such values are told apart by their text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runnel.algebra.nodes import (
    Filter,
    InnerJoin,
    JoinKind,
    Node,
    OuterJoin,
    Project,
    SemiJoin,
    distinct,
)
from runnel.algebra.scalar import Scalar, join, wrap
from runnel.compile.typing import is_comparable
from runnel.errors import NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder

_AS_TEXT = frozenset({"float", "double"})


@dataclass(frozen=True, slots=True)
class Domain:
    """The outer columns, and the node that gives their distinct values."""

    builder: Builder
    columns: tuple[Column, ...]
    node: Node

    @staticmethod
    def of(builder: Builder, node: Node, names: frozenset[str]) -> Domain:
        columns = tuple(c for c in node.columns if c.name in names)
        for column in columns:
            if not is_comparable(column.type):
                raise NotDifferentiable(
                    f"a subquery that reads a {column.type} of the outer query",
                    hint="compute what it needs of it in a subquery in FROM",
                )
        items = tuple((builder.fresh(_key_type(c)), _key(c)) for c in columns)
        return Domain(builder, columns, distinct(Project(_source(node, names), items)))

    def copy(self) -> tuple[Node, tuple[Column, ...]]:
        """The values under names of their own, so that a join can hold them twice."""
        keys = tuple(self.builder.fresh(c.type) for c in self.node.columns)
        pairs = zip(keys, self.node.columns, strict=True)
        return Project(self.node, tuple((k, Scalar.column(c.name)) for k, c in pairs)), keys

    def values(self, keys: tuple[Column, ...]) -> dict[str, Scalar]:
        """What stands for each outer column where these keys are in sight."""
        return {c.name: _value(c, k) for c, k in zip(self.columns, keys, strict=True)}

    def ties(self, keys: tuple[Column, ...]) -> tuple[Scalar, ...]:
        """The outer rows that the keys belong to."""
        return tuple(
            join(wrap("", _key(c), " <=> "), Scalar.column(k.name))
            for c, k in zip(self.columns, keys, strict=True)
        )


def same(left: tuple[Column, ...], right: tuple[Column, ...]) -> tuple[Scalar, ...]:
    """Two copies of the values agree."""
    return tuple(
        Scalar(("", " <=> ", ""), (a.name, b.name)) for a, b in zip(left, right, strict=True)
    )


def _source(node: Node, names: frozenset[str]) -> Node:
    """The smallest part of the outer rows that has all their values; more values do no harm."""
    match node:
        case InnerJoin():
            for child in node.inputs:
                if names <= {c.name for c in child.columns}:
                    return _filtered(_source(child, names), node.conjuncts)
        case OuterJoin(kind=JoinKind.LEFT, left=left) | SemiJoin(left=left):
            if names <= {c.name for c in left.columns}:
                return _source(left, names)
        case Filter():
            return _filtered(_source(node.input, names), node.conjuncts)
    return node


def _filtered(node: Node, conjuncts: tuple[Scalar, ...]) -> Node:
    known = {c.name for c in node.columns}
    own = tuple(c for c in conjuncts if c.reads <= known)
    return Filter(node, own) if own else node


def _key_type(column: Column) -> str:
    return "string" if column.type in _AS_TEXT else column.type


def _key(column: Column) -> Scalar:
    if column.type in _AS_TEXT:
        return wrap("CAST(", Scalar.column(column.name), " AS STRING)")
    return Scalar.column(column.name)


def _value(column: Column, key: Column) -> Scalar:
    if column.type in _AS_TEXT:
        return wrap("CAST(", Scalar.column(key.name), f" AS {column.type})")
    return Scalar.column(key.name)
