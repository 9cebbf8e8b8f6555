"""Sums that overflow on the way to a total that fits: then only the whole query can tell.

A change may replace a very small number by a very large one, and the stored sums of a group are
added up in any order.
"""

from __future__ import annotations

from runnel.compile.differentiate.state import OVERFLOW
from runnel.model.refresh import RefreshAction
from runnel.refresh.plan import RefreshPlan
from runnel.refresh.workspace import Workspace

_SIGNS = ("ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", "CAST_OVERFLOW", OVERFLOW)


def is_on_the_way(workspace: Workspace, plan: RefreshPlan, error: Exception) -> bool:
    """Whether a differential refresh failed where the query itself may not."""
    if plan.action is not RefreshAction.DIFFERENTIAL:
        return False
    _, compiled = workspace.compiled.get(plan.table.incarnation, ("", None))
    text = str(error)
    return compiled is not None and compiled.can_overflow and any(sign in text for sign in _SIGNS)
