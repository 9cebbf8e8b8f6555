"""A translated expression: Spark's text for it, its PostgreSQL type, what it is if constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.errors import InvalidQuery

if TYPE_CHECKING:
    from runnel.compile.postgres.intervals import Interval
    from runnel.compile.postgres.types import Type


@dataclass(frozen=True, slots=True)
class Value:
    """`sql` can stand as an operand anywhere.

    `constant` is the text of a literal. `rounding` stands for a double brought to numeric without
    a scale: its fifteen digits as text, which only a scale makes a number of.
    """

    sql: str
    type: Type
    constant: str | None = None
    interval: Interval | None = None
    rounding: str | None = None

    @property
    def is_null(self) -> bool:
        return self.sql == "NULL"

    def integer(self) -> int | None:
        """The number, when it is a constant integer."""
        if self.constant is None or not self.type.is_integer:
            return None
        return int(self.constant)


def refused(construct: str, *, detail: str | None = None, hint: str | None = None) -> InvalidQuery:
    """The error for what Spark would answer differently, or not at all."""
    return InvalidQuery(
        f"{construct} is not translated from PostgreSQL",
        detail=detail,
        hint=hint or "docs/postgres-dialect.md lists what is; or write the query in Spark SQL",
    )


def construct(node: exp.Expr) -> str:
    """A piece of the query, short enough for an error."""
    shown = node.sql("postgres")
    return shown if len(shown) <= 60 else shown[:57] + "..."


def text_literal(text: str) -> str:
    """A string as Spark reads it back: there a backslash escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def call(name: str, *arguments: str) -> str:
    return f"{name}({', '.join(arguments)})"


def cast(sql: str, type_: Type) -> str:
    return f"CAST({bare(sql)} AS {type_.spark})"


def bare(sql: str) -> str:
    """The text without the parentheses around all of it; those of a subquery belong to it."""
    if not (sql.startswith("(") and sql.endswith(")")) or "SELECT" in sql:
        return sql
    depth, quote, escaped = 0, "", False
    for position, character in enumerate(sql):
        if quote:
            quote = quote if escaped or character != quote else ""
            escaped = character == "\\" and not escaped and quote == "'"
        elif character in "'`":
            quote = character
        else:
            depth += {"(": 1, ")": -1}.get(character, 0)
            if depth == 0 and position < len(sql) - 1:
                return sql
    return sql[1:-1]
