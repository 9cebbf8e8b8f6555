"""Alerts: what someone should hear of, when it happened, and of which table."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from runnel.errors import UserError
from runnel.model.names import TableName
from runnel.model.tabular import Record

_LOG = logging.getLogger("runnel.alerts")
_LOG.addHandler(logging.NullHandler())


class AlertKind(StrEnum):
    """What an alert is about; `LASTING` and `ENDS` say which of these begin and end something."""

    STALE = "stale"
    FRESH = "fresh"
    LAG_UNREACHABLE = "lag_unreachable"
    LAG_REACHABLE = "lag_reachable"
    SUSPENDED = "suspended"
    AUTO_SUSPENDED = "auto_suspended"
    RESUMED = "resumed"
    OUTAGE = "outage"
    OUTAGE_OVER = "outage_over"
    UPSTREAM_SUSPENDED = "upstream_suspended"
    UPSTREAM_FAILED = "upstream_failed"
    UPSTREAM_RECOVERED = "upstream_recovered"
    REINITIALIZE_NEEDED = "reinitialize_needed"
    REINITIALIZED = "reinitialized"
    RETENTION_RISK = "retention_risk"
    RETENTION_SAFE = "retention_safe"
    WEBHOOK_FAILED = "webhook_failed"
    WEBHOOK_RECOVERED = "webhook_recovered"
    REFRESH_FAILED = "refresh_failed"
    REFRESH_COMPLETED = "refresh_completed"

    @staticmethod
    def parse(text: str | AlertKind) -> AlertKind:
        try:
            return AlertKind(text.strip().lower())
        except ValueError:
            raise UserError(
                f"{text!r} is not a kind of alert", detail=f"expected one of {', '.join(AlertKind)}"
            ) from None

    @property
    def is_trouble(self) -> bool:
        return self in _TROUBLE

    @property
    def is_lasting(self) -> bool:
        """Whether it begins something that is told once, however often it is found again."""
        return self in LASTING


ENDS: dict[AlertKind, tuple[AlertKind, ...]] = {
    AlertKind.FRESH: (AlertKind.STALE,),
    AlertKind.LAG_REACHABLE: (AlertKind.LAG_UNREACHABLE,),
    AlertKind.RESUMED: (AlertKind.AUTO_SUSPENDED, AlertKind.SUSPENDED),
    AlertKind.OUTAGE_OVER: (AlertKind.OUTAGE,),
    AlertKind.UPSTREAM_RECOVERED: (AlertKind.UPSTREAM_SUSPENDED, AlertKind.UPSTREAM_FAILED),
    AlertKind.REINITIALIZED: (AlertKind.REINITIALIZE_NEEDED,),
    AlertKind.RETENTION_SAFE: (AlertKind.RETENTION_RISK,),
    AlertKind.WEBHOOK_RECOVERED: (AlertKind.WEBHOOK_FAILED,),
}
"""What each kind ends; where nothing lasts that it could end, it is not told."""

LASTING = frozenset(kind for kinds in ENDS.values() for kind in kinds)
_TROUBLE = (LASTING | {AlertKind.REFRESH_FAILED}) - {AlertKind.SUSPENDED}


@dataclass(frozen=True, slots=True, repr=False)
class Alert(Record):
    """Something that happened; `ended_at` is when a lasting condition was over."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("at", "kind", "table", "message", "ended_at")

    kind: AlertKind
    table: str | None
    message: str
    facts: dict[str, Any] = field(default_factory=dict)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended_at: datetime | None = None
    id: int | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {f'{self.table}: ' if self.table else ''}{self.message}"

    @property
    def table_key(self) -> str | None:
        return None if self.table is None else key_of(self.table)


class Alerts(Protocol):
    """Where alerts go; telling one never fails and never waits for its reader."""

    def emit(
        self, kind: AlertKind, table: str | TableName | None, message: str, **facts: Any
    ) -> None: ...


class LoggedAlerts:
    """Tells the log, and nobody else."""

    def emit(
        self, kind: AlertKind, table: str | TableName | None, message: str, **facts: Any
    ) -> None:
        log_alert(Alert(kind, None if table is None else str(table), message, facts))


class NoAlerts:
    """For work whose alerts nobody wants."""

    def emit(
        self, kind: AlertKind, table: str | TableName | None, message: str, **facts: Any
    ) -> None:
        pass


def log_alert(alert: Alert) -> None:
    _LOG.log(logging.WARNING if alert.kind.is_trouble else logging.INFO, "%s", alert)


def key_of(table: str) -> str:
    """The key of a table's shown name; names that need quotes are shown without them."""
    try:
        return TableName.parse(table).key
    except UserError:
        return TableName("default", table).key
