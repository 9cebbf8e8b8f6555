"""What open snapshots read: epochs that compaction leaves alone as long as the reader lives."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from runnel.catalog.engine import reading, writing
from runnel.catalog.lease import Leases
from runnel.catalog.records import StreamTable
from runnel.catalog.schema import holds
from runnel.catalog.writer import Writer
from runnel.errors import NotFound

_PREFIX = "snapshot:"


@dataclass(frozen=True, slots=True)
class Hold:
    """An epoch of a table that someone may still read; `opened_at` is in seconds since 1970."""

    resource: str
    epoch: int
    opened_at: float


@contextmanager
def holding(
    writer: Writer, leases: Leases, epochs: Mapping[str, tuple[StreamTable, int]]
) -> Iterator[str]:
    """Keep these epochs (by table key) from being compacted during a block; gives the lease's name.

    The lease is renewed by its thread; a process that dies leaves rows that no longer count.
    """
    resource = f"{_PREFIX}{uuid.uuid4().hex}"
    rows = [
        {"resource": resource, "table_id": table.id, "incarnation": table.incarnation,
         "epoch": epoch, "opened_at": time.time()}
        for table, epoch in epochs.values()
    ]  # fmt: skip
    with leases.hold(resource):
        if rows:
            _insert(writer, rows)
        try:
            yield resource
        finally:
            _forget(writer, resource)
    leases.forget(resource)


def holds_on(writer: Writer, leases: Leases, table: StreamTable) -> list[Hold]:
    """The epochs of a table that living snapshots read; rows of dead ones are removed."""
    query = sa.select(holds).where(
        holds.c.table_id == table.id, holds.c.incarnation == table.incarnation
    )
    with reading(writer.engine) as connection:
        rows = connection.execute(query).mappings().all()
    found = [Hold(row["resource"], row["epoch"], row["opened_at"]) for row in rows]
    living = {hold.resource for hold in found if leases.is_held(hold.resource)}
    for resource in {hold.resource for hold in found} - living:
        _forget(writer, resource)
        leases.forget(resource)
    return [hold for hold in found if hold.resource in living]


def _insert(writer: Writer, rows: list[dict[str, Any]]) -> None:
    try:
        with writing(writer.engine) as connection:
            connection.execute(holds.insert(), rows)
    except IntegrityError as error:
        raise NotFound("a stream table of the snapshot was dropped meanwhile") from error


def _forget(writer: Writer, resource: str) -> None:
    with writing(writer.engine) as connection:
        connection.execute(holds.delete().where(holds.c.resource == resource))
