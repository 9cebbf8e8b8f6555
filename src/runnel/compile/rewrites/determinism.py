"""A query whose answer is a function of its sources: where SQL leaves a choice, it is made here.

FULL, DIFFERENTIAL and VERIFY all evaluate the query as rewritten, so that they choose alike.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from runnel.compile.dialect import SparkSql
from runnel.compile.parse import parse
from runnel.compile.passed_names import refuse_passed_names
from runnel.compile.places import point
from runnel.compile.rewrites.left_laterals import write_left_laterals
from runnel.compile.rewrites.ordered_aggregates import order_aggregates
from runnel.errors import InvalidQuery, UserError

# Each takes the tree and returns it, or a copy that it has changed.
PASSES: tuple[Callable[[exp.Query], exp.Query], ...] = (order_aggregates, write_left_laterals)


def make_deterministic(tree: exp.Query) -> exp.Query:
    """The query with every choice made; the same object when there was none to make."""
    for rewrite in PASSES:
        tree = rewrite(tree)
    return tree


def deterministic_text(query: str) -> str | None:
    """The text of the query with every choice made, or None when the user's own will do."""
    tree = parse(query)
    try:
        made = make_deterministic(tree)
    except UserError as error:
        point(error, query)
        raise
    return written(made) if made is not tree else None


def written(tree: exp.Query) -> str:
    """A rewritten query as text."""
    refuse_passed_names(tree)
    try:
        return tree.sql(SparkSql, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise InvalidQuery(
            "this query cannot be made deterministic",
            detail=str(error),
            hint="order what its aggregate functions collect: array_sort(collect_list(...))",
        ) from None
