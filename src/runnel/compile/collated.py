"""Texts under a collation: of those that compare equal and look different, any may be shown.

As keys they are refused in every mode. As columns of any kind they cannot be kept differentially:
changes are summed by all columns, where one such text would cancel another. Comparisons may have
one, since they give no text.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from runnel.algebra.nodes import Node, walk
from runnel.compile.places import at
from runnel.compile.typing import is_collated
from runnel.errors import InvalidQuery, NotDifferentiable

_EXACT = "UTF8_BINARY"


def refuse_collated_keys(select: exp.Select) -> None:
    """Raise for GROUP BY and DISTINCT over a collation by which different texts are equal."""
    for key in _keys(select):
        for node in key.walk():
            if _is_collated(node) and not isinstance(node.parent, exp.Predicate):
                with at(key):
                    raise InvalidQuery(
                        "GROUP BY or DISTINCT under a collation is not deterministic",
                        detail="which of the texts that compare equal is shown depends on the "
                        "order in which Spark reads the rows",
                        hint="group by lower(x), or by collation_key() and show min(x)",
                    )


def refuse_collated_columns(tree: Node, syntax: exp.Query) -> None:
    """Raise for a column with a collation, wherever it comes from: only its type tells."""
    for column in (column for node in walk(tree) for column in node.columns):
        if is_collated(column.type):
            with at(next((n for n in syntax.walk() if _is_collated(n)), syntax)):
                raise NotDifferentiable(
                    f"a column of type {column.type}",
                    detail="a change is summed by all columns, where texts that compare equal "
                    "under a collation would be one",
                    hint="write lower(x), or x COLLATE UTF8_BINARY, and use the collation in "
                    "comparisons only",
                )


def _keys(select: exp.Select) -> Iterator[exp.Expr]:
    items = [item.unalias() for item in select.expressions]
    if select.args.get("distinct"):
        yield from items
    group = select.args.get("group")
    named = {i.alias.lower(): i.unalias() for i in select.expressions if i.alias}
    for key in group.expressions if group is not None else ():
        is_place = isinstance(key, exp.Literal) and key.name.isdigit()
        if is_place and 1 <= int(key.name) <= len(items):
            yield items[int(key.name) - 1]
        else:
            yield named.get(key.name.lower(), key) if isinstance(key, exp.Column) else key


def _is_collated(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous) and node.name.lower() == "collate":
        return str(node.expressions[-1].name).upper() != _EXACT
    return isinstance(node, exp.Collate) and str(node.expression.name).upper() != _EXACT
