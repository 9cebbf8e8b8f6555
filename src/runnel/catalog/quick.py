"""The most asked questions, put to a SQLite file directly: importing SQLAlchemy takes longer."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runnel.catalog.faults import fault_of
from runnel.catalog.records import Attempt, StreamTable, Verification
from runnel.catalog.rows import (
    Row,
    alert_from_row,
    attempt_from_row,
    table_from_row,
    verification_from_row,
)
from runnel.model.alerts import Alert, AlertKind
from runnel.model.closing import Closing

VERSION = 6
"""The schema version that this module reads; any other one is left to the Reader."""

_DOCUMENTS = frozenset(
    {
        "layout", "settings", "frontier", "options", "columns", "phases", "predicted", "resolution",
        "facts", "sample",
    }
)  # fmt: skip
_INSTANTS = frozenset(
    {
        "created_at", "altered_at", "started_at", "finished_at", "data_timestamp", "at",
        "ended_at", "retry_at",
    }
)  # fmt: skip


class QuickReader(Closing):
    """Answers what `Reader` answers, all from one state of the catalog."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._path = path
        self._connection = connection
        self._connection.row_factory = _decoded

    @staticmethod
    def open(path: Path) -> QuickReader | None:
        """None when it is not a catalog of the expected version: the Reader knows what to do."""
        if not path.is_file():
            return None
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute("BEGIN")
            query = "SELECT value FROM meta WHERE key = 'schema_version'"
            version = connection.execute(query).fetchone()
        except sqlite3.Error:
            version = None
        if version == (VERSION,):
            return QuickReader(connection, path)
        connection.close()
        return None

    def close(self) -> None:
        self._connection.close()

    def tables(self) -> tuple[StreamTable, ...]:
        """All stream tables, by name."""
        return self._tables("", ())

    def find(self, key: str) -> StreamTable | None:
        """The stream table with this `TableName.key`."""
        return next(iter(self._tables("WHERE key = ?", (key,))), None)

    def history(self, key: str | None = None, limit: int = 20) -> tuple[Attempt, ...]:
        """Refresh attempts of one table, or of all, newest first."""
        condition, values = ("", ()) if key is None else ("WHERE t.key = ?", (key,))
        rows = self._rows(
            "SELECT h.*, t.schema_name AS table_schema, t.name AS table_name"
            " FROM refresh_history h JOIN stream_tables t ON t.id = h.table_id"
            f" {condition} ORDER BY h.id DESC LIMIT ?",
            (*values, limit),
        )
        return tuple(attempt_from_row(row) for row in rows)

    def last_verification(self, table_id: str) -> Verification | None:
        """What the newest VERIFY of a table found."""
        query = "SELECT * FROM verifications WHERE table_id = ? ORDER BY id DESC LIMIT 1"
        rows = self._rows(query, (table_id,))
        # SQLite has no booleans.
        return next((verification_from_row({**r, "ok": bool(r["ok"])}) for r in rows), None)

    def alerts(
        self,
        key: str | None = None,
        kind: AlertKind | None = None,
        limit: int = 50,
        *,
        lasting: bool = False,
    ) -> tuple[Alert, ...]:
        """Alerts newest first; `lasting`: only conditions that are not over."""
        rows = self._rows(
            "SELECT * FROM alerts WHERE (?1 IS NULL OR table_key = ?1)"
            " AND (?2 IS NULL OR kind = ?2) AND (NOT ?3 OR open_key IS NOT NULL)"
            " ORDER BY id DESC LIMIT ?4",
            (key, kind and kind.value, lasting, limit),
        )
        return tuple(alert_from_row(row) for row in rows)

    def _tables(self, condition: str, values: tuple[str, ...]) -> tuple[StreamTable, ...]:
        sources: dict[str, list[Row]] = defaultdict(list)
        for edge in self._rows("SELECT * FROM dependencies ORDER BY table_id, position"):
            sources[edge["table_id"]].append(edge)
        rows = self._rows(f"SELECT * FROM stream_tables {condition} ORDER BY key", values)
        return tuple(table_from_row(row, sources[row["id"]]) for row in rows)

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[Row]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise fault_of(str(self._path), str(error)) from error


def _decoded(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> Row:
    return {
        name: _value(name, value) for (name, *_), value in zip(cursor.description, row, strict=True)
    }


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _DOCUMENTS:
        return json.loads(value)
    return datetime.fromisoformat(value).replace(tzinfo=UTC) if name in _INSTANTS else value
