"""Tables that stand still because another one does: told by `status` and by alerts alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runnel.model.refresh import TableState
from runnel.schedule.lag import LagPlan
from runnel.schedule.views import TableView

HeldUp = tuple[TableState, str]
"""UPSTREAM_SUSPENDED or UPSTREAM_FAILED, and because of whom."""


def held_up(tables: Mapping[str, TableView], plan: LagPlan) -> dict[str, HeldUp]:
    """Tables below one that failed or is suspended, or in one group with it.

    They keep serving what they hold.
    """
    stuck = {key for key, table in tables.items() if _is_stuck(table)}
    units = {plan.graph.unit_of[key] for key in stuck}
    found: dict[str, HeldUp] = {}
    for unit in plan.graph.units if stuck else ():
        above = sorted(k for u in plan.graph.above[unit] & units for k in u.members if k in stuck)
        beside = [key for key in unit.members if key in stuck]
        for key in unit.members if above or beside else ():
            others = [k for k in beside if k != key]
            if above or others:
                found[key] = _because([tables[k] for k in above], [tables[k] for k in others])
    return found


def _is_stuck(table: TableView) -> bool:
    return bool(table.errors) or table.state is TableState.SUSPENDED


def _because(above: Sequence[TableView], beside: Sequence[TableView]) -> HeldUp:
    """What is suspended needs the user, so it is named first."""
    known = [(table, "which it is computed from") for table in above]
    known += [(table, "which is refreshed together with it") for table in beside]
    for table, place in known:
        if table.state is TableState.SUSPENDED:
            return TableState.UPSTREAM_SUSPENDED, f"{table.title}, {place}, is suspended"
    table, place = known[0]
    return TableState.UPSTREAM_FAILED, f"{table.title}, {place}, failed"
