"""Tables whose sources may lose what they need: told once, and once more when it is over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from runnel.model.alerts import AlertKind, key_of
from runnel.refresh.retention import Lost, Need, Risk, needs_of, retention_risks
from runnel.refresh.workspace import Workspace


def watch_retention(workspace: Workspace, now: datetime) -> None:
    """Tell which tables have come to be at risk, or are safe again, since this was asked."""
    catalog, alerts = workspace.catalog, workspace.alerts
    lasting = catalog.alerts(kind=AlertKind.RETENTION_RISK, limit=None, lasting=True)
    told = {alert.table_key for alert in lasting}
    known = _Known(workspace, now)
    for table in catalog.tables():
        risks = known.risks(needs_of(table))
        if risks:
            nearest = min(risks, key=lambda risk: risk.left)
            alerts.emit(AlertKind.RETENTION_RISK, table.label, nearest.message, **nearest.facts)
        elif key_of(table.label) in told:
            said = "what it needs of its sources is safe again"
            alerts.emit(AlertKind.RETENTION_SAFE, table.label, said)


@dataclass(slots=True)
class _Known:
    """Each version of a source is looked up once, however many tables need it."""

    workspace: Workspace
    now: datetime
    _found: dict[tuple[str, str, int], tuple[Risk | Lost, ...]] = field(default_factory=dict)

    def risks(self, needs: Iterable[Need]) -> list[Risk | Lost]:
        return [replace(risk, need=need) for need in needs for risk in self._risks(need)]

    def _risks(self, need: Need) -> tuple[Risk | Lost, ...]:
        place = (need.location, need.identity, need.version)
        if place not in self._found:
            self._found[place] = retention_risks(self.workspace, self.now, [need])
        return self._found[place]
