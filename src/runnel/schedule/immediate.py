"""IMMEDIATE tables: brought up to date by a write to what they read, and before they are read.

What was written is not guessed from a statement: the versions of the base tables before and after
it tell. So every way of writing is seen, and a statement that writes nothing costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from runnel.catalog import Source, StreamTable
from runnel.errors import ImmediateRefreshFailed, RunnelError, UserError
from runnel.model.frontier import Pin
from runnel.model.refresh import RefreshAction, RefreshMode, TableState
from runnel.refresh.answers import Question
from runnel.refresh.looking import pin_source
from runnel.refresh.views import redefined_view
from runnel.refresh.workspace import Workspace
from runnel.schedule.giving_up import suspend_failing
from runnel.schedule.order import downstream, refresh_order
from runnel.schedule.passes import refresh_pass

Tables = Mapping[str, StreamTable]


@contextmanager
def following_writes(workspace: Workspace) -> Iterator[None]:
    """Let the IMMEDIATE tables below follow what is written inside the block."""
    watched = _watched(workspace)
    before = _versions(workspace, watched)
    yield
    if watched:
        now = _versions(workspace, watched)
        moved = {place for place, version in now.items() if version != before[place]}
        # A table that is gone has nothing to follow; reading what stands on it will tell.
        _follow(workspace, {place for place in moved if now[place] is not None})


def catch_up(workspace: Workspace, keys: Iterable[str]) -> bool:
    """Bring the IMMEDIATE ones among these tables up to date; False when they all were."""
    tables = _tables(workspace)
    awake = tables.keys() - _at_rest(tables)
    behind = {key for key in keys if key in awake and _is_behind(workspace, tables, key)}
    if not behind:
        return False
    try:
        _refresh(workspace, behind)
    except RunnelError as error:
        raise _not_read(_names(tables, behind), error) from error
    return True


def _watched(workspace: Workspace) -> dict[str, Source]:
    """The base tables that IMMEDIATE tables stand on, by location."""
    keys = workspace.catalog.keys_of_mode(RefreshMode.IMMEDIATE)
    if not keys:
        return {}
    tables = _tables(workspace)
    return {
        source.location: source
        for key in _order(workspace, tables, set(keys))
        for source in tables[key].sources
        if source.kind == "delta" and source.location
    }


def _order(workspace: Workspace, tables: Tables, targets: set[str]) -> list[str]:
    return refresh_order(tables.values(), targets, workspace.settings.diamond_consistency)


def _versions(workspace: Workspace, watched: Iterable[str]) -> dict[str, int | None]:
    asked = {at: Question(at, partial(_version, workspace, at)) for at in watched}
    found = workspace.ask(asked)
    return {at: found.get(at) for at in asked}


def _version(workspace: Workspace, location: str) -> int | None:
    try:
        return workspace.log(location).latest_version()
    except RunnelError:
        return None


def _follow(workspace: Workspace, moved: set[str]) -> None:
    tables = _tables(workspace)
    readers = {
        key for key, t in tables.items() if any(source.location in moved for source in t.sources)
    }
    below = readers.union(*(downstream(tables.values(), key) for key in readers))
    targets = {key for key in below if _follows_writes(tables[key])} - _at_rest(tables)
    if not targets:
        return
    written = {s.name for t in tables.values() for s in t.sources if s.location in moved}
    try:
        _refresh(workspace, targets)
    except RunnelError as error:
        shown = ", ".join(sorted(map(str, written)))
        given_up = suspend_failing(workspace, tables.values())
        raise _not_followed(shown, _names(tables, targets), error, given_up) from error


def _refresh(workspace: Workspace, targets: set[str]) -> None:
    """Bring tables to where their sources are; an error where one waits for a suspended table.

    Its group, its cycle, or one above it stands still as a whole, with the members that are active.
    """
    results = refresh_pass(workspace, targets)
    left_out = {k for k, r in results.items() if k in targets and r.action is RefreshAction.SKIP}
    tables = _tables(workspace) if left_out else {}
    for key in sorted(left_out & tables.keys() - _at_rest(tables)):
        needed = [tables[k] for k in _order(workspace, tables, {key})]
        suspended = next((t for t in needed if t.state is TableState.SUSPENDED), None)
        # One that was overtaken by another process is up to date.
        if suspended is not None:
            raise _held_up(tables[key], suspended)


def _follows_writes(table: StreamTable) -> bool:
    return table.mode is RefreshMode.IMMEDIATE and table.state is TableState.ACTIVE


def _at_rest(tables: Tables) -> set[str]:
    """What is suspended follows nothing, nor do those below it: they serve what they hold."""
    suspended = {key for key, table in tables.items() if table.state is TableState.SUSPENDED}
    return suspended.union(*(downstream(tables.values(), key) for key in suspended))


def _is_behind(workspace: Workspace, tables: Tables, key: str) -> bool:
    """Whether an IMMEDIATE table, or something above it, is not where its sources are."""
    if tables[key].mode is not RefreshMode.IMMEDIATE:
        return False
    above = [tables[k] for k in _order(workspace, tables, {key})]
    try:
        return any(_has_moved(workspace, tables, t) for t in above)
    except RunnelError:
        return True


def _has_moved(workspace: Workspace, tables: Tables, table: StreamTable) -> bool:
    if table.frontier is None or table.reinitialize:
        return True
    pins = table.frontier.pins
    if any(_pin(workspace, tables, s) != pins.get(s.key) for s in table.sources):
        return True
    spark = workspace.present_spark() if table.views else None
    return spark is not None and redefined_view(workspace, spark, table, {}) is not None


def _pin(workspace: Workspace, tables: Tables, source: Source) -> Pin:
    if source.kind == "stream" and (table := tables.get(source.key)) is not None:
        return Pin("trace", table.incarnation, table.epoch)
    return pin_source(workspace, source)


def _tables(workspace: Workspace) -> Tables:
    return {table.name.key: table for table in workspace.catalog.tables()}


def _names(tables: Tables, keys: Iterable[str]) -> str:
    return ", ".join(str(tables[key].name) for key in sorted(keys))


def _held_up(table: StreamTable, suspended: StreamTable) -> UserError:
    return UserError(
        f"{suspended.owner} is suspended, and {table.name} advances only together with it",
        hint=f"RESUME {suspended.owner}, or SUSPEND {table.name} too: it serves what it holds then",
    )


def _not_followed(
    written: str, names: str, error: RunnelError, given_up: Sequence[str]
) -> ImmediateRefreshFailed:
    hint = "mend the cause, the table follows when it is next read or refreshed"
    if given_up:
        hint = (
            f"{', '.join(given_up)} failed too often in a row and is suspended, so that writes go "
            "on without it; mend the cause, then RESUME it"
        )
    return ImmediateRefreshFailed(
        f"{written} was written, but not every IMMEDIATE table below it could follow: {names}",
        detail=f"the write is committed; the refresh failed: {error.primary}",
        hint=f"do not write again: {hint}",
        cause=error,
    )


def _not_read(names: str, error: RunnelError) -> ImmediateRefreshFailed:
    failed = ImmediateRefreshFailed(
        f"{names} could not be brought up to date before being read",
        detail=f"the refresh failed: {error.primary}",
        hint=error.hint or "SUSPEND it to read what it holds",
        cause=error,
    )
    failed.retryable = error.retryable
    return failed
