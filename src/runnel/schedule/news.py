"""Whether a table has anything to do: what it reads has changed, or it is restless itself."""

from __future__ import annotations

from collections.abc import Mapping

from runnel.model.refresh import TableState
from runnel.schedule.views import Snapshot, TableView


def has_no_news(table: TableView, snapshot: Snapshot, tables: Mapping[str, TableView]) -> bool:
    """Whether a refresh to the snapshot would do nothing, if that is so of all that it reads."""
    if table.state is not TableState.ACTIVE or table.is_restless or table.timestamp is None:
        return False
    if any(b not in snapshot.pins or snapshot.pins[b] != table.pins.get(b) for b in table.bases):
        return False
    return all(_is_pinned(table, tables[source]) for source in table.reads)


def _is_pinned(table: TableView, source: TableView) -> bool:
    pin = table.pins.get(source.key)
    return pin is not None and (pin.identity, pin.version) == (source.incarnation, source.epoch)
