"""Relations written out in the query, VALUES and range(): they never change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.algebra.nodes import Generate, Node, OneRow
from runnel.algebra.scalar import Scalar
from runnel.compile.generators import Outputs, stacked
from runnel.compile.scalars import resolve, to_scalar
from runnel.compile.scope import Entry, Scope
from runnel.errors import InvalidQuery, NotDifferentiable

if TYPE_CHECKING:
    from runnel.compile.build import Builder

_MOST_NUMBERS = 10_000_000


def inline_table(builder: Builder, values: exp.Values) -> tuple[Node, Scope]:
    """VALUES (...), (...) AS t(a, b): one row that is stacked."""
    rows = [row.expressions for row in values.expressions]
    if any(isinstance(row[0], exp.Struct) for row in rows if len(row) == 1):
        # Spark takes some structs for the row itself.
        raise NotDifferentiable("VALUES whose rows are structs", hint="write (a, b), (c, d)")
    cells = [[to_scalar(resolve(cell, Scope(()))) for cell in row] for row in rows]
    if len({len(row) for row in cells}) != 1:
        raise InvalidQuery("the rows of VALUES have different numbers of columns")
    function, types = stacked(builder, OneRow(), cells, "VALUES")
    columns = tuple(builder.fresh(type_) for _, type_ in types)
    table = values.args.get("alias")
    names = [c.name for c in (table.args.get("columns") if table else None) or ()]
    if names and len(names) != len(columns):
        raise InvalidQuery(f"{len(names)} names for {len(columns)} columns of VALUES")
    called = names or [f"col{i}" for i in range(1, len(columns) + 1)]
    entries = [
        Entry(values.alias or None, name, c) for name, c in zip(called, columns, strict=True)
    ]
    return Generate(OneRow(), function, columns), Scope(tuple(entries))


def range_table(
    builder: Builder, arguments: Sequence[exp.Expr], names: Sequence[str]
) -> tuple[Node, Outputs]:
    """range([start,] end [, step [, parts]])."""
    numbers = [_number(a) for a in arguments[:3]]
    if not 1 <= len(arguments) <= 4 or len(names) > 1:
        raise InvalidQuery("range() takes an end, or a start, an end and a step")
    start, end = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    step = numbers[2] if len(numbers) == 3 else 1
    values = range(start, end, step)
    if len(values) > _MOST_NUMBERS:
        raise NotDifferentiable(f"range() of {len(values)} rows", hint="write it to a table")
    sequence = "sequence({}, {}, {})".format(
        *(f"CAST({n} AS BIGINT)" for n in (start, values[-1] if values else start, step))
    )
    if not values:
        sequence = "CAST(array() AS array<bigint>)"
    column = builder.fresh("bigint")
    made = Generate(OneRow(), Scalar.constant(f"explode({sequence})"), (column,))
    return made, ((names[0] if names else "id", column),)


def _number(node: exp.Expr) -> int:
    text = to_scalar(node).render()
    if not text.lstrip("-").isdecimal():
        raise NotDifferentiable(f"range() with {text}", hint="write its numbers out")
    return int(text)
