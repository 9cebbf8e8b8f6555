"""Tables that become visible together: progress recorded in one transaction, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from runnel.catalog.engine import writing
from runnel.catalog.lease import Lease, require
from runnel.catalog.recorder import finish, left_to_do
from runnel.catalog.records import FORGIVEN, AttemptFields, StreamTable
from runnel.catalog.rows import frontier_to_json
from runnel.catalog.schema import stream_tables
from runnel.catalog.writer import Writer, put_definition
from runnel.errors import Busy
from runnel.model.frontier import Frontier
from runnel.model.refresh import Outcome, TableState


@dataclass(frozen=True, slots=True)
class Advance:
    """One table's step: from the state that `table` is to what its trace now holds.

    `work_seconds` is what its refreshes take, when this one told something about that. `renewed`:
    what the table becomes, where its trace is another one from now on.
    """

    table: StreamTable
    frontier: Frontier
    epoch: int
    since: int
    trace_version: int
    attempt: int
    fields: AttemptFields = field(hash=False)
    work_seconds: float | None = None
    renewed: StreamTable | None = None


def advance_together(writer: Writer, advances: Sequence[Advance], held: Sequence[Lease]) -> None:
    """Make the new epochs visible and close the attempts; Busy when a lease or a table was lost."""
    is_moved = any(advance.epoch != advance.table.epoch for advance in advances)
    with writer.changing() if is_moved else writing(writer.engine) as connection:
        for lease in held:
            require(connection, lease)
        for advance in advances:
            step(connection, advance)
            finish(connection, advance.attempt, Outcome.OK, None, advance.fields)
    for advance in advances:
        if advance.renewed is not None:
            writer.copy_definition(advance.table.id)


def set_grouped(writer: Writer, table_ids: Sequence[str], is_grouped: bool) -> None:
    """Note that readers have to stay at recorded states, or no longer; other processes notice."""
    with writer.changing() as connection:
        change = stream_tables.update().where(stream_tables.c.id.in_(table_ids))
        connection.execute(change.values(grouped=is_grouped))


def step(connection: sa.Connection, advance: Advance) -> None:
    """Record one table's step inside a transaction; Busy when it is not where it was."""
    table, c = advance.table, stream_tables.c
    as_known = sa.and_(c.id == table.id, c.incarnation == table.incarnation, c.epoch == table.epoch)
    row: dict[str, Any] = {
        "frontier": frontier_to_json(advance.frontier), "epoch": advance.epoch,
        "since": advance.since, "trace_version": advance.trace_version,
        **FORGIVEN,
    }  # fmt: skip
    if table.reinitialize is not None:
        row["reinitialize"] = left_to_do(table.reinitialize)
    if advance.work_seconds is not None:
        row["work_seconds"] = advance.work_seconds
    if table.state is TableState.UNINITIALIZED:
        row["state"] = TableState.ACTIVE.value
    change = stream_tables.update().where(as_known).values(row)
    if connection.execute(change).rowcount != 1:
        raise Busy(f"{table.name} was changed while it was refreshed", hint="refresh again")
    if advance.renewed is not None:
        put_definition(connection, advance.renewed, "incarnation")
