"""The scheduler over a real lake: its parts put together."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from runnel.catalog import StreamTable
from runnel.errors import RunnelError, UserError
from runnel.model.alerts import AlertKind
from runnel.model.names import is_reserved
from runnel.model.results import RefreshResult
from runnel.model.settings import Settings
from runnel.model.tabular import Rows
from runnel.refresh.lifecycle import remove_orphans
from runnel.refresh.scratch import remove_forgotten
from runnel.refresh.unfinished import remove_unfinished
from runnel.refresh.workspace import Workspace
from runnel.schedule.alerting import note_caught_up
from runnel.schedule.clock import SteadyClock
from runnel.schedule.diamonds import planned_units
from runnel.schedule.executor import LakeExecutor
from runnel.schedule.lake_book import LakeBook
from runnel.schedule.loop import Blind, Loop, Onlooker
from runnel.schedule.machine import Limits, Machine
from runnel.schedule.readiness import Readiness
from runnel.schedule.retention import watch_retention
from runnel.schedule.units import Unit
from runnel.schedule.views import TableView, instant

_log = logging.getLogger("runnel")
_RETENTION_SECONDS = 600.0
# Each takes milliseconds, in the thread that starts refreshes.
_TABLES_AT_ONCE = 50


def run_lake(
    workspace: Workspace,
    *,
    once: bool,
    workers: int | None = None,
    stop: threading.Event | None = None,
    onlooker: Onlooker | None = None,
    notice_names: Callable[[], object] = lambda: None,
) -> Rows[RefreshResult]:
    """Refresh what is due, once or until stopped; with `once`, what was done.

    When the Spark of this process ends meanwhile, that is the error that is raised.
    """
    limits = limits_of(workspace.settings, workers)
    stop = stop or threading.Event()
    # Who stops it means this run, not what others do in the same lake, now or later.
    workspace = workspace.for_run(stop.is_set)
    clock = SteadyClock()
    house = House(workspace, clock, notice_names)
    book = LakeBook(workspace)
    machine = Machine(
        book,
        workspace.alerts,
        limits,
        units=partial(lake_units, book),
        lasting=_lasting(workspace),
        is_ready=(lambda: True) if once else Readiness(workspace),
    )
    executor = LakeExecutor(workspace)
    loop = Loop(
        machine, executor, clock, onlooker or Blind(), stop,
        workspace.abandon, house.keep, executor.tidy,
    )  # fmt: skip
    done: list[RefreshResult] = []
    if once:
        house.keep()
        house.finish(stop)
        done = [result for result in loop.once() if not is_reserved(result.name)]
    else:
        loop.forever()
    if loop.lost is not None:
        _close_own(workspace)
        if not loop.stop.is_set():
            raise loop.lost
    return Rows(done, RefreshResult.COLUMNS)


def _close_own(workspace: Workspace) -> None:
    """Close what this process left open: it may live on and seem to be at it still."""
    own = str(workspace.leases.owner)
    with suppress(RunnelError):
        workspace.catalog.close_interrupted(lambda owner: str(owner) != own)


def _lasting(workspace: Workspace) -> dict[AlertKind, set[str]]:
    """What an earlier process told and nobody has ended since."""
    found: dict[AlertKind, set[str]] = {}
    for alert in workspace.catalog.alerts(limit=None, lasting=True):
        if alert.table_key is not None:
            found.setdefault(alert.kind, set()).add(alert.table_key)
    return found


def lake_units(book: LakeBook, tables: Mapping[str, TableView]) -> tuple[Unit, ...]:
    """Atomic groups and cycles as one unit each, every other table by itself."""
    return planned_units(book.definitions, book.workspace.settings)


def limits_of(settings: Settings, workers: int | None) -> Limits:
    if not settings.enabled:
        origin = settings.origins.get("enabled", "default")
        raise UserError(
            "the scheduler is switched off",
            detail=f"enabled = false ({origin})",
            hint="set enabled = true, or refresh tables by hand",
        )
    concurrent = settings.max_concurrent_refreshes if workers is None else workers
    if concurrent < 1:
        raise UserError(
            f"{concurrent} workers cannot refresh anything", detail="expected 1 or more"
        )
    return Limits(
        concurrent,
        settings.max_consecutive_errors,
        settings.scheduler_interval,
        settings.max_outage,
    )


@dataclass(slots=True)
class House:
    """What has to be looked after now and then: what dead processes left, names in the session.

    Asked before each tick of the loop; refreshes wait for it.
    """

    workspace: Workspace
    clock: Callable[[], float]
    notice_names: Callable[[], object]
    _kept_at: float | None = field(default=None)
    _watched_at: float | None = field(default=None)
    _unseen: list[StreamTable] = field(default_factory=list)

    def keep(self) -> None:
        now = self.clock()
        every = min(10.0, self.workspace.leases.ttl / 3)
        if self._kept_at is not None and now - self._kept_at < every:
            return
        self._kept_at = now
        catalog = self.workspace.catalog
        catalog.close_interrupted(self.workspace.leases.is_alive)
        note_caught_up(catalog, self.workspace.alerts, instant(now))
        if self._watched_at is None or now - self._watched_at >= _RETENTION_SECONDS:
            self._watched_at = now
            watch_retention(self.workspace, instant(now))
            self._remove_orphans()
            self._unseen = list(catalog.tables())
        self._remove_unfinished()
        self.notice_names()

    def finish(self, stop: threading.Event) -> None:
        """Undo at once, in all tables, what writes left that were killed: nobody comes back."""
        while self._unseen and not stop.is_set():
            self._remove_unfinished()

    def _remove_orphans(self) -> None:
        """What processes left that died while they made or dropped tables, or shared rows."""
        try:
            for found in [*remove_orphans(self.workspace), *remove_forgotten(self.workspace)]:
                _log.info("removed the storage %s, which nobody owns", found)
        except (RunnelError, OSError) as error:
            _log.warning("storage that nobody owns could not be removed: %s", error)

    def _remove_unfinished(self) -> None:
        """What was left inside of tables by writes that were killed; busy tables are left alone."""
        looked_at, self._unseen = self._unseen[:_TABLES_AT_ONCE], self._unseen[_TABLES_AT_ONCE:]
        try:
            for table in remove_unfinished(self.workspace, looked_at):
                _log.info("removed the files of an unfinished write to %s", table.label)
        except (RunnelError, OSError) as error:
            _log.warning("files of unfinished writes could not be removed: %s", error)
