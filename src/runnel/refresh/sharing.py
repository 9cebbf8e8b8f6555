"""Which tables of a pass can share readings, and what of a source they need together."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from runnel.catalog import StreamTable
from runnel.compile.near import Near, Tie
from runnel.compile.program import Program
from runnel.model.refresh import RefreshAction, TableState
from runnel.refresh.pins import Pins
from runnel.refresh.plan import RefreshPlan, plan_refresh
from runnel.refresh.programs import program_of
from runnel.refresh.windows import Window
from runnel.refresh.workspace import Workspace

_log = logging.getLogger("runnel")
# A reading for one table alone is what that table makes itself.
_FEWEST = 2


@dataclass
class Sharing:
    """Tables with the same settings that read their common sources over the same windows."""

    settings: Mapping[str, str]
    windows: dict[str, Window] = field(default_factory=dict)
    nears: dict[str, tuple[Near, ...]] = field(default_factory=dict)
    """What the steps of each table's program need, by the table's id."""
    _ties: dict[str, list[Tie]] = field(default_factory=dict)

    def add(self, plan: RefreshPlan, program: Program) -> None:
        self.windows |= windows_of(plan)
        self.nears[plan.table.id] = near_of_program(program)
        self._ties.clear()

    def agrees(self, settings: Mapping[str, str], windows: Mapping[str, Window]) -> bool:
        """Whether a table's readings mean the same rows as those of the others."""
        common = windows.keys() & self.windows.keys()
        return settings == self.settings and all(
            _place(windows[key]) == _place(self.windows[key]) for key in common
        )

    def ties(self, source: str) -> list[Tie]:
        """All ties of a source, those of low levels first."""
        if source not in self._ties:
            found = {t: None for _, near in self._all() if near.source == source for t in near.ties}
            self._ties[source] = sorted(found, key=lambda tie: tie.level)
        return self._ties[source]

    def top(self, source: str) -> int:
        return max((tie.level for tie in self.ties(source)), default=0)

    def below(self, tie: Tie, level: int) -> int:
        """The level of the other source's rows that a tie is followed to, for rows of a level.

        All that is needed of that source where it is not too much, so that it is read once.
        """
        top = self.top(tie.other)
        return top if tie.level - 1 <= top < level else tie.level - 1

    def names(self, source: str, level: int) -> list[str]:
        """The columns that are needed: below the top level only those of ties."""
        ties = self.ties(source)
        found = [name for tie in ties for name in tie.columns]
        found += [
            n for _, near in self._all() for t in near.ties if t.other == source for n in t.others
        ]
        if level == self.top(source):
            found += [n for _, near in self._all() if near.source == source for n in near.names]
        return list({name.lower(): name for name in found}.values())

    def is_wanted(self, source: str) -> bool:
        """Whether several tables need rows of a source."""
        return len({table for table, near in self._all() if near.source == source}) >= _FEWEST

    def is_shared(self, source: str, tie: Tie) -> bool:
        """Whether what a tie is followed to is read anyway, or for several tables."""
        level = self.below(tie, self.top(source))
        if level in (0, self.top(tie.other)):
            return True
        users = {
            table
            for table, near in self._all()
            for t in near.ties
            if (t.other, self.below(t, self.top(near.source))) == (tie.other, level)
        }
        return len(users) >= _FEWEST

    def _all(self) -> Iterator[tuple[str, Near]]:
        return ((table, near) for table, nears in self.nears.items() for near in nears)


def sharings(workspace: Workspace, pins: Pins, keys: Iterable[str]) -> list[Sharing]:
    """The tables of a pass that are about to be refreshed differentially, by what they share."""
    found: list[Sharing] = []
    for key in keys:
        try:
            member = _member(workspace, pins, key)
        except Exception as error:
            # It will be told by the table's own refresh.
            _log.debug("%s shares no readings: %s", key, error)
            continue
        if member is not None:
            _join(found, *member)
    return found


def near_of_program(program: Program) -> tuple[Near, ...]:
    return tuple(step.near for step in program.steps if step.near is not None)


def windows_of(plan: RefreshPlan) -> dict[str, Window]:
    """Those of the base tables: where a stream table stands in the pass is settled later."""
    return {key: w for key, w in plan.windows.items() if w.source.kind == "delta"}


def _member(workspace: Workspace, pins: Pins, key: str) -> tuple[RefreshPlan, Program] | None:
    table = workspace.catalog.find(key)
    if table is None or not _is_candidate(table):
        return None
    plan = plan_refresh(workspace, table, pins.frontier(table.sources))
    if plan.action is not RefreshAction.DIFFERENTIAL:
        return None
    with workspace.worker(table.settings, adaptive=False) as spark:
        return plan, program_of(workspace, spark, plan)


def _is_candidate(table: StreamTable) -> bool:
    """Tables over other stream tables take what is there, but nothing is read for them."""
    return (
        table.state is TableState.ACTIVE
        and table.frontier is not None
        and not table.reinitialize
        and all(source.kind == "delta" for source in table.sources)
    )


def _join(found: list[Sharing], plan: RefreshPlan, program: Program) -> None:
    settings, windows = plan.table.settings, windows_of(plan)
    group = next((s for s in found if s.agrees(settings, windows)), None)
    if group is None:
        group = Sharing(settings)
        found.append(group)
    group.add(plan, program)


def _place(window: Window) -> Sequence[object]:
    return window.source.location, window.old, window.new
