"""Translation between records and rows of the catalog's tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runnel.catalog.records import Attempt, BaseTable, Source, StreamTable, Verification
from runnel.model.alerts import Alert, AlertKind
from runnel.model.columns import Layout
from runnel.model.frontier import Frontier
from runnel.model.names import TableName
from runnel.model.refresh import Outcome, RefreshAction, RefreshMode, TableState
from runnel.model.schedule import Schedule
from runnel.model.tabular import plain
from runnel.model.views import Resolution

Row = Mapping[str, Any]

_PLAIN = (
    "id", "query", "comment", "incarnation", "settings", "not_differential", "epoch", "since",
    "trace_version", "reinitialize", "consecutive_errors", "last_error", "options", "created_at",
    "altered_at", "retry_at", "work_seconds", "wait_seconds",
)  # fmt: skip


def table_to_row(table: StreamTable) -> dict[str, Any]:
    """The row of `stream_tables`; sources have rows of their own."""
    return {
        **{name: getattr(table, name) for name in _PLAIN},
        "key": table.name.key,
        "schema_name": table.name.schema,
        "name": table.name.name,
        "mode": table.mode.value,
        **schedule_to_row(table.schedule),
        "state": table.state.value,
        "layout": table.layout.to_json(),
        "frontier": frontier_to_json(table.frontier),
        "resolution": table.resolution.to_json() if table.resolution else None,
        "grouped": table.grouped,
    }


def table_from_row(row: Row, sources: Iterable[Row]) -> StreamTable:
    return StreamTable(
        # The copy of a definition may be older than a column.
        **{name: row[name] for name in _PLAIN if name in row},
        name=_name(row),
        mode=RefreshMode(row["mode"]),
        schedule=_schedule(row),
        state=TableState(row["state"]),
        layout=Layout.from_json(row["layout"]),
        sources=tuple(source_from_row(source) for source in sources),
        frontier=frontier_from_json(row["frontier"]),
        resolution=Resolution.from_json(row["resolution"]) if row["resolution"] else None,
        grouped=bool(row["grouped"]),
    )


def schedule_to_row(schedule: Schedule | None) -> dict[str, Any]:
    return {
        "schedule_text": schedule.text if schedule else None,
        "schedule_seconds": schedule.seconds if schedule else None,
    }


def source_to_row(table_id: str, position: int, source: Source) -> dict[str, Any]:
    return {
        "table_id": table_id,
        "position": position,
        "source_key": source.key,
        "kind": source.kind,
        "name_key": source.name.key,
        "schema_name": source.name.schema,
        "name": source.name.name,
        "location": source.location,
        "source_id": source.table_id,
        "columns": {"used": list(source.columns), "known": list(source.known)},
    }


def source_from_row(row: Row) -> Source:
    columns = row["columns"]
    if isinstance(columns, list):
        # From before all columns were recorded.
        columns = {"used": columns, "known": []}
    return Source(
        key=row["source_key"],
        kind=row["kind"],
        name=_name(row),
        location=row["location"],
        table_id=row["source_id"],
        columns=tuple(columns["used"]),
        known=tuple(columns["known"]),
    )


def base_table_to_row(table: BaseTable) -> dict[str, Any]:
    return {
        "key": table.name.key,
        "schema_name": table.name.schema,
        "name": table.name.name,
        "location": table.location,
    }


def base_table_from_row(row: Row) -> BaseTable:
    return BaseTable(_name(row), row["location"])


def attempt_from_row(row: Row) -> Attempt:
    """Rows come from a join with `stream_tables`, whose columns are prefixed with `table_`."""
    fields = {name: row[name] for name in Attempt.__slots__ if name != "table_name"}
    return Attempt(
        **{
            **fields,
            "table_name": str(TableName(row["table_schema"], row["table_name"])),
            "outcome": Outcome(row["outcome"]),
            "action": RefreshAction(row["action"]) if row["action"] else None,
            "frontier": frontier_from_json(row["frontier"]),
        }
    )


def verification_to_row(result: Verification) -> dict[str, Any]:
    fields = {name: getattr(result, name) for name in Verification.__slots__}
    return {**fields, "frontier": frontier_to_json(result.frontier)}


def verification_from_row(row: Row) -> Verification:
    fields = {name: row[name] for name in Verification.__slots__}
    return Verification(**{**fields, "frontier": frontier_from_json(row["frontier"])})


def alert_to_row(alert: Alert) -> dict[str, Any]:
    return {
        "at": alert.at,
        "kind": alert.kind.value,
        "table_key": alert.table_key,
        "table_name": alert.table,
        "message": alert.message,
        "facts": plain(alert.facts),
        "ended_at": alert.ended_at,
    }


def alert_from_row(row: Row) -> Alert:
    fields = {name: row[name] for name in ("message", "facts", "at", "ended_at", "id")}
    return Alert(AlertKind(row["kind"]), row["table_name"], **fields)


def frontier_to_json(frontier: Frontier | None) -> dict[str, Any] | None:
    return frontier.to_json() if frontier else None


def frontier_from_json(data: Mapping[str, Any] | None) -> Frontier | None:
    return Frontier.from_json(data) if data else None


def _name(row: Row) -> TableName:
    return TableName(row["schema_name"], row["name"])


def _schedule(row: Row) -> Schedule | None:
    text, seconds = row["schedule_text"], row["schedule_seconds"]
    if text is None:
        return None
    return Schedule(text, seconds) if seconds is not None else Schedule.parse(text)
