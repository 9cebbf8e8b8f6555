"""Keys under a collation: of texts that compare equal and look different, any may be shown."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from runnel.compile.places import at
from runnel.errors import InvalidQuery

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
