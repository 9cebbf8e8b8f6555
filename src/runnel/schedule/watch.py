"""Keeps an eye on all tables: tells who gets stale, misses its target, or goes on again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runnel.model.alerts import AlertKind, Alerts
from runnel.model.refresh import TableState
from runnel.model.tabular import duration
from runnel.schedule.held_up import HeldUp, held_up
from runnel.schedule.lag import LagPlan
from runnel.schedule.misses import misses
from runnel.schedule.staleness import FRESH, Sightings, is_stale, lag_by, said_of
from runnel.schedule.views import TableView

_EVERY = 10.0


@dataclass(slots=True)
class Watch:
    """Tells each thing once when it begins and once when it is over.

    What a single refresh did is told by the refresh itself.
    """

    alerts: Alerts
    most_errors: int
    known: dict[AlertKind, set[str]] = field(default_factory=dict)
    sightings: Sightings = field(default_factory=Sightings)
    _looked_at: float | None = None

    def look(self, now: float, tables: Mapping[str, TableView], plan: LagPlan) -> None:
        self.sightings.look(now, tables)
        stale = self._stale(now, tables, plan)
        self._tell(AlertKind.STALE, AlertKind.FRESH, tables, stale)
        self._tell_held_up(tables, held_up(tables, plan))
        self._end_outages(tables)
        if self._looked_at is None or not 0 <= now - self._looked_at < _EVERY:
            self._looked_at = now
            missed = _missed(tables, plan)
            self._tell(AlertKind.LAG_UNREACHABLE, AlertKind.LAG_REACHABLE, tables, missed)

    def _stale(
        self, now: float, tables: Mapping[str, TableView], plan: LagPlan
    ) -> dict[str, tuple[str, dict[str, Any]]]:
        """Who is suspended is not told to be late, nor to be in time again."""
        known = self.known.get(AlertKind.STALE, ())
        found: dict[str, tuple[str, dict[str, Any]]] = {}
        for key, aim in plan.aims.items():
            if key not in tables or aim.wanted_by:
                continue
            table = self.sightings.of(tables[key])
            is_new = table.state is not TableState.SUSPENDED or key in known
            if is_new and is_stale(table, aim.target, aim.cron, now):
                facts = {"lag_seconds": lag_by(table, now), "target_seconds": aim.target}
                found[key] = (said_of(table, aim.target, aim.cron, now), facts)
        return found

    def _end_outages(self, tables: Mapping[str, TableView]) -> None:
        """They begin with a refresh that fails, which tells why; any process may see the end."""
        lasting = self.known.setdefault(AlertKind.OUTAGE, set())
        lasting |= {key for key, table in tables.items() if self._goes_on_failing(table)}
        for key in sorted(lasting):
            if key not in tables or not tables[key].errors:
                lasting.discard(key)
                if key in tables:
                    self.alerts.emit(AlertKind.OUTAGE_OVER, tables[key].title, _NO_OUTAGE)

    def _goes_on_failing(self, table: TableView) -> bool:
        return table.errors >= self.most_errors and table.state is not TableState.SUSPENDED

    def _tell(
        self,
        begin: AlertKind,
        end: AlertKind,
        tables: Mapping[str, TableView],
        found: Mapping[str, tuple[str, dict[str, Any]]],
    ) -> None:
        known = self.known.setdefault(begin, set())
        for key in sorted(found.keys() - known):
            message, facts = found[key]
            self.alerts.emit(begin, tables[key].name, message, **facts)
        for key in sorted(known - found.keys()):
            if key in tables:
                self.alerts.emit(end, tables[key].name, _OVER[end])
        self.known[begin] = set(found)

    def _tell_held_up(self, tables: Mapping[str, TableView], found: Mapping[str, HeldUp]) -> None:
        known = {kind: self.known.get(kind, set()) for kind in _HELD_UP.values()}
        for key, (state, message) in sorted(found.items()):
            kind = _HELD_UP[state]
            if key not in known[kind]:
                self.alerts.emit(kind, tables[key].title, message)
        for key in sorted(set().union(*known.values()) - found.keys()):
            if key in tables:
                said = "what it reads is refreshed again"
                self.alerts.emit(AlertKind.UPSTREAM_RECOVERED, tables[key].title, said)
        for state, kind in _HELD_UP.items():
            self.known[kind] = {key for key, because in found.items() if because[0] is state}


_HELD_UP = {
    TableState.UPSTREAM_SUSPENDED: AlertKind.UPSTREAM_SUSPENDED,
    TableState.UPSTREAM_FAILED: AlertKind.UPSTREAM_FAILED,
}
_NO_OUTAGE = "does not fail any more"
_OVER = {
    AlertKind.FRESH: FRESH,
    AlertKind.LAG_REACHABLE: "keeps its target lag again",
}


def _missed(
    tables: Mapping[str, TableView], plan: LagPlan
) -> dict[str, tuple[str, dict[str, Any]]]:
    return {
        key: (
            f"does not keep its target with the present plan, by about {duration(by)}: {why}",
            {"missed_seconds": by},
        )
        for key, (by, why) in misses(tables, plan).items()
    }
