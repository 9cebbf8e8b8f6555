"""What can be wrong with a lake: one function a question, each giving one finding; no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from runnel.catalog import Attempt, Owner, StreamTable, is_alive
from runnel.errors import RunnelError
from runnel.model.tabular import Record, Rows, cell
from runnel.refresh.answers import Question
from runnel.refresh.attempt import lease_of
from runnel.refresh.lifecycle import orphans, remove_orphans, storage_is_missing
from runnel.refresh.retention import retention_risks
from runnel.refresh.scratch import forgotten, remove_forgotten
from runnel.refresh.unfinished import remove_unfinished, unfinished_writes
from runnel.refresh.workspace import Workspace
from runnel.schedule import seeing


@dataclass(frozen=True, slots=True, repr=False)
class Finding(Record):
    """The answer to one question; `fix` says how to put right what is wrong."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("check", "result", "said", "fix")

    check: str
    result: Literal["ok", "warning", "problem", "fixed"]
    said: str
    fix: str | None = None


Check = Callable[[Workspace], Finding]


def examine(workspace: Workspace, *, fix: bool) -> Rows[Finding]:
    """All findings of a lake; with `fix`, what was put right comes first."""
    done = repair(workspace) if fix else []
    return Rows([*done, *(check(workspace) for check in LAKE)], Finding.COLUMNS)


def stored_tables(workspace: Workspace) -> Finding:
    """Tables whose storage someone removed."""
    lost = [t for t in workspace.catalog.tables() if storage_is_missing(workspace, t)]
    return _finding(
        "storage", "problem", _names(lost), "every table has its storage", "without storage: {}",
        "drop them and create them again",
    )  # fmt: skip


def sources(workspace: Workspace) -> Finding:
    """Sources that can no longer be read."""
    read = [
        (source, table, source.location)
        for table in workspace.catalog.tables()
        for source in table.sources
        if source.kind == "delta" and source.location
    ]
    asked = {at: Question(at, partial(_is_readable, workspace, at)) for _, _, at in read}
    is_there = workspace.ask(asked)
    gone = [f"{s.name} (read by {t.label})" for s, t, at in read if not is_there.get(at)]
    return _finding(
        "sources", "problem", gone, "every source can be read", "gone: {}",
        "restore them, or drop the tables that read them",
    )  # fmt: skip


def definitions(workspace: Workspace) -> Finding:
    """Tables of a catalog that was lost."""
    return _finding(
        "definitions", "problem", _names(workspace.catalog.unknown_definitions()),
        "every definition is in the catalog", "defined here, but not in the catalog: {}",
        "runnel doctor --rebuild",
    )  # fmt: skip


def retention(workspace: Workspace) -> Finding:
    """Versions of sources that are still needed and may soon be removed."""
    found = [risk.message for risk in retention_risks(workspace)]
    return _finding(
        "retention", "warning", found, "what the tables still need of their sources is safe", "{}",
        "runnel refresh, or a longer delta.deletedFileRetentionDuration / "
        "delta.logRetentionDuration",
    )  # fmt: skip


def leftovers(workspace: Workspace) -> Finding:
    """Folders that a killed create, alter, drop or pass left behind."""
    found = [workspace.traces_path / name for name in orphans(workspace)] + forgotten(workspace)
    return _finding(
        "leftovers", "warning", [str(path) for path in found], "no folder that nobody owns",
        "nobody owns: {}", "runnel doctor --fix",
    )  # fmt: skip


def writes(workspace: Workspace) -> Finding:
    """Files that a killed refresh or compaction left inside a table's storage."""
    found = [table.label for table in unfinished_writes(workspace)]
    return _finding(
        "writes", "warning", found, "no files of an unfinished write", "unfinished in: {}",
        "runnel doctor --fix",
    )  # fmt: skip


def attempts(workspace: Workspace) -> Finding:
    """Refreshes whose process died."""
    found = [f"{a.table_name} ({_who(a.owner)})" for a in _interrupted(workspace)]
    return _finding(
        "attempts", "warning", found, "no interrupted refresh", "interrupted: {}",
        "runnel doctor --fix",
    )  # fmt: skip


def leases(workspace: Workspace) -> Finding:
    """Leases whose holder died; they stop nobody, the next refresh takes them over."""
    found = [f"{t.label} (held by {who})" for t, who in _dead_leases(workspace)]
    return _finding(
        "leases", "warning", found, "no lease of a dead process", "of dead processes: {}",
        "runnel doctor --fix",
    )  # fmt: skip


