"""Where alerts go: into the catalog once, then to the log, to callbacks and to a webhook."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from runnel.catalog import StreamTable, Writer
from runnel.errors import RunnelError
from runnel.model.alerts import ENDS, LASTING, Alert, AlertKind, Alerts, log_alert
from runnel.model.closing import Closing
from runnel.model.names import TableName
from runnel.model.settings import Settings
from runnel.model.tabular import plain
from runnel.schedule.outlook import seen_at, view_of
from runnel.schedule.staleness import FRESH, is_stale
from runnel.schedule.webhook import Webhook

_LOG = logging.getLogger("runnel.alerts")
_PRUNE_EVERY = timedelta(hours=1)
_ABOUT_WEBHOOK = frozenset({AlertKind.WEBHOOK_FAILED, AlertKind.WEBHOOK_RECOVERED})

Callback = Callable[[Alert], object]
C = TypeVar("C", bound=Callback)


class AlertBook(Closing):
    """Tells alerts; what goes wrong in telling one is logged and stops nobody."""

    def __init__(
        self,
        catalog: Writer,
        settings: Settings,
        lake: str = "",
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._catalog = catalog
        self._lake = lake
        self._clock = clock
        self._quiet = _kinds(settings.alert_quiet_kinds) - LASTING - ENDS.keys()
        self._kept_for = timedelta(days=settings.alert_retention_days)
        self._pruned_at: datetime | None = None
        self._callbacks: list[Callback] = []
        self._lock = threading.Lock()
        self._webhook = (
            Webhook(settings.alert_webhook, self._not_posted, self._posted)
            if settings.alert_webhook
            else None
        )
        self._is_posting = False

    def emit(
        self, kind: AlertKind, table: str | TableName | None, message: str, **facts: Any
    ) -> None:
        """Tell an alert, unless it tells nothing new."""
        shown = None if table is None else str(table)
        alert = Alert(AlertKind(kind), shown, message, plain(facts), self._clock())
        stored = alert if kind in self._quiet else self._stored(alert)
        if stored is None:
            return
        log_alert(stored)
        self._call(stored)
        if self._webhook is not None and kind not in self._quiet | _ABOUT_WEBHOOK:
            self._webhook.send({**stored.to_dict(), "lake": self._lake, "text": str(stored)})

    def subscribe(self, callback: C) -> C:
        """Have a function called with each alert, in the thread that emits it."""
        with self._lock:
            self._callbacks.append(callback)
        return callback

    def close(self) -> None:
        if self._webhook is not None:
            self._webhook.close()

    def _stored(self, alert: Alert) -> Alert | None:
        """None when it is no news; as it came when the catalog cannot take it."""
        try:
            stored = self._catalog.record_alert(alert)
            self._prune(alert.at)
        except Exception:
            _LOG.exception("an alert could not be stored: %s", alert)
            return alert
        return stored

    def _prune(self, now: datetime) -> None:
        with self._lock:
            if self._pruned_at is not None and now - self._pruned_at < _PRUNE_EVERY:
                return
            self._pruned_at = now
        self._catalog.prune_alerts(now - self._kept_for)

    def _call(self, alert: Alert) -> None:
        with self._lock:
            callbacks = tuple(self._callbacks)
        for callback in callbacks:
            try:
                callback(alert)
            except Exception:
                _LOG.exception("a callback failed for the alert: %s", alert)

    def _not_posted(self, problem: str) -> None:
        self._is_posting = False
        _LOG.warning("an alert could not be posted: %s", problem)
        self.emit(AlertKind.WEBHOOK_FAILED, None, f"alerts are not delivered: {problem}")

    def _posted(self) -> None:
        if not self._is_posting:
            self._is_posting = True
            self.emit(AlertKind.WEBHOOK_RECOVERED, None, "alerts are delivered again")


def note_caught_up(catalog: Writer, alerts: Alerts, now: datetime) -> None:
    """Tell which of the tables that were behind are not any more; cheap when none was."""
    try:
        stale = catalog.alerts(kind=AlertKind.STALE, limit=None, lasting=True)
        for key in {alert.table_key for alert in stale if alert.table_key}:
            table = catalog.find(key)
            if table is not None and not _is_stale(catalog, table, now):
                alerts.emit(AlertKind.FRESH, table.name, FRESH)
    except RunnelError:
        _LOG.exception("whether tables have caught up could not be found out")


def _is_stale(catalog: Writer, table: StreamTable, now: datetime) -> bool | None:
    """By its own schedule: of what a consumer asks for the consumer tells."""
    schedule = table.schedule
    if schedule is None:
        return None
    view = replace(view_of(table), seen_at=seen_at(catalog, table, now))
    return is_stale(view, schedule.seconds, schedule.cron, now.timestamp())


def _kinds(text: str) -> frozenset[AlertKind]:
    return frozenset(AlertKind.parse(part) for part in text.split(",") if part.strip())
