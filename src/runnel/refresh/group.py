"""An atomic group refreshed: every member appends, then one transaction shows all of it or nothing.

Until that transaction the new epochs are in the traces, but nobody reads them except the members
below. A member that fails, or a process that dies, leaves the group where it was: the next holder
of a member's lease takes the epoch back that never became visible.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter

from runnel.catalog import Advance, Lease, StreamTable, advance_together, set_grouped
from runnel.errors import RunnelError
from runnel.model import refresh as states
from runnel.model.failpoints import reach
from runnel.model.frontier import Frontier
from runnel.model.refresh import RefreshAction, TableState
from runnel.model.results import RefreshResult
from runnel.refresh.attempt import (
    carry_out,
    check_all,
    is_unmoved,
    lease_of,
    reads_older,
    recovered,
    skipped,
    unmoved,
)
from runnel.refresh.pins import Pins
from runnel.refresh.recording import (
    advance_of,
    begin,
    cause_of,
    fail,
    result_of,
    tell,
    work_of,
)
from runnel.refresh.recovery import current
from runnel.refresh.starting_over import NewLives
from runnel.refresh.workspace import Workspace

_log = logging.getLogger("runnel")


def refresh_group(
    workspace: Workspace, table_ids: Sequence[str], pins: Pins, *, wait: float | None = None
) -> dict[str, RefreshResult]:
    """Bring tables to the pins of a pass, all or none; results by table key.

    `table_ids` come parents before children. The error of a member that fails is raised.
    """
    if (quick := _no_data(workspace, table_ids, pins)) is not None:
        return quick
    patience = workspace.settings.busy_wait_seconds if wait is None else wait
    with ExitStack() as stack:
        # In one order everywhere, so that two groups never wait for each other.
        held = {
            table_id: stack.enter_context(workspace.leases.hold(lease_of(table_id), wait=patience))
            for table_id in sorted(table_ids)
        }
        tables = [recovered(workspace, table_id, held[table_id]) for table_id in table_ids]
        if (reason := _obstacle(tables, pins)) is not None:
            return {table.name.key: skipped(table, reason) for table in tables}
        return _GroupRun(workspace, pins, list(held.values()), _hold_back(workspace, tables)).run()


@dataclass
class _GroupRun:
    """One refresh of a group under the leases of all its members."""

    workspace: Workspace
    pins: Pins
    held: Sequence[Lease]
    tables: Sequence[StreamTable]
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    advances: list[Advance] = field(default_factory=list)
    attempts: dict[str, int] = field(default_factory=dict)
    lives: NewLives = field(init=False)

    def __post_init__(self) -> None:
        self.lives = NewLives(self.workspace)

    def run(self) -> dict[str, RefreshResult]:
        results: dict[str, RefreshResult] = {}
        try:
            for table in self.tables:
                results[table.name.key] = self._append(table)
                reach("group.appended")
            check_all(self.held)
            reach("group.before_switch")
            advance_together(self.workspace.catalog, self.advances, self.held)
        except BaseException as error:
            self._give_up(error)
            raise
        finally:
            self.lives.close()
        reach("group.after_switch")
        if any(advance.renewed is not None for advance in self.advances):
            self.workspace.renew_names()
        for table in self.tables:
            tell(self.workspace, table, results[table.name.key])
        return results

    def _append(self, table: StreamTable) -> RefreshResult:
        """One member's refresh, not visible yet; those below it read it all the same."""
        start = perf_counter()
        begun = begin(self.workspace, table)
        self.attempts[table.id] = begun.id
        try:
            frontier = self.pins.frontier(table.sources)
            plan, outcome = carry_out(
                self.lives.workspace, table, frontier, self.held, begun, self.id, self.pins.near,
                self.lives,
            )  # fmt: skip
        except Exception as error:
            del self.attempts[table.id]
            cause = cause_of(error, self.held)
            raise fail(self.workspace, table, begun, cause, perf_counter() - start) from error
        result = result_of(plan, outcome, perf_counter() - start)
        work = work_of(table, result)
        step = advance_of(self.workspace, plan.table, frontier, begun.id, result, work)
        if (renewed := self.lives.of(table)) is not None:
            step = replace(step, table=table, renewed=renewed)
        self.advances.append(step)
        self.pins.set_epoch(table.name.key, plan.table.incarnation, outcome.epoch)
        return result

    def _give_up(self, error: BaseException) -> None:
        """Take back what was appended; what cannot be taken back now is, by the next refresh."""
        self.pins.forget(table.name.key for table in self.tables)
        told = str(getattr(error, "primary", error)) if isinstance(error, Exception) else None
        for table in self.tables:
            for undo in (self._withdraw, partial(self._close, told=told)):
                try:
                    undo(table)
                except Exception as trouble:
                    _log.warning("%s: not all of its group is undone yet: %s", table.name, trouble)

    def _withdraw(self, table: StreamTable) -> None:
        trace = self.workspace.trace(table)
        last = trace.last_commit()
        # Asked again: the transaction may be done although its answer was lost.
        visible = current(self.workspace, table.id).epoch
        if last is not None and last.group == self.id and last.epoch > visible:
            trace.withdraw(lambda: self.workspace.nameless_spark, last)

    def _close(self, table: StreamTable, told: str | None) -> None:
        """The attempt of a member that did nothing wrong."""
        attempt = self.attempts.get(table.id)
        finish = self.workspace.catalog.finish_attempt
        if attempt is not None and told is not None:
            reason = f"its group was given up: {told}"
            finish(attempt, states.Outcome.OK, action=RefreshAction.SKIP, reason=reason)
        elif attempt is not None:
            finish(attempt, states.Outcome.INTERRUPTED)


