"""The newest state that a new table can start from without refreshing anything above it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from runnel.catalog import Source, StreamTable, Writer
from runnel.errors import UserError
from runnel.model.frontier import Frontier, Pin
from runnel.model.schedule import Schedule
from runnel.refresh.instants import Past, State

_EVER = datetime.min.replace(tzinfo=UTC)


def newest_state(catalog: Writer, sources: Iterable[Source], oldest: datetime) -> Frontier | None:
    """Where the stream tables among the sources stand, and the base tables that they have read.

    None when they do not belong to one instant, or when that is too old. A base table that none of
    them reads is not in it: any version of it goes with them.
    """
    read = {source.key: source.kind for source in sources}
    streams = [key for key, kind in read.items() if kind == "stream"]
    try:
        states = Past(catalog, lambda table, epoch: False).agreeing(streams, None)
    except UserError:
        return None
    if not all(_is_present(state) for state in states.values()):
        return None
    base = {} if len(read) == len(streams) else _base(states.values())
    at = min(state.at for state in states.values())
    if base is None or at < oldest:
        return None
    pins = {k: Pin("trace", s.table.incarnation, s.epoch) for k, s in states.items()}
    return Frontier(pins | {key: pin for key, pin in base.items() if key in read}, at)


def oldest_that_fits(
    made: Iterable[StreamTable], gone: Iterable[StreamTable], now: datetime, *, is_any: bool = False
) -> datetime:
    """How old a state may be for all the tables that are made.

    `is_any`: whatever their schedules say. Never older than a table whose place they take.
    """
    known = [t.frontier.data_timestamp for t in gone if t.frontier is not None]
    fitting = [] if is_any else [_oldest(t.schedule, now) for t in made if not t.is_hidden]
    return max([*fitting, *known], default=_EVER)


def _oldest(schedule: Schedule | None, now: datetime) -> datetime:
    """Who has no target, or that of consumers it does not have yet, reads what others would."""
    if schedule is None or schedule.is_downstream:
        return _EVER
    if schedule.cron is not None:
        return schedule.cron.until(now)
    return now - timedelta(seconds=schedule.seconds or 0.0)


def _is_present(state: State) -> bool:
    """The newest epoch of a table: an older one may be compacted while it is being read."""
    return state.epoch == state.table.epoch > 0 and not state.table.reinitialize


def _base(states: Iterable[State]) -> dict[str, Pin] | None:
    """The versions of base tables that they agree on; None when one of them cannot tell."""
    found: dict[str, Pin] = {}
    for state in states:
        if state.base is None:
            return None
        found |= state.base
    return found
