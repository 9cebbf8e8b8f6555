"""Tables that are not the user's: they hold what one or several of the user's are computed from."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from runnel.catalog import StreamTable
from runnel.model.names import TableName
from runnel.model.refresh import RefreshMode, TableState
from runnel.model.schedule import DOWNSTREAM, Schedule
from runnel.refresh.definition import plain_layout


def hidden_table(
    name: TableName, settings: dict[str, str], mode: RefreshMode, options: dict[str, str]
) -> StreamTable:
    """A table that serves one of the user's with this mode; without a query yet."""
    now = datetime.now(UTC)
    return StreamTable(
        id=uuid.uuid4().hex, name=name, query="", mode=hidden_mode(mode),
        schedule=Schedule(DOWNSTREAM), state=TableState.ACTIVE, comment=None,
        incarnation=uuid.uuid4().hex, layout=plain_layout(()), settings=settings,
        not_differential=None, sources=(), frontier=None, epoch=0, since=0, trace_version=-1,
        reinitialize=None, consecutive_errors=0, last_error=None, options=options,
        created_at=now, altered_at=now,
    )  # fmt: skip


def hidden_mode(mode: RefreshMode) -> RefreshMode:
    """Nobody reads it but the table that it serves, so it has no write to follow by itself."""
    return RefreshMode.DIFFERENTIAL if mode is RefreshMode.IMMEDIATE else mode
