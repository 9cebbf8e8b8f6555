"""Targets that the present plan does not keep: by how much, and what makes a table late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runnel.model.tabular import duration
from runnel.schedule.lag import Aim, LagPlan
from runnel.schedule.periods import peak_lag
from runnel.schedule.units import Condensed, Unit
from runnel.schedule.views import TableView

# Less than this is how long it takes to start a refresh.
_SHORT = 1.0


@dataclass(frozen=True, slots=True)
class Expected:
    """How long a unit waits for the tables above it, and after that for its turn, and works."""

    period: float
    above: float
    longest: str
    turn: float
    work: float

    @property
    def lag(self) -> float:
        return peak_lag(self.period, self.above + self.turn, self.work)


def misses(tables: Mapping[str, TableView], plan: LagPlan) -> dict[str, tuple[float, str]]:
    """The user's tables whose target the plan does not keep: by how many seconds, and why."""
    found: dict[str, tuple[float, str]] = {}
    waiting = waits(tables, plan.graph)
    for key, aim in plan.aims.items():
        table = tables[key]
        if aim.target is None or aim.period is None or table.schedule is None or table.label:
            continue
        unit = plan.graph.unit_of[key]
        expected = _expected(unit, plan.rhythms[unit].every or aim.period, waiting[unit], tables)
        if expected.lag >= aim.target:
            with_it = [tables[k].title for k in unit.members if k != key]
            found[key] = (expected.lag - aim.target, _why(aim, expected, with_it))
    return found


def waits(tables: Mapping[str, TableView], graph: Condensed) -> dict[Unit, tuple[float, str]]:
    """How long each unit waits for those above it in a pass, and for which table longest."""
    found: dict[Unit, tuple[float, str]] = {}
    for unit in graph.in_order(graph.units):
        found[unit] = max(
            ((found[p][0] + _work(p, tables), tables[p.members[-1]].title)
             for p in sorted(graph.parents[unit], key=lambda p: p.members)),
            default=(0.0, ""),
        )  # fmt: skip
    return found


def note_of(key: str, table: TableView, plan: LagPlan, missed: tuple[float, str] | None) -> str:
    """What a user should know about a table's lag; nothing when all is as expected."""
    aim = plan.aims[key]
    if table.schedule is not None and table.schedule.is_downstream and aim.wanted_by is None:
        return "DOWNSTREAM without a scheduled consumer: refreshed only when asked"
    if missed is None:
        return ""
    return f"with the present plan it misses its target by about {duration(missed[0])}: {missed[1]}"


def _expected(
    unit: Unit, period: float, waiting: tuple[float, str], tables: Mapping[str, TableView]
) -> Expected:
    """What it waited beyond the work above it, it waited for its turn: more was due than is done
    side by side. That is measured, as no plan knows how many tables will have news at once.
    """
    above, longest = waiting
    waited = max(tables[key].waited or 0.0 for key in unit.members)
    turn = waited - above if waited - above >= _SHORT else 0.0
    return Expected(period, above, longest, turn, _work(unit, tables))


def _why(aim: Aim, expected: Expected, with_it: Sequence[str]) -> str:
    """What makes it late: a rhythm that is not its own, else how long everything takes."""
    together = f" together with {', '.join(with_it)}" if with_it else ""
    period = duration(expected.period)
    if aim.period is not None and expected.period > aim.period:
        return f"it is refreshed{together} every {period}, by the slowest of them"
    if aim.raised_by:
        every = f"{aim.raised_by}, which it reads, is refreshed every {period}"
        return f"{every} (give it a shorter schedule, or DOWNSTREAM)"
    parts = [f"refreshing{' it' if together else ''}{together} takes {duration(expected.work)}"]
    if expected.above:
        parts.append(f"waiting for {expected.longest} {duration(expected.above)}")
    if expected.turn:
        parts.append(
            f"waiting for its turn {duration(expected.turn)}, as more is due than "
            "max_concurrent_refreshes lets run side by side"
        )
    return ", ".join(parts)


def _work(unit: Unit, tables: Mapping[str, TableView]) -> float:
    return sum(tables[key].seconds or 0.0 for key in unit.members)
