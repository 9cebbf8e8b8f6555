"""UNPIVOT: each row once for every listed column, with its name and its value; row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.algebra.nodes import Filter, Generate, Node
from runnel.algebra.scalar import Scalar, join, wrap
from runnel.compile.dialect import SparkSql
from runnel.compile.generators import stacked
from runnel.compile.scalars import resolve, to_scalar
from runnel.compile.scope import Entry, Scope
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder


def unpivoted(builder: Builder, node: Node, scope: Scope, pivot: exp.Pivot) -> tuple[Node, Scope]:
    """The other columns, the name column, then the value columns."""
    if len(pivot.expressions) != 1 or len(pivot.args["fields"]) != 1:
        raise NotDifferentiable(
            f"this form of UNPIVOT: {pivot.sql('spark')[:60]}",
            hint="write UNPIVOT (value FOR name IN (columns)), or LATERAL VIEW stack(...)",
        )
    values, field = _several(pivot.expressions[0]), pivot.args["fields"][0]
    listed = [_listed(entry, scope, len(values)) for entry in field.expressions]
    function, types = stacked(builder, node, listed, "UNPIVOT")
    columns = tuple(builder.fresh(type_) for _, type_ in types)
    made: Node = Generate(node, function, columns)
    if not pivot.args.get("include_nulls"):
        made = Filter(made, (_is_any_set(columns[1:]),))
    gone = {name for row in listed for cell in row[1:] for name in cell.columns}
    alias = pivot.alias or None
    kept = [e for e in scope.star() if e.column.name not in gone]
    names = [field.this.name, *(value.name for value in values)]
    entries = [Entry(alias or e.qualifier, e.name, e.column) for e in kept]
    entries += [Entry(alias, name, c) for name, c in zip(names, columns, strict=True)]
    return made, Scope(tuple(entries))


def _listed(entry: exp.Expr, scope: Scope, width: int) -> list[Scalar]:
    """What IN lists: the text that names it, and its columns."""
    inner = entry.this if isinstance(entry, exp.PivotAlias) else entry
    written = _several(inner.unnest())
    if len(written) != width or not all(isinstance(c, exp.Column) for c in written):
        raise InvalidQuery(
            f"UNPIVOT lists {inner.sql('spark')}, where {width} columns were expected"
        )
    name = "_".join(c.name for c in written)
    if isinstance(entry, exp.PivotAlias):
        name = entry.args["alias"].name
    label = Scalar.constant(exp.Literal.string(name).sql(SparkSql))
    values = [to_scalar(resolve(c, scope)) for c in written]
    if any(value.bare_column is None for value in values):
        raise NotDifferentiable("UNPIVOT of a field of a struct", hint="select it in a subquery")
    return [label, *values]


def _several(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _is_any_set(columns: tuple[Column, ...]) -> Scalar:
    result = wrap("", Scalar.column(columns[0].name), " IS NOT NULL")
    for column in columns[1:]:
        result = join(result, wrap(" OR ", Scalar.column(column.name), " IS NOT NULL"))
    return result