def errors(workspace: Workspace) -> Finding:
    """Tables whose last refresh failed."""
    found = [
        f"{t.label}: {(t.last_error or '').partition(chr(10))[0]}"
        for t in workspace.catalog.tables()
        if t.consecutive_errors
    ]
    return _finding(
        "errors", "problem", found, "no refresh failed last", "failed last: {}",
        "runnel history NAME tells more",
    )  # fmt: skip


def verification(workspace: Workspace) -> Finding:
    """Tables that were not equal to their query when that was last looked at."""
    rows = seeing.status(workspace.catalog, workspace.settings)
    found = [
        f"{s.name} ({s.verified_missing} rows missing, {s.verified_unexpected} unexpected at "
        f"{cell(s.verified_at)})"
        for s in rows
        if s.verified_ok is False
    ]
    return _finding(
        "verification", "problem", found, "no table was found to differ from its query",
        "differed when last verified: {}",
        "runnel verify NAME; if it still differs: drop it, create it again, and report it",
    )  # fmt: skip


def staleness(workspace: Workspace) -> Finding:
    """Tables further behind than their schedule allows."""
    rows = seeing.status(workspace.catalog, workspace.settings)
    found = [f"{s.name} by {s.lag or 'an unknown time'}" for s in rows if s.stale]
    return _finding(
        "staleness", "warning", found, "no table is later than its schedule", "behind: {}",
        "runnel refresh",
    )  # fmt: skip


def reinitialize(workspace: Workspace) -> Finding:
    """Tables that the next refresh computes anew."""
    found = [f"{t.label}: {t.reinitialize}" for t in workspace.catalog.tables() if t.reinitialize]
    return _finding(
        "reinitialize", "warning", found, "no table has to start over",
        "start over at the next refresh: {}", "runnel refresh",
    )  # fmt: skip


LAKE: tuple[Check, ...] = (
    definitions, stored_tables, sources, retention, leftovers, writes, attempts, leases, errors,
    verification, staleness, reinitialize,
)  # fmt: skip


def repair(workspace: Workspace) -> list[Finding]:
    """Do what can be done without a decision of the user; what was done is told."""
    done: list[Finding] = []
    if copied := workspace.catalog.copy_missing():
        done.append(Finding("definitions", "fixed", f"copied those of {', '.join(copied)}"))
    if removed := len(remove_orphans(workspace)) + len(remove_forgotten(workspace)):
        done.append(
            Finding("leftovers", "fixed", f"folders that nobody owned were removed: {removed}")
        )
    if tidied := remove_unfinished(workspace):
        labels = ", ".join(table.label for table in tidied)
        done.append(Finding("writes", "fixed", f"removed the files of unfinished writes: {labels}"))
    if closed := workspace.catalog.close_interrupted(workspace.leases.is_alive):
        done.append(Finding("attempts", "fixed", f"closed {len(closed)} interrupted refreshes"))
    freed = [table for table, _ in _dead_leases(workspace)]
    for table in freed:
        with workspace.leases.hold(lease_of(table.id)):
            pass
    if freed:
        done.append(Finding("leases", "fixed", f"freed those of {', '.join(_names(freed))}"))
    return done


def _finding(
    check: str,
    result: Literal["warning", "problem"],
    found: list[str],
    good: str,
    bad: str,
    fix: str,
) -> Finding:
    if not found:
        return Finding(check, "ok", good)
    return Finding(check, result, bad.format(", ".join(found)), fix)


def _names(tables: Iterable[StreamTable]) -> list[str]:
    return list(dict.fromkeys(table.owner for table in tables))


def _is_readable(workspace: Workspace, location: str) -> bool:
    try:
        workspace.log(location).latest_version()
    except RunnelError:
        return False
    return True


def _interrupted(workspace: Workspace) -> list[Attempt]:
    return [
        attempt
        for attempt in workspace.catalog.running()
        if not workspace.leases.is_alive(Owner.parse(attempt.owner))
    ]


def _dead_leases(workspace: Workspace) -> list[tuple[StreamTable, str]]:
    found = []
    for table in workspace.catalog.tables():
        held = workspace.leases.look(lease_of(table.id))
        if held and held.token and held.owner and not is_alive(held.owner):
            found.append((table, held.owner.description))
    return found


def _who(owner: str) -> str:
    return Owner.parse(owner).description
