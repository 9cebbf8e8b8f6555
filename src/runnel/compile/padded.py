"""Comparisons with CHAR(n) columns, which Spark makes by padding the shorter side with blanks.

It knows such a column from the table's schema, and forgets it wherever a column is computed. So
these queries are left to Spark as they are written. Columns are known by their names alone here,
wherever they come from: what is refused without need is refreshed FULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from runnel.compile.places import at
from runnel.errors import NotDifferentiable

_COMPARING = (
    exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.GT, exp.GTE, exp.LT, exp.LTE,
    exp.Between, exp.In, exp.DecodeCase, exp.EqualNull,
)  # fmt: skip


def refuse_padded(query: exp.Query, chars: Iterable[str]) -> None:
    """Raise for the first comparison with a column that may be one of `chars`, or carry it on."""
    names = {name.lower() for name in chars}
    if not names:
        return
    names = _carried(query, names)
    for node in query.walk():
        for column in _compared(node):
            if column is None or column.lower() in names:
                with at(node):
                    raise _refusal(column)


def _carried(query: exp.Query, names: set[str]) -> set[str]:
    """With the names under which such columns may be known further out."""
    listed = (column for alias in query.find_all(exp.TableAlias) for column in alias.columns)
    names = names | {column.name.lower() for column in listed}
    aliases = [(a.alias.lower(), _name(a.this)) for a in query.find_all(exp.Alias)]
    size = 0
    while size != len(names):
        size = len(names)
        names |= {alias for alias, name in aliases if name and name.lower() in names}
    return names


def _compared(node: exp.Expr) -> Iterator[str | None]:
    """The names of columns that a node compares; None stands for any."""
    if isinstance(node, exp.Join):
        if node.args.get("method") == "NATURAL":
            yield None
        yield from (name.name for name in node.args.get("using") or ())
    elif isinstance(node, exp.Case) and node.this is not None:
        yield from _names([node.this, *(branch.this for branch in node.args["ifs"])])
    elif isinstance(node, _COMPARING):
        yield from _names(node.iter_expressions())


def _names(operands: Iterable[exp.Expr | None]) -> Iterator[str]:
    for operand in operands:
        inside = operand.expressions if isinstance(operand, exp.Tuple) else [operand]
        yield from (name for part in inside if (name := _name(part)))


def _name(operand: exp.Expr | None) -> str | None:
    """The name of a column, or of a column's field, that stands by itself."""
    bare = operand.unnest() if isinstance(operand, exp.Paren) else operand
    if isinstance(bare, exp.Column):
        return bare.name
    return bare.expression.name if isinstance(bare, exp.Dot) else None


def _refusal(column: str | None) -> NotDifferentiable:
    what = f"a comparison of {column}, which is CHAR(n)" if column else "NATURAL JOIN with CHAR(n)"
    return NotDifferentiable(
        what,
        detail="Spark pads both sides of it to one length, as the tables' schemas say",
        hint="compare rtrim(column), or use refresh mode FULL or AUTO",
    )
