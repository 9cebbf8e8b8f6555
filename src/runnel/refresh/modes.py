"""Which refresh mode a table may have."""

from __future__ import annotations

from runnel.catalog import StreamTable
from runnel.errors import UserError
from runnel.model.refresh import RefreshMode
from runnel.model.schedule import Schedule


def check_mode(mode: RefreshMode, schedule: Schedule | None) -> None:
    """An IMMEDIATE table is never late, so that there is no lag to ask for."""
    if mode is RefreshMode.IMMEDIATE and schedule is not None:
        raise UserError(
            "an IMMEDIATE table has no schedule",
            detail="it follows each write, and is brought up to date before it is read",
            hint="leave the schedule out (schedule=None), or use refresh mode AUTO",
        )


def check_query(mode: RefreshMode, table: StreamTable) -> None:
    """A mode that is strict needs a query that can be maintained."""
    if mode.is_strict and table.not_differential:
        raise UserError(
            f"{table.label} cannot be refreshed differentially",
            detail=table.not_differential,
            hint="keep AUTO or FULL, or change the query",
        )
