"""How the tables of a running scheduler stand: for whoever looks on, from what it knows anyway."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from runnel.model.refresh import TableState
from runnel.schedule.machine import Machine
from runnel.schedule.staleness import lag_by
from runnel.schedule.units import Unit
from runnel.schedule.views import TableView


@dataclass(frozen=True, slots=True)
class Sight:
    """One table: its lag against its target, and when it is due next; times are in seconds."""

    name: str
    state: TableState
    lag: float | None
    target: float | None
    due_in: float | None
    errors: int

    @property
    def is_late(self) -> bool:
        return self.target is not None and (self.lag is None or self.lag > self.target)

    @property
    def urgency(self) -> tuple[bool, bool, float, str]:
        """Trouble first, then what is nearest to its target or beyond it."""
        share = (self.lag or 0.0) / self.target if self.target else 0.0
        return (
            not (self.errors or self.state is TableState.SUSPENDED),
            not self.is_late,
            -share,
            self.name,
        )


def sights(machine: Machine, now: float) -> list[Sight]:
    """Every table, most urgent first."""
    found = [_sight(machine, table, now) for table in machine.tables.values()]
    return sorted(found, key=lambda sight: sight.urgency)


def _sight(machine: Machine, table: TableView, now: float) -> Sight:
    aim = machine.plan.aims[table.key]
    lag = lag_by(machine.seen(table), now)
    due = _due(machine, machine.plan.graph.unit_of[table.key], table, now)
    return Sight(
        table.title, table.state, lag, aim.target, None if due == inf else due - now, table.errors,
    )  # fmt: skip


def _due(machine: Machine, unit: Unit, table: TableView, now: float) -> float:
    """By its own schedule, or when it is tried again."""
    if table.state is TableState.SUSPENDED:
        return inf
    if table.retry_at is not None and table.retry_at > now:
        return table.retry_at
    return machine.next_due(unit, now)
