"""Units that were busy when a pass began, and come along later to the same instant.

Else what lies above them would be refreshed once more, to an instant a moment later.
"""

from __future__ import annotations

from collections.abc import Mapping

from runnel.schedule.under_way import Pass, Passes
from runnel.schedule.units import Condensed, Unit
from runnel.schedule.views import TableView


def join(
    unit: Unit, due: float, deadline: float, passes: Passes, graph: Condensed,
    tables: Mapping[str, TableView],
) -> bool:  # fmt: skip
    """Whether a pass under way leads where the unit has to go: then it comes along."""
    together = {unit, *graph.above[unit]}
    for of_pass in reversed(passes.under_way.values()):
        if of_pass.at < due or of_pass.graph is not graph:
            continue
        missing = together - of_pass.members
        if _fits(missing, of_pass, passes, tables):
            of_pass.take(missing, together, deadline)
            return True
    return False


def _fits(units: set[Unit], of_pass: Pass, passes: Passes, tables: Mapping[str, TableView]) -> bool:
    """Whether units can still be brought to the instant of a pass."""
    snapshot = of_pass.snapshot
    taken = passes.waiting() | passes.running_after(of_pass)
    found = [tables[key] for unit in units for key in unit.members]
    return units.isdisjoint(of_pass.begun) and all(
        table.key not in taken
        and snapshot.pins.keys() >= set(table.bases)
        and (table.timestamp is None or table.timestamp < snapshot.timestamp)
        for table in found
    )
