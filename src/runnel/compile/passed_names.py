"""Names of tables that a pipe passes on: FROM a |> JOIN b ON ... |> EXTEND ... |> WHERE b.x > 1.

What stands before an operator is read as a subquery, and marked as one that passes them on. There
is no such subquery in SQL, so a query that has to be written anew cannot use these names.
"""

from __future__ import annotations

from sqlglot import exp

from runnel.compile.places import at
from runnel.errors import InvalidQuery

_PASSES = "passes_names"


def pass_names(node: exp.Subquery) -> None:
    """Mark a subquery as what stands before a pipe."""
    node.meta[_PASSES] = True


def passes_names(node: exp.Expr) -> bool:
    """Whether it stands for what comes before a pipe."""
    return bool(node.meta.get(_PASSES))


def refuse_passed_names(tree: exp.Expr) -> None:
    """Raise for such a name in a query that is to be written anew."""
    column = column_by_passed_name(tree)
    if column is None:
        return
    with at(column):
        raise InvalidQuery(
            f"{column.sql('spark')} behind a pipe, in a query that leaves an order open",
            detail="it is written anew with the order of rows, or of what is collected, completed; "
            "and with subqueries for pipes",
            hint="give the rows a name with |> AS, or leave the table's name out",
        )


def column_by_passed_name(tree: exp.Expr) -> exp.Column | None:
    """A column that is called by such a name, if there is one."""
    for node in tree.find_all(exp.Subquery):
        select = node.parent_select
        if not passes_names(node) or select is None:
            continue
        hidden = _tables(node) - {_called(item) for item in _items(select)}
        for column in select.find_all(exp.Column):
            if column.table.lower() in hidden and not _is_inside(column, node):
                return column
    return None


def _tables(node: exp.Expr) -> set[str]:
    found = set()
    for item in _items(node.this):
        found |= _tables(item) if passes_names(item) else {_called(item)}
    return found


def _items(query: exp.Expr) -> list[exp.Expr]:
    """What stands in the FROM clause of a SELECT."""
    from_ = query.args.get("from_")
    joined = [join.this for join in query.args.get("joins") or []]
    views = query.args.get("laterals") or []
    return [*([from_.this] if from_ is not None else []), *joined, *views]


def _called(item: exp.Expr) -> str:
    return item.alias_or_name.lower()


def _is_inside(column: exp.Expr | None, node: exp.Expr) -> bool:
    while column is not None:
        if column is node:
            return True
        column = column.parent
    return False
