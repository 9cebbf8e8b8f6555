"""Tables that fail write after write: suspended as `run` suspends those that it refreshes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from runnel.catalog import StreamTable
from runnel.model.alerts import AlertKind
from runnel.model.refresh import TableState
from runnel.refresh.workspace import Workspace
from runnel.schedule.failures import verdict
from runnel.schedule.lake_book import LakeBook
from runnel.schedule.outlook import view_of


def suspend_failing(workspace: Workspace, before: Iterable[StreamTable]) -> list[str]:
    """Suspend those of the tables that have failed since, once too often; what they are called."""
    given_up: list[str] = []
    for known in before:
        table = workspace.catalog.get(known.id)
        if table is None or table.consecutive_errors <= known.consecutive_errors:
            continue
        if (reason := _why(workspace, table)) is not None:
            workspace.catalog.update_table(table.id, state=TableState.SUSPENDED, retry_at=None)
            errors = table.consecutive_errors
            workspace.alerts.emit(AlertKind.AUTO_SUSPENDED, table.label, reason, errors=errors)
            given_up.append(table.owner)
    return given_up


def _why(workspace: Workspace, table: StreamTable) -> str | None:
    """Why a table is given up; None when it is not."""
    errors, settings = table.consecutive_errors, workspace.settings
    if errors < settings.max_consecutive_errors or table.state is not TableState.ACTIVE:
        return None
    view = view_of(table)
    failures = LakeBook(workspace).failures(view)
    if not failures:
        return None
    found = verdict(
        datetime.now(UTC).timestamp(), failures[0].is_retryable, view, failures,
        settings.max_consecutive_errors, settings.max_outage,
    )  # fmt: skip
    said = (table.last_error or "unknown").partition("\n")[0]
    return None if found is None else f"{found}: {said}"
