"""Passes that someone asks for: tables refreshed in order, all to the same pins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from runnel.catalog import Source, StreamTable
from runnel.errors import Busy, NotFound, RunnelError, UserError
from runnel.model.refresh import RefreshAction, TableState
from runnel.model.results import RefreshResult
from runnel.refresh.pins import Pins
from runnel.refresh.workspace import Workspace
from runnel.schedule.alerting import note_caught_up
from runnel.schedule.newest import newest_state, oldest_that_fits
from runnel.schedule.one_pass import OnePass

Notice = Callable[[RefreshResult], None]
_TRIES = 5
_IDLE = (RefreshAction.SKIP, RefreshAction.NO_DATA)


def refresh_pass(
    workspace: Workspace, targets: set[str] | None, notice: Notice = lambda result: None
) -> dict[str, RefreshResult]:
    """Refresh tables (None: all) and everything above them; results by key, in order.

    A table that fails holds up those below it, not the others; its error is raised at the end.
    Those below one that is suspended stay where they are with it. When another process overtakes
    the pass at a table, those below it are refreshed once more, to an instant for all of them.
    """
    results: dict[str, RefreshResult] = {}
    failed: dict[str, RunnelError] = {}
    in_parts: defaultdict[str, float] = defaultdict(float)
    left = targets
    for _ in range(_TRIES):
        one = OnePass.begin(workspace, left)
        for key, result in one.run():
            table = one.tables[key]
            if table.part_of is not None:
                in_parts[table.part_of.key] += result.seconds
            elif not table.is_hidden and _tells_more(result, results.get(key)):
                results[key] = _with_parts(result, in_parts.pop(key, 0.0))
                notice(results[key])
        failed |= one.failed
        left = one.again
        if not left:
            break
    note_caught_up(workspace.catalog, workspace.alerts, datetime.now(UTC))
    if failed:
        raise next(iter(failed.values()))
    if left:
        raise _overtaken(one, left)
    if targets is not None and not results.keys() >= targets:
        raise NotFound("a stream table was dropped while it was being refreshed")
    return results


def bring_up(
    workspace: Workspace,
    sources: Sequence[Source],
    made: Sequence[StreamTable],
    gone: Sequence[StreamTable] = (),
) -> Pins:
    """Refresh the stream tables among the sources, and all above them, to pins for new tables.

    Not when they have a common state that is fresh enough for the schedules of these, or when one
    is suspended and must be taken as it is. `gone` are tables whose place the new ones take.
    """
    targets = {s.key for s in sources if s.kind == "stream"}
    for _ in range(_TRIES):
        one = OnePass.begin(workspace, targets, beside=gone, sources=sources)
        members = [one.tables[key] for unit in one.units for key in unit]
        at_rest = next((t for t in members if t.state is TableState.SUSPENDED), None)
        oldest = oldest_that_fits(made, gone, one.pins.data_timestamp, is_any=at_rest is not None)
        if targets:
            found = newest_state(workspace.catalog, sources, oldest)
            if found is not None:
                pins = Pins(workspace, found.data_timestamp, dict(found.pins))
                pins.check(sources)
                return pins
        if at_rest is not None:
            raise _nothing_fits(at_rest)
        for _ in one.run():
            pass
        for error in one.failed.values():
            raise error
        if not (one.overtaken or one.frozen):
            return one.pins
    raise _overtaken(one, one.overtaken | one.frozen.keys())


def _with_parts(result: RefreshResult, seconds: float) -> RefreshResult:
    """What it took to whoever waited for it: the history tells it of each part by itself."""
    if not seconds:
        return result
    phases = {"parts": round(seconds, 4), **result.phases}
    return replace(result, seconds=result.seconds + seconds, phases=phases)


def _tells_more(result: RefreshResult, before: RefreshResult | None) -> bool:
    """Of several refreshes in one call, those that did something are worth telling."""
    if before is None or result.action not in _IDLE:
        return True
    return before.action is RefreshAction.SKIP and result.action is RefreshAction.NO_DATA


def _overtaken(one: OnePass, keys: set[str]) -> Busy:
    names = ", ".join(str(one.tables[key].label) for key in sorted(keys) if key in one.tables)
    return Busy(
        f"other refreshes overtook this one {_TRIES} times: {names}",
        detail="what a table reads must be of one instant, and was moved on again and again",
        hint="try again, or leave it to runnel run: give the table a schedule",
    )


def _nothing_fits(table: StreamTable) -> UserError:
    return UserError(
        f"{table.owner}, which it would be computed from, is suspended",
        detail="what it holds does not go together with the other sources as they are",
        hint=f"ALTER STREAM TABLE {table.owner} RESUME, or define the table without filling it",
    )
