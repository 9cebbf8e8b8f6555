"""What an aggregate gives over no rows, where the join that looks it up finds no group."""

from __future__ import annotations

from runnel.algebra.nodes import Call
from runnel.algebra.scalar import Scalar, wrap
from runnel.errors import NotDifferentiable

_COUNTS = frozenset({"approx_count_distinct", "regr_count"})
_LISTS = frozenset({"collect_list", "collect_set"})


def over_nothing(call: Call) -> Scalar:
    """The call's value, or what it is over no rows when a join padded it with NULL."""
    value = Scalar.column(call.output.name)
    if "sketch" in call.function or call.function.startswith(("bitmap_", "schema_of_")):
        raise NotDifferentiable(
            f"{call.function}() in a correlated subquery",
            detail="what it gives for a row without matches is not known here",
            hint="write it as a LEFT JOIN with GROUP BY",
        )
    if call.function.startswith("count") or call.function in _COUNTS:
        return wrap("COALESCE(", value, f", CAST(0 AS {call.output.type}))")
    if call.function in _LISTS:
        return wrap("COALESCE(", value, f", CAST(ARRAY() AS {call.output.type}))")
    return value
