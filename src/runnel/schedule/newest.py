"""The newest state that a new table can start from without refreshing anything above it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from runnel.catalog import Source, StreamTable
from runnel.model.frontier import Frontier, Pin
from runnel.model.refresh import TableState


def newest_state(
    tables: Mapping[str, StreamTable], sources: Iterable[Source], oldest: datetime
) -> Frontier | None:
    """The instant that the stream tables among the sources have in common.

    None when they have none, when it is too old, or when it does not say at which version a base
    table stood then: that is known only of those that a table above was refreshed with.
    """
    read = list(sources)
    above = [tables[s.key] for s in read if s.kind == "stream"]
    instants = {t.frontier.data_timestamp if t.frontier else None for t in above}
    at = next(iter(instants)) if len(instants) == 1 else None
    if at is None or at < oldest or not all(_is_sound(table) for table in above):
        return None
    known = _pins_at(tables, above, at)
    if any(source.key not in known for source in read):
        return None
    return Frontier({source.key: known[source.key] for source in read}, at)


def _is_sound(table: StreamTable) -> bool:
    return table.state is TableState.ACTIVE and not table.reinitialize and table.epoch > 0


def _pins_at(
    tables: Mapping[str, StreamTable], above: list[StreamTable], at: datetime
) -> dict[str, Pin]:
    """Where everything stood at an instant, as far as tables of that instant tell."""
    known: dict[str, Pin] = {}
    seen: set[str] = set()
    waiting = list(above)
    while waiting:
        table = waiting.pop()
        if table.id in seen or table.frontier is None or table.frontier.data_timestamp != at:
            continue
        seen.add(table.id)
        known[table.name.key] = Pin("trace", table.incarnation, table.epoch)
        known |= {k: pin for k, pin in table.frontier.pins.items() if pin.kind != "trace"}
        waiting += [tables[s.key] for s in table.sources if s.kind == "stream" and s.key in tables]
    return known
