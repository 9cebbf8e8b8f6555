"""Tables whose sources may lose what they need: told once, and once more when it is over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from runnel.catalog import StreamTable
from runnel.model.alerts import AlertKind, key_of
from runnel.refresh.retention import Lost, Need, Risk, needs_of, retention_risks
from runnel.refresh.workspace import Workspace

_Place = tuple[str, str, int]


def watch_retention(workspace: Workspace, now: datetime) -> None:
    """Tell which tables have come to be at risk, or are safe again, since this was asked."""
    catalog, alerts = workspace.catalog, workspace.alerts
    lasting = catalog.alerts(kind=AlertKind.RETENTION_RISK, limit=None, lasting=True)
    told = {alert.table_key for alert in lasting}
    tables = catalog.tables()
    known = _known(workspace, now, tables)
    for table in tables:
        risks = [replace(r, need=need) for need in needs_of(table) for r in known[_place(need)]]
        if risks:
            nearest = min(risks, key=lambda risk: risk.left)
            alerts.emit(AlertKind.RETENTION_RISK, table.label, nearest.message, **nearest.facts)
        elif key_of(table.label) in told:
            said = "what it needs of its sources is safe again"
            alerts.emit(AlertKind.RETENTION_SAFE, table.label, said)


def _known(
    workspace: Workspace, now: datetime, tables: Iterable[StreamTable]
) -> Mapping[_Place, list[Risk | Lost]]:
    """Each version of a source is looked up once, however many tables need it."""
    needs = {_place(need): need for table in tables for need in needs_of(table)}
    found: defaultdict[_Place, list[Risk | Lost]] = defaultdict(list)
    for risk in retention_risks(workspace, now, needs.values()):
        found[_place(risk.need)].append(risk)
    return found


def _place(need: Need) -> _Place:
    return (need.location, need.identity, need.version)
