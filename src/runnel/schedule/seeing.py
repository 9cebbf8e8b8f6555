"""Status, history, statistics, alerts and graph, from the catalog alone: no Spark, no JVM."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from difflib import get_close_matches

from runnel.catalog import Attempt, Questions, StreamTable
from runnel.errors import NotFound, UserError
from runnel.model.alerts import Alert, AlertKind, key_of
from runnel.model.graph import Graph, GraphEdge, GraphNode
from runnel.model.names import RESERVED, TableName
from runnel.model.refresh import Outcome
from runnel.model.results import CycleStatus, HistoryEntry, TableStatus
from runnel.model.schedule import parse_duration
from runnel.model.settings import Settings
from runnel.model.stats import TableStats, summarize
from runnel.model.tabular import Rows
from runnel.schedule.outlook import Outlook, seen_at

_ALL = 1_000_000

_RECENT = 200


def status(
    reader: Questions, settings: Settings, key: str | None = None, now: datetime | None = None
) -> Rows[TableStatus]:
    """One row a table: how stale it is, what happened last."""
    tables = reader.tables()
    at = now or datetime.now(UTC)
    outlook = Outlook.of(tables, settings)
    shown = [table for table in tables if not table.is_hidden]
    wanted = [table for table in shown if key in (None, table.name.key)]
    rows = [_status(reader, table, outlook, at) for table in wanted]
    return Rows(rows, TableStatus.COLUMNS)


def find_table(reader: Questions, name: TableName) -> StreamTable:
    """The table with this name, or an error that says which there are."""
    table = reader.find(name.key)
    if table is None or table.is_hidden:
        known = [str(t.name) for t in reader.tables() if not t.is_hidden]
        raise NotFound(f"stream table {name} does not exist", hint=_suggestion(str(name), known))
    return table


def history(reader: Questions, key: str | None = None, limit: int = 20) -> Rows[HistoryEntry]:
    """Refresh attempts, newest first; a table in a cycle with those of what holds its rows.

    There the rounds are, and what went wrong with them.
    """
    attempts = list(reader.history(key, limit))
    if key is not None and (holder := _holder(reader, key)) is not None:
        attempts += reader.history(holder.name.key, limit)
        attempts = sorted(attempts, key=lambda a: a.id, reverse=True)[:limit]
    labels: dict[str, str] = {}
    if any(a.table_name.startswith(RESERVED) for a in attempts):
        labels = {t.id: t.label for t in reader.tables() if t.is_hidden}
    entries = [_entry(a, labels.get(a.table_id, a.table_name)) for a in attempts]
    return Rows(entries, HistoryEntry.COLUMNS)


def cycles(reader: Questions) -> Rows[CycleStatus]:
    """The cycles of tables, and how finding their rows ended the last time."""
    holders = [t for t in reader.tables() if t.keeps_cycle]
    return Rows([_cycle(reader, holder) for holder in holders], CycleStatus.COLUMNS)


def _holder(reader: Questions, key: str) -> StreamTable | None:
    """What holds the rows of the cycle that a table is in."""
    table = reader.find(key)
    return reader.find(table.cycle) if table is not None and table.cycle is not None else None


def _cycle(reader: Questions, holder: StreamTable) -> CycleStatus:
    members = tuple(str(TableName(*m["name"])) for m in holder.cycle_members)
    attempts = [_entry(a, "") for a in reader.history(holder.name.key, _RECENT)]
    if not attempts:
        return CycleStatus(members)
    last = attempts[0]
    worked = next((a for a in attempts if a.iterations), last)
    return CycleStatus(
        members, worked.iterations, None if last.outcome is Outcome.RUNNING else not last.error,
        worked.action, worked.seconds, worked.finished_at, last.error,
    )  # fmt: skip


def stats(
    reader: Questions,
    settings: Settings,
    key: str | None = None,
    window: str | float | timedelta | None = "1d",
    now: datetime | None = None,
) -> Rows[TableStats]:
    """One row a table: what its refreshes of the last `window` (None: all) amount to."""
    until = now or datetime.now(UTC)
    tables = reader.tables()
    aims = Outlook.of(tables, settings).plan.aims
    shown = [t for t in tables if not t.is_hidden and key in (None, t.name.key)]
    rows = [_stats(reader, t, window, until, aims[t.name.key].target) for t in shown]
    return Rows(rows, TableStats.COLUMNS)


def alerts(
    reader: Questions,
    name: TableName | None = None,
    kind: AlertKind | None = None,
    limit: int = 50,
    *,
    lasting: bool = False,
) -> Rows[Alert]:
    """Alerts newest first, also those of tables that are gone; `lasting`: what is not over.

    Those of a table in a cycle with those of the cycle.
    """
    found = list(reader.alerts(name.key if name else None, kind, limit, lasting=lasting))
    if name is not None and (holder := _holder(reader, name.key)) is not None:
        found += reader.alerts(key_of(holder.label), kind, limit, lasting=lasting)
        found = sorted(found, key=lambda alert: alert.id or 0, reverse=True)[:limit]
    if name is not None and not found and not reader.alerts(name.key, limit=1):
        find_table(reader, name)
    return Rows(found, Alert.COLUMNS)


def graph(reader: Questions) -> Graph:
    """Base tables and stream tables, and who reads whom."""
    nodes: dict[str, GraphNode] = {}
    edges: list[GraphEdge] = []
    tables = [t for t in reader.tables() if not t.is_hidden]
    for table in tables:
        for source in table.reads:
            if source.kind == "delta":
                nodes.setdefault(str(source.name), GraphNode(str(source.name), "delta"))
    for table in tables:
        nodes[str(table.name)] = GraphNode(
            str(table.name), "stream", table.state, table.mode, _text(table)
        )
        edges.extend(GraphEdge(str(source.name), str(table.name)) for source in table.reads)
    return Graph(tuple(nodes.values()), tuple(edges))


def _status(reader: Questions, table: StreamTable, outlook: Outlook, now: datetime) -> TableStatus:
    attempts = reader.history(table.name.key, 1)
    last = attempts[0] if attempts else None
    expected = outlook.of_table(table.name.key, now, seen_at(reader, table, now))
    below = [reader.find(key) for key in _hidden_below(table)]
    failing = next((t for t in below if t is not None and t.last_error), table)
    verified = reader.last_verification(table.id)
    return TableStatus(
        name=str(table.name),
        state=expected.state,
        mode=table.mode,
        schedule=_text(table),
        lag_seconds=expected.lag,
        target_seconds=expected.target,
        stale=expected.is_stale,
        data_timestamp=table.frontier.data_timestamp if table.frontier else None,
        epoch=table.epoch,
        last_action=last.action if last else None,
        last_reason=last.reason if last else None,
        last_refresh_at=last.finished_at if last else None,
        consecutive_errors=failing.consecutive_errors,
        last_error=failing.last_error,
        sources=tuple(str(s.name) for s in table.reads),
        columns=tuple(f"{c.name} {c.type}" for c in table.layout.columns),
        comment=table.comment,
        refresh_reason=table.not_differential,
        query=table.written,
        views=tuple(str(view) for view in table.views),
        lag_note=expected.note or None,
        next_due=expected.next_due,
        verified_at=verified.at if verified else None,
        verified_ok=verified.ok if verified else None,
        verified_missing=verified.missing if verified else None,
        verified_unexpected=verified.unexpected if verified else None,
    )


def _hidden_below(table: StreamTable) -> list[str]:
    """What holds the rows of its cycle, or parts of its query."""
    holder = [table.cycle] if table.cycle else []
    return holder + [source.key for source in table.sources if source.is_part]


def _stats(
    reader: Questions, table: StreamTable, window: str | float | timedelta | None, until: datetime,
    target: float | None,
) -> TableStats:  # fmt: skip
    length = None if window is None else _timedelta(window)
    since = table.created_at if length is None else max(until - length, table.created_at)
    entries = [_entry(a, a.table_name) for a in reader.history(table.name.key, _ALL)]
    return summarize(str(table.name), entries, since, until, target)


def _timedelta(window: str | float | timedelta) -> timedelta:
    seconds = parse_duration(window) if isinstance(window, str) else window
    length = seconds if isinstance(seconds, timedelta) else timedelta(seconds=seconds or 0)
    if length <= timedelta(0):
        raise UserError(f"{window!r} is not a window of time", detail="expected more than nothing")
    return length


def _entry(attempt: Attempt, name: str) -> HistoryEntry:
    return HistoryEntry(
        name=name,
        started_at=attempt.started_at,
        outcome=attempt.outcome,
        finished_at=attempt.finished_at,
        action=attempt.action,
        reason=attempt.reason,
        rows_inserted=attempt.rows_inserted,
        rows_deleted=attempt.rows_deleted,
        change_rows=attempt.change_rows,
        seconds=attempt.seconds,
        phases=attempt.phases,
        predicted=attempt.predicted,
        data_timestamp=attempt.data_timestamp,
        frontier=attempt.frontier,
        epoch=attempt.epoch,
        error=attempt.error,
        error_code=attempt.error_code,
        owner=attempt.owner,
        id=attempt.id,
    )


def _text(table: StreamTable) -> str | None:
    return table.schedule.text if table.schedule else None


def _suggestion(wanted: str, known: list[str]) -> str:
    if not known:
        return "none was created in this lake yet"
    close = get_close_matches(wanted.lower(), [name.lower() for name in known], n=1)
    there_are = f"there are: {', '.join(known[:10])}{', ...' if len(known) > 10 else ''}"
    return f"did you mean {close[0]}? {there_are}" if close else there_are