def _no_data(
    workspace: Workspace, table_ids: Sequence[str], pins: Pins
) -> dict[str, RefreshResult] | None:
    """The usual case, without a lease: every source of every member stands where it stood."""
    start = perf_counter()
    moves = []
    for table in (current(workspace, table_id) for table_id in table_ids):
        frontier = _readable(pins, table)
        if not (frontier and table.grouped and is_unmoved(workspace, table, frontier)):
            pins.forget(current(workspace, table_id).name.key for table_id in table_ids)
            return None
        moves.append((table, frontier))
    seconds = perf_counter() - start
    results = {t.name.key: unmoved(t, f, seconds / len(moves)) for t, f in moves}
    owner, reason = workspace.leases.owner, next(iter(results.values())).reason
    is_recorded = workspace.catalog.record_all_no_data(moves, owner, seconds, reason)
    return results if is_recorded else None


def _readable(pins: Pins, table: StreamTable) -> Frontier | None:
    """Where the sources stand; None when one cannot be read, which its attempt will tell."""
    try:
        return pins.frontier(table.sources)
    except RunnelError:
        return None


def _obstacle(tables: Sequence[StreamTable], pins: Pins) -> str | None:
    """Why the group as a whole cannot be refreshed now."""
    inside = {table.name.key for table in tables}
    for table in tables:
        if table.state is TableState.SUSPENDED:
            return f"{table.name}, which it advances together with, is suspended"
        if table.frontier and table.frontier.data_timestamp >= pins.data_timestamp:
            return f"{table.name} is already at a newer data timestamp"
        outside = [source for source in table.sources if source.key not in inside]
        if reads_older(table, Frontier(pins.check(outside), pins.data_timestamp)):
            return f"{table.name} has already read newer versions of its sources"
    return None


def _hold_back(workspace: Workspace, tables: Sequence[StreamTable]) -> list[StreamTable]:
    """Before anything is appended that must not be seen, readers are told to look at versions."""
    if not all(table.grouped for table in tables):
        set_grouped(workspace.catalog, [table.id for table in tables], True)
        workspace.renew_names()
    return [replace(table, grouped=True) for table in tables]
