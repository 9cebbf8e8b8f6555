"""Equalities between something of a subquery and something of the query around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one

from runnel.algebra.scalar import Scalar, join, wrap
from runnel.compile.dialect import SparkSql
from runnel.compile.scalars import mark, to_scalar
from runnel.compile.typing import decimal_parts
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_FLOATS = frozenset({"float", "double"})


@dataclass(frozen=True, slots=True)
class Tie:
    """inner = outer, or inner <=> outer."""

    operator: str
    inner: Scalar
    outer: Scalar

    def to(self, key: Column) -> Scalar:
        """The same condition, where a column holds the inner side."""
        left = wrap("", Scalar.column(key.name), f" {self.operator} (")
        return join(left, wrap("", self.outer, ")"))


def ties_of(
    builder: Builder, conditions: tuple[Scalar, ...], outer: frozenset[str]
) -> tuple[Tie, ...] | None:
    """All conditions as ties, or None when one is something else."""
    found = [_tie(builder, condition, outer) for condition in conditions]
    ties = tuple(tie for tie in found if tie is not None)
    return ties if len(ties) == len(found) else None


def to_expression(scalar: Scalar) -> exp.Expr:
    """The syntax of a scalar, its columns as marks."""
    return parse_one(scalar.render(lambda name: mark(name).name), dialect=SparkSql)


def _tie(builder: Builder, condition: Scalar, outer: frozenset[str]) -> Tie | None:
    node = to_expression(condition).unnest()
    if not isinstance(node, (exp.EQ, exp.NullSafeEQ)):
        return None
    operator = "=" if isinstance(node, exp.EQ) else "<=>"
    left, right = (to_scalar(side.unnest()) for side in (node.left, node.right))
    for inner, other in ((left, right), (right, left)):
        if inner.reads and not inner.reads & outer and other.reads & outer:
            tie = Tie(operator, inner, other)
            return tie if _decides(builder, tie) and other.reads <= outer else None
    return None


def _decides(builder: Builder, tie: Tie) -> bool:
    """Whether at most one inner value equals an outer one: not '1' and '01', both equal to 1."""
    left, right = builder.types_of([tie.inner, tie.outer])
    if left == right or {left, right} <= _FLOATS:
        return True
    return all(t in _INTEGERS or decimal_parts(t) is not None for t in (left, right))
