"""The durable record: definitions, graph edges, frontiers, history, leases."""

from __future__ import annotations

from runnel.catalog.engine import make_engine
from runnel.catalog.lease import Lease, Leases
from runnel.catalog.migrate import prepare
from runnel.catalog.owner import Owner, is_alive
from runnel.catalog.reader import Reader
from runnel.catalog.records import Attempt, BaseTable, Source, StreamTable, Verification
from runnel.catalog.writer import Writer

__all__ = [
    "Attempt",
    "BaseTable",
    "Lease",
    "Leases",
    "Owner",
    "Reader",
    "Source",
    "StreamTable",
    "Verification",
    "Writer",
    "is_alive",
    "open_catalog",
    "open_reader",
]


def open_catalog(url: str, *, create: bool = True) -> Writer:
    """Open the catalog at `sqlite:///path` or `postgresql://...`, creating or migrating it."""
    engine = make_engine(url)
    prepare(engine, create=create)
    return Writer(engine)


def open_reader(url: str) -> Reader:
    """Open an existing catalog for questions only."""
    engine = make_engine(url)
    prepare(engine, create=False)
    return Reader(engine)
