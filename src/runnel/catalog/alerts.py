"""Alerts in the catalog: each is stored once, and what lasts begins and ends once.

In PostgreSQL whoever listens to the channel `runnel_alerts` (named after the catalog's schema)
hears of each as it is committed.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from runnel.catalog.engine import reading, writing
from runnel.catalog.rows import alert_to_row
from runnel.catalog.schema import alerts
from runnel.model.alerts import ENDS, Alert, AlertKind

# A payload has at most 8,000 bytes; the whole text is in the table.
_MOST_CHARACTERS = 1200


def record_alert(engine: sa.Engine, alert: Alert) -> Alert | None:
    """Store an alert; None when it tells nothing new.

    Nothing new: a condition that lasts already, or the end of one that does not.
    """
    if not _is_news(engine, alert):
        return None
    open_key = _open_key(alert.kind, alert.table_key) if alert.kind.is_lasting else None
    try:
        with writing(engine) as connection:
            if alert.kind in ENDS and not _end(connection, alert):
                return None
            insert = alerts.insert().returning(alerts.c.id)
            row = {**alert_to_row(alert), "open_key": open_key}
            stored = replace(alert, id=int(connection.execute(insert, row).scalar_one()))
            if engine.dialect.name == "postgresql":
                _notify(connection, stored)
            return stored
    except IntegrityError:
        # Another process found the same just now.
        return None


def end_alerts_of(connection: sa.Connection, keys: list[str], at: datetime) -> None:
    """Nothing lasts any more of tables that are gone."""
    lasting = alerts.c.table_key.in_(keys) & alerts.c.open_key.is_not(None)
    connection.execute(alerts.update().where(lasting).values(open_key=None, ended_at=at))


def prune_alerts(engine: sa.Engine, before: datetime) -> int:
    """Delete older alerts, but none that lasts."""
    with writing(engine) as connection:
        old = (alerts.c.at < before) & alerts.c.open_key.is_(None)
        return connection.execute(alerts.delete().where(old)).rowcount


def _notify(connection: sa.Connection, alert: Alert) -> None:
    told = {
        "id": alert.id,
        "kind": alert.kind.value,
        "table": alert.table,
        "message": alert.message[:_MOST_CHARACTERS],
        "at": alert.at.isoformat(),
    }
    schema = connection.get_execution_options()["schema_translate_map"][None]
    payload = json.dumps(told, ensure_ascii=False)
    connection.execute(sa.select(sa.func.pg_notify(f"{schema}_alerts", payload)))


def _is_news(engine: sa.Engine, alert: Alert) -> bool:
    """The usual answer, found without the lock of a writer: a condition is met again and again."""
    wanted = [alert.kind] if alert.kind.is_lasting else ENDS.get(alert.kind, ())
    if not wanted:
        return True
    query = sa.select(alerts.c.id).where(_lasting(wanted, alert.table_key)).limit(1)
    with reading(engine) as connection:
        is_lasting = connection.execute(query).first() is not None
    return is_lasting != alert.kind.is_lasting


def _end(connection: sa.Connection, alert: Alert) -> bool:
    found = _lasting(ENDS[alert.kind], alert.table_key)
    over = alerts.update().where(found).values(open_key=None, ended_at=alert.at)
    return connection.execute(over).rowcount > 0


def _lasting(
    kinds: tuple[AlertKind, ...] | list[AlertKind], key: str | None
) -> sa.ColumnElement[bool]:
    return alerts.c.open_key.in_([_open_key(kind, key) for kind in kinds])


def _open_key(kind: AlertKind, key: str | None) -> str:
    return f"{kind.value}:{key or ''}"
