"""How each kind of result is listed: which columns, under which titles, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from runnel.cli.text import painted, say, table
from runnel.model.alerts import Alert
from runnel.model.diamonds import DiamondMember
from runnel.model.refresh import TableState
from runnel.model.results import (
    CompactResult,
    CycleStatus,
    HistoryEntry,
    RefreshResult,
    TableStatus,
    VerifyResult,
)
from runnel.model.stats import TableStats
from runnel.model.tabular import Record, Rows, cell, duration

_NUMBERS = (
    "lag", "rows in", "+rows", "-rows", "time", "missing", "unexpected", "pred. diff", "pred. full",
    "failed", "average", "p50", "p95", "target", "in target", "max lag", "actual/predicted",
    "iterations",
)  # fmt: skip


def emit_json(value: Any) -> None:
    """One JSON document on standard output."""
    say(json.dumps(value, ensure_ascii=False))


def emit(records: Sequence[Record], as_json: bool, empty: str) -> None:
    """Records of one kind, as a table or as a JSON array."""
    if as_json:
        emit_json([record.to_dict() for record in records])
    elif records:
        say(listed(records))
    else:
        say(empty)


def listed(records: Sequence[Record]) -> str:
    """A table of records of one kind, and what does not fit into it below."""
    titles, row = _LISTINGS[type(records[0])]
    text = table(titles, [row(record) for record in records], right=_NUMBERS)
    return "\n".join(
        [text, *(_sample(r) for r in records if isinstance(r, VerifyResult) and not r)]
    )


def told(result: Record | Rows[Any]) -> str:
    """Any result of a verb as text."""
    if isinstance(result, Rows):
        return listed(result) if len(result) else "(none)"
    return listed([result]) if type(result) in _LISTINGS else str(result)


def described(status: TableStatus) -> str:
    """A table and its definition in a few words."""
    every = f", {_every(status)}" if status.schedule else ""
    state = "" if status.state is TableState.ACTIVE else f", {status.state.lower()}"
    return f"{status.name} ({status.mode}{every}{state})"


def _every(status: TableStatus) -> str:
    text = status.schedule or ""
    return f"at most {text} behind" if text[:1].isdigit() and " " not in text else text


def _status(status: TableStatus) -> list[Any]:
    return [
        status.name, status.state, status.mode, status.schedule, status.lag, status.last_action,
        cell(status.last_refresh_at), _remark(status),
    ]  # fmt: skip


def _remark(status: TableStatus) -> str:
    remarks = []
    if status.stale:
        remarks.append("stale")
    if status.consecutive_errors:
        times = "once" if status.consecutive_errors == 1 else f"{status.consecutive_errors} times"
        first = (status.last_error or "").partition("\n")[0]
        remarks.append(f"failed {times}: {first}")
        if status.next_due is not None:
            remarks.append(f"next try {cell(status.next_due)}")
    if status.verified_ok is False:
        remarks.append("differed from its query when last verified")
    if status.lag_note:
        remarks.append(status.lag_note)
    return "; ".join(remarks)


def _history(entry: HistoryEntry) -> list[Any]:
    said = entry.reason if entry.error is None else entry.error.partition("\n")[0]
    return [
        cell(entry.started_at), entry.name, entry.outcome, entry.action,
        cell(entry.rows_inserted), cell(entry.rows_deleted), duration(entry.seconds),
        duration(entry.predicted.get("differential")), duration(entry.predicted.get("full")), said,
    ]  # fmt: skip


def _stats(stats: TableStats) -> list[Any]:
    attained = None if stats.lag_attainment is None else f"{stats.lag_attainment:.1%}"
    return [
        stats.name, cell(stats.failed), cell(stats.rows_inserted), cell(stats.rows_deleted),
        duration(stats.average_seconds), duration(stats.p50_seconds), duration(stats.p95_seconds),
        duration(stats.target_seconds), attained, duration(stats.max_lag_seconds),
        None if stats.cost_ratio is None else f"{stats.cost_ratio:.2f}", cell(stats.actions),
    ]  # fmt: skip


def _alert(alert: Alert) -> list[Any]:
    over = cell(alert.ended_at) if alert.ended_at else "lasts" if alert.kind.is_lasting else ""
    return [cell(alert.at), alert.kind, alert.table, over, alert.message]


def _refresh(result: RefreshResult) -> list[Any]:
    return [
        result.name, result.action, cell(result.change_rows), cell(result.rows_inserted),
        cell(result.rows_deleted), duration(result.seconds), result.reason,
    ]  # fmt: skip


def _verify(result: VerifyResult) -> list[Any]:
    return [
        result.name, "OK" if result.ok else "DIFFERENT", cell(result.missing),
        cell(result.unexpected), duration(result.seconds),
    ]  # fmt: skip


def _compact(result: CompactResult) -> list[Any]:
    files = f"{cell(result.files_before)} → {cell(result.files_after)}"
    rows = f"{cell(result.rows_before)} → {cell(result.rows_after)}"
    return [
        result.name, "yes" if result.compacted else "no", files if result.compacted else "",
        rows if result.compacted else "", duration(result.seconds), result.reason,
    ]  # fmt: skip


def _cycle(status: CycleStatus) -> list[Any]:
    converged = "" if status.converged is None else "yes" if status.converged else "no"
    error = (status.error or "").partition("\n")[0]
    return [
        ", ".join(status.members), cell(status.iterations), converged, status.action,
        duration(status.seconds), cell(status.refreshed_at), error,
    ]  # fmt: skip


def _diamond(member: DiamondMember) -> list[Any]:
    return [
        member.group_id, member.name, "yes" if member.is_convergence else "no",
        member.consistency, member.epoch, duration(member.target_seconds),
        ", ".join(member.shared),
    ]  # fmt: skip


def _sample(result: VerifyResult) -> str:
    head = painted(f"{result.name}: some of the rows that differ", "bold")
    return "\n".join(["", head, *(f"  {_row(dict(row))}" for row in result.sample)])


def _row(row: dict[str, Any]) -> str:
    kind, times = row.pop("difference", ""), row.pop("times", 1)
    values = ", ".join(f"{name} = {value}" for name, value in row.items())
    return f"{kind}{f' {times} times' if times != 1 else ''}: {values}"


_LISTINGS: dict[type[Record], tuple[tuple[str, ...], Callable[[Any], list[Any]]]] = {
    TableStatus: (
        ("table", "state", "mode", "schedule", "lag", "last action", "last refresh (UTC)",
         "remarks"),
        _status,
    ),
    HistoryEntry: (
        ("started (UTC)", "table", "outcome", "action", "+rows", "-rows", "time", "pred. diff",
         "pred. full", "reason"),
        _history,
    ),
    RefreshResult: (
        ("table", "action", "rows in", "+rows", "-rows", "time", "reason"),
        _refresh,
    ),
    TableStats: (
        ("table", "failed", "+rows", "-rows", "average", "p50", "p95", "target", "in target",
         "max lag", "actual/predicted", "refreshes"),
        _stats,
    ),
    Alert: (("at (UTC)", "kind", "table", "over (UTC)", "message"), _alert),
    VerifyResult: (("table", "result", "missing", "unexpected", "time"), _verify),
    CompactResult: (("table", "compacted", "files", "rows", "time", "reason"), _compact),
    CycleStatus: (
        ("tables", "iterations", "converged", "last action", "time", "last refresh (UTC)", "error"),
        _cycle,
    ),
    DiamondMember: (
        ("group", "table", "meet here", "consistency", "epoch", "target", "read in common"),
        _diamond,
    ),
}  # fmt: skip
