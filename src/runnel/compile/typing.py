"""How the compiler learns types: it asks, and whoever runs it answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from runnel.model.columns import Column, holds_type

_COLLATED = re.compile(r"string collate (?!UTF8_BINARY\b)", re.IGNORECASE)


class Typer(Protocol):
    """Gives the Spark types of SQL expressions over typed columns."""

    def types(self, columns: Sequence[Column], expressions: Sequence[str]) -> tuple[str, ...]: ...


def decimal_parts(type_: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type's text."""
    if not type_.startswith("decimal("):
        return None
    precision, scale = type_[len("decimal(") : -1].split(",")
    return int(precision), int(scale)


def is_groupable(type_: str) -> bool:
    """Whether GROUP BY takes values of the type."""
    return not holds_type(type_, "variant")


def is_collated(type_: str) -> bool:
    """Whether values of the type contain texts of which different ones may compare equal."""
    return _COLLATED.search(type_) is not None


def is_comparable(type_: str) -> bool:
    """Whether values of the type can be compared with `<=>`."""
    return "map<" not in type_ and is_groupable(type_)


def is_orderable(type_: str) -> bool:
    """Whether ORDER BY takes values of the type."""
    return is_comparable(type_)


def has_floats(type_: str) -> bool:
    """Whether values of the type contain float or double, whose -0.0 grouping would normalise."""
    return holds_type(type_, "float", "double")
