"""The step of a table by itself: recorded with all that belongs to it while its lease is held."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from runnel.catalog.engine import writing
from runnel.catalog.groups import Advance, step
from runnel.catalog.lease import Lease, require
from runnel.catalog.recorder import finish
from runnel.catalog.rows import frontier_from_json
from runnel.catalog.schema import stream_tables
from runnel.catalog.writer import Writer
from runnel.model.frontier import Frontier
from runnel.model.refresh import Outcome, TableState


def advance_alone(writer: Writer, advance: Advance, held: Lease) -> None:
    """Record a step and close its attempt; Busy, and nothing of it, when the lease was lost.

    A reader may have found the new epoch in the trace and recorded it already.
    """
    is_first = advance.table.state is TableState.UNINITIALIZED
    with writer.changing() if is_first else writing(writer.engine) as connection:
        require(connection, held)
        step(connection, _from_here(connection, advance))
        finish(connection, advance.attempt, Outcome.OK, None, advance.fields)
    if is_first:
        writer.copy_definition(advance.table.id)


def _from_here(connection: sa.Connection, advance: Advance) -> Advance:
    """The step from where the table is by now: at its old epoch, or at the new one already."""
    c = stream_tables.c
    query = sa.select(c.epoch, c.frontier).where(c.id == advance.table.id).with_for_update()
    found = connection.execute(query).first()
    if found is None or found.epoch not in (advance.table.epoch, advance.epoch):
        return advance
    frontier = _later(advance.frontier, frontier_from_json(found.frontier))
    return replace(advance, table=replace(advance.table, epoch=found.epoch), frontier=frontier)


def _later(frontier: Frontier, known: Frontier | None) -> Frontier:
    """Without news a table is moved on without its lease; from there T does not go back."""
    if known is None or known.data_timestamp <= frontier.data_timestamp:
        return frontier
    return replace(frontier, data_timestamp=known.data_timestamp)
