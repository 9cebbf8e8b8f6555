"""Which past states of tables belong together: of one data timestamp, or of the same versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice

from runnel.catalog import Attempt, StreamTable, Writer
from runnel.catalog.pruning import HISTORY_LEAST, HISTORY_MOST
from runnel.errors import UserError, never_filled
from runnel.model.frontier import Frontier, Pin
from runnel.model.names import TableName
from runnel.model.refresh import Outcome, RefreshAction
from runnel.refresh.plan import FIRST_FILL

_NOW = "now()"


@dataclass(frozen=True, slots=True)
class State:
    """A table as one of its refreshes left it; `base` says at which versions of base tables.

    `base` is None when that cannot be told any more, or when it saw two versions of one.
    """

    table: StreamTable
    epoch: int
    frontier: Frontier
    base: Mapping[str, Pin] | None = field(hash=False)

    @property
    def at(self) -> datetime:
        return self.frontier.data_timestamp


class Past:
    """The states of tables, from one state of the catalog and its history."""

    def __init__(self, catalog: Writer, is_readable: Callable[[StreamTable, int], bool]) -> None:
        self._catalog = catalog
        self._is_readable = is_readable
        self._tables = {table.name.key: table for table in catalog.tables()}
        self._older: dict[tuple[str, int], tuple[list[tuple[int, Frontier]], bool]] = {}

    def common(
        self, keys: Sequence[str], at: datetime | None, others: Sequence[TableName] = ()
    ) -> dict[str, State]:
        """The newest states of these tables, none after `at`, that belong to one instant.

        All of one data timestamp, where they were all seen at that of the oldest: that table could
        not be read any newer. Else those that agree on the versions of base tables.
        """
        states = self.agreeing(keys, at, others)
        then = min((state.at for state in states.values()), default=None)
        found = {key: state for key in states for state in islice(self._states(key, then), 1)}
        if len(found) < len(states) or any(state.at != then for state in found.values()):
            return states
        return states if _disagreeing(list(found.values())) is not None else found

    def agreeing(
        self, keys: Sequence[str], at: datetime | None, others: Sequence[TableName] = ()
    ) -> dict[str, State]:
        """The newest states, none after `at`, that saw the same versions of common base tables.

        With base tables beside them (`others`), only states of which it is known what they saw.
        """
        chains = {key: self._states(key, at) for key in keys}
        states = {key: self._next(chains[key], self._tables[key], at) for key in keys}
        is_compared = len(states) + len(others) > 1
        while is_compared and (pair := _disagreeing(list(states.values()))) is not None:
            newer = pair.table
            following = next(chains[newer.name.key], None)
            if following is None:
                raise self._no_common(keys, newer, at, others)
            states[newer.name.key] = following
        return states

    def _next(self, chain: Iterator[State], table: StreamTable, at: datetime | None) -> State:
        found = next(chain, None)
        if found is not None:
            return found
        if table.frontier is None:
            raise never_filled(str(table.name))
        raise UserError(
            f"{table.name} has no contents of {_shown(at)} any more, or had none yet",
            detail=f"it can be read from {_shown(self._oldest(table))} on",
        )

    def _states(self, key: str, at: datetime | None) -> Iterator[State]:
        """Newest first, as far back as the contents can be read.

        A table that had no news until after `at` was at `at` what it was before, too.
        """
        table = self._tables[key]
        later = None
        for epoch, frontier in self._history(key):
            if at is not None and frontier.data_timestamp > at:
                later = epoch, frontier.pins
                continue
            if epoch < table.since and not self._is_readable(table, epoch):
                return
            is_quiet = later == (epoch, frontier.pins) and not table.follows_time
            then = replace(frontier, data_timestamp=at) if at is not None and is_quiet else frontier
            later = None
            yield State(table, epoch, then, self._base(table, then))

    def _oldest(self, table: StreamTable) -> datetime | None:
        states = list(self._states(table.name.key, None))
        return states[-1].at if states else None

    def _base(self, table: StreamTable, frontier: Frontier) -> Mapping[str, Pin] | None:
        """The versions of base tables that a state was computed from, over all that it reads."""
        found: dict[str, Pin] = {}
        if table.follows_time:
            found[_NOW] = Pin("time", "", int(frontier.data_timestamp.timestamp() * 1_000_000))
        for key, pin in frontier.pins.items():
            below = {key: pin} if pin.kind == "delta" else self._upstream(key, pin, frontier)
            if below is None:
                return None
            for name, version in below.items():
                if found.setdefault(name, version) != version:
                    return None
        return found

    def _upstream(self, key: str, pin: Pin, frontier: Frontier) -> Mapping[str, Pin] | None:
        table = self._tables.get(key)
        if table is None or table.incarnation != pin.identity:
            return None
        for epoch, then in self._history(key):
            # Several refreshes without effect leave one epoch: the last one before is meant.
            if epoch == pin.version and then.data_timestamp <= frontier.data_timestamp:
                return self._base(table, then)
        return None

    def _history(self, key: str) -> Iterator[tuple[int, Frontier]]:
        """Newest first; mostly the present state is enough, and the history is not loaded."""
        table = self._tables[key]
        if table.frontier is None:
            return
        yield table.epoch, table.frontier
        seen = 0
        for limit in (HISTORY_LEAST, HISTORY_MOST):
            if (key, limit) not in self._older:
                self._older[key, limit] = self._load(table, table.frontier, limit)
            older, is_all = self._older[key, limit]
            yield from older[seen:]
            seen = len(older)
            if is_all:
                return

    def _load(
        self, table: StreamTable, newest: Frontier, limit: int
    ) -> tuple[list[tuple[int, Frontier]], bool]:
        """The states before the newest, of so many attempts; and whether these were all."""
        found: list[tuple[int, Frontier]] = []
        last = newest.data_timestamp
        attempts = self._catalog.history(table.name.key, limit)
        for attempt in attempts:
            entry = _entry(attempt)
            if entry is not None and entry[1].data_timestamp < last:
                found.append(entry)
                last = entry[1].data_timestamp
            if attempt.reason == FIRST_FILL and attempt.outcome is Outcome.OK:
                # What is older belongs to another query of the same name.
                return found, True
        return found, len(attempts) < limit

    def _no_common(
        self,
        keys: Sequence[str],
        newer: StreamTable,
        at: datetime | None,
        others: Sequence[TableName],
    ) -> UserError:
        names = ", ".join(map(str, [*(self._tables[key].name for key in keys), *others]))
        until = f" up to {_shown(at)}" if at else ""
        spans = [
            f"{self._tables[key].name} at {_shown(frontier.data_timestamp)}"
            for key in keys
            for _, frontier in islice(self._history(key), 1)
        ]
        return UserError(
            f"{names} have no data timestamp in common{until}",
            detail=f"{', '.join(spans)}; {newer.name} cannot be read far enough back",
            hint="refresh them in one pass, lake.refresh(), or leave one of them out",
        )


def instant(at: datetime | str | None) -> datetime | None:
    """A point in time as the user gives it; without a zone it is UTC."""
    try:
        given = datetime.fromisoformat(at) if isinstance(at, str) else at
    except ValueError:
        raise UserError(
            f"{at!r} is not a point in time", detail="expected 2026-03-01 12:00:00, in UTC"
        ) from None
    return given.replace(tzinfo=UTC) if given is not None and given.tzinfo is None else given


def _entry(attempt: Attempt) -> tuple[int, Frontier] | None:
    if attempt.outcome is not Outcome.OK or attempt.action is RefreshAction.SKIP:
        return None
    if attempt.epoch is None or attempt.frontier is None:
        return None
    return attempt.epoch, attempt.frontier


def _disagreeing(states: Sequence[State]) -> State | None:
    """The state that has to give way: the newer of two that saw different versions of a base."""
    seen: dict[str, State] = {}
    for state in states:
        if state.base is None:
            return state
        for key, pin in state.base.items():
            other = seen.setdefault(key, state)
            assert other.base is not None
            if other.base[key] != pin:
                return _newer(key, state, other)
    return None


def _newer(key: str, left: State, right: State) -> State:
    assert left.base is not None
    assert right.base is not None
    one, two = left.base[key], right.base[key]
    if one.identity == two.identity:
        return left if one.version > two.version else right
    return left if left.at > right.at else right


def _shown(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if at else "no time"
