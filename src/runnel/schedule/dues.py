"""When units are due by their own schedules; kept, because cron lines are slow to work out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runnel.schedule.lag import Rhythm
from runnel.schedule.units import Unit


@dataclass(slots=True)
class Dues:
    """The due instants of all units that have a rhythm of their own."""

    rhythms: Mapping[Unit, Rhythm] = field(default_factory=dict)
    own: tuple[Unit, ...] = field(init=False)
    _around: dict[Unit, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.own = tuple(unit for unit, rhythm in self.rhythms.items() if rhythm.is_own)

    def last(self, unit: Unit, now: float) -> float:
        """The last instant at which a unit was due."""
        return self._found(unit, now)[0]

    def next(self, unit: Unit, now: float, reached: float) -> float:
        """When a unit that has come this far is due after now."""
        last, following = self._found(unit, now)
        rhythm = self.rhythms.get(unit)
        if rhythm is None or len(unit.members) == 1:
            return following
        return rhythm.next(max(last, reached))

    def _found(self, unit: Unit, now: float) -> tuple[float, float]:
        """The last due instant, and the one from which on that is another."""
        known = self._around.get(unit)
        if known is None or not known[0] <= now < known[1]:
            rhythm = self.rhythms.get(unit, Rhythm())
            last = rhythm.last(now)
            known = self._around[unit] = (last, rhythm.next(last))
        return known
