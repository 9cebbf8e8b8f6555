"""Which queries are monotone in given tables, as sets: a row more there takes no row away here.

Only they have a least fixpoint that rounds can find. Projection, filters, inner joins, UNION,
DISTINCT, EXISTS, IN and INTERSECT are; so is a LEFT JOIN in its left side, and NOT EXISTS in the
rows that are kept. What lies beside the tables in question may be anything.
"""

from __future__ import annotations

from collections.abc import Callable

from runnel.algebra.nodes import (
    Aggregate,
    Filter,
    Fixpoint,
    Generate,
    InnerJoin,
    JoinKind,
    Node,
    OneRow,
    OuterJoin,
    Project,
    Recursive,
    Repeat,
    Scan,
    SemiJoin,
    TopK,
    UnionAll,
    Window,
    walk,
)

Reads = Callable[[Node], bool]


def obstacle(tree: Node, is_own: Reads) -> str | None:
    """The operator through which the rows that `is_own` names are read, but must not be."""
    if not reads(tree, is_own):
        return None
    return _own_obstacle(tree, is_own) or next(
        (found for child in tree.inputs if (found := obstacle(child, is_own))), None
    )


def reads(tree: Node, is_own: Reads) -> bool:
    return any(is_own(node) for node in walk(tree))


def gives_set(tree: Node) -> bool:
    """Whether no row can come twice, by the form of the query alone."""
    match tree:
        case Aggregate() | OneRow():
            return True
        case Fixpoint():
            return tree.is_distinct
        case Filter() | TopK():
            return gives_set(tree.input)
        case SemiJoin():
            return gives_set(tree.left)
        case InnerJoin():
            return all(gives_set(child) for child in tree.inputs)
        case Project():
            kept = {scalar.bare_column for _, scalar in tree.items}
            return gives_set(tree.input) and kept.issuperset(c.name for c in tree.input.columns)
        case _:
            return False


def _own_obstacle(node: Node, is_own: Reads) -> str | None:
    match node:
        case SemiJoin() if node.is_anti and reads(node.right, is_own):
            return "NOT EXISTS, NOT IN or EXCEPT"
        case OuterJoin(kind=JoinKind.FULL):
            return "FULL JOIN"
        case OuterJoin() if reads(node.right, is_own):
            return "the optional side of an outer join"
        case Repeat(input=Aggregate()):
            return "INTERSECT ALL or EXCEPT ALL"
        case Aggregate() if node.calls:
            return _aggregates([call.function for call in node.calls])
        case Aggregate() if node.is_global:
            return "an aggregate without GROUP BY"
        case Window():
            return "a window function"
        case TopK():
            return "LIMIT"
        case Fixpoint():
            return "WITH RECURSIVE"
        case (
            Scan() | Recursive() | OneRow() | Project() | Filter() | Generate() | Repeat()
            | InnerJoin() | SemiJoin() | OuterJoin() | UnionAll() | Aggregate()
        ):  # fmt: skip
            return None


def _aggregates(functions: list[str]) -> str:
    if functions == ["count_star", "max"]:
        # So a subquery is built of which at most one row is expected.
        return "a subquery used as a value, or COUNT(*) and MAX"
    name = "COUNT(*)" if functions[0] == "count_star" else functions[0].upper()
    return f"the aggregate {name}"
