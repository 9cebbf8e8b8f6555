"""The durable record: definitions, graph edges, frontiers, history, leases."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runnel.catalog.alone import advance_alone
    from runnel.catalog.damage import is_sound, set_aside
    from runnel.catalog.definitions import Definitions
    from runnel.catalog.groups import Advance, advance_together, set_grouped
    from runnel.catalog.holds import Hold, holding, holds_on
    from runnel.catalog.lease import Lease, Leases
    from runnel.catalog.owner import Owner, is_alive
    from runnel.catalog.quick import QuickReader
    from runnel.catalog.reader import Reader
    from runnel.catalog.records import (
        CYCLE,
        IN_CYCLE,
        PART_OF,
        READS,
        WHOLE,
        Attempt,
        BaseTable,
        Progress,
        Questions,
        QuietMove,
        Source,
        StreamTable,
        Verification,
    )
    from runnel.catalog.writer import Writer

__all__ = [
    "CYCLE",
    "IN_CYCLE",
    "PART_OF",
    "READS",
    "WHOLE",
    "Advance",
    "Attempt",
    "BaseTable",
    "Definitions",
    "Hold",
    "Lease",
    "Leases",
    "Owner",
    "Progress",
    "Questions",
    "QuickReader",
    "QuietMove",
    "Reader",
    "Source",
    "StreamTable",
    "Verification",
    "Writer",
    "advance_alone",
    "advance_together",
    "holding",
    "holds_on",
    "is_alive",
    "is_sound",
    "open_catalog",
    "open_reader",
    "set_aside",
    "set_grouped",
]

_HOMES = {
    "Lease": "lease", "Leases": "lease", "Owner": "owner", "is_alive": "owner",
    "Definitions": "definitions", "is_sound": "damage", "set_aside": "damage",
    "QuickReader": "quick", "Reader": "reader", "Writer": "writer", "Advance": "groups",
    "advance_together": "groups", "set_grouped": "groups", "Hold": "holds", "holding": "holds",
    "holds_on": "holds", "advance_alone": "alone",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    # Loaded on first use: `runnel status` must not pay for importing SQLAlchemy.
    if name not in __all__:
        raise AttributeError(f"module 'runnel.catalog' has no attribute {name!r}")
    return getattr(import_module(f"runnel.catalog.{_HOMES.get(name, 'records')}"), name)


def open_catalog(url: str, *, create: bool = True) -> Writer:
    """Open the catalog at `sqlite:///path` or `postgresql://...`, creating or migrating it."""
    from runnel.catalog.engine import make_engine
    from runnel.catalog.migrate import prepare
    from runnel.catalog.writer import Writer

    engine = make_engine(url)
    prepare(engine, create=create)
    return Writer(engine)


def open_reader(url: str) -> Reader:
    """Open an existing catalog for questions only."""
    from runnel.catalog.engine import make_engine
    from runnel.catalog.migrate import prepare
    from runnel.catalog.reader import Reader

    engine = make_engine(url)
    prepare(engine, create=False)
    return Reader(engine)
