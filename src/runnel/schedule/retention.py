"""Tables whose sources may lose what they need: told once, and once more when it is over."""

from __future__ import annotations

from datetime import datetime

from runnel.model.alerts import AlertKind
from runnel.refresh.retention import needs_of, retention_risks
from runnel.refresh.workspace import Workspace

_MANY = 1_000_000


def watch_retention(workspace: Workspace, now: datetime) -> None:
    """Tell which tables have come to be at risk, or are safe again, since this was asked."""
    catalog, alerts = workspace.catalog, workspace.alerts
    lasting = catalog.alerts(kind=AlertKind.RETENTION_RISK, limit=_MANY, lasting=True)
    told = {alert.table_key for alert in lasting}
    for table in catalog.tables():
        risks = retention_risks(workspace, now, needs_of(table))
        if risks:
            nearest = min(risks, key=lambda risk: risk.left)
            alerts.emit(AlertKind.RETENTION_RISK, table.name, nearest.message, **nearest.facts)
        elif table.name.key in told:
            said = "what it needs of its sources is safe again"
            alerts.emit(AlertKind.RETENTION_SAFE, table.name, said)
