"""The loop around the state machine: threads that refresh, a queue of what ended, an end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, Queue
from time import monotonic
from typing import Protocol

from runnel.errors import RunnelError
from runnel.model.results import RefreshResult
from runnel.schedule.machine import Machine
from runnel.schedule.views import Ending, Finished, Start

_log = logging.getLogger("runnel")
_LEAST = 0.02
# A signal only sets an event: who sleeps longer would see it too late.
_LONGEST_SLEEP = 0.5
_NO_WORK = "the scheduler could not look for work"
_NO_CARE = "the scheduler could not look after the lake"
_NO_NOTE = "the end of a refresh could not be noted"
_NO_SIGHT = "what goes on could not be shown"
FINISH_SECONDS = 3.0
ABANDON_SECONDS = 2.5


class Onlooker(Protocol):
    """Someone who shows what goes on; called from the loop's own thread."""

    def looked(self, now: float, machine: Machine) -> None: ...
    def started(self, start: Start) -> None: ...
    def ended(self, event: Finished) -> None: ...


class Blind:
    """An onlooker who does nothing."""

    def looked(self, now: float, machine: Machine) -> None:
        pass

    def started(self, start: Start) -> None:
        pass

    def ended(self, event: Finished) -> None:
        pass


@dataclass
class Loop:
    """Drives a machine: everything but the refreshes happens in the thread that calls it."""

    machine: Machine
    execute: Callable[[Start], Finished]
    clock: Callable[[], float]
    onlooker: Onlooker = field(default_factory=Blind)
    stop: threading.Event = field(default_factory=threading.Event)
    abandon: Callable[[], None] = lambda: None
    keep_house: Callable[[], object] = lambda: None
    tidy: Callable[[Finished], None] = lambda event: None
    _ended: Queue[Finished] = field(default_factory=Queue)
    _orders: Queue[Start | None] = field(default_factory=Queue)
    _threads: list[threading.Thread] = field(default_factory=list)
    _running: dict[tuple[int, str], Start] = field(default_factory=dict)
    _tidying: set[str] = field(default_factory=set)
    _turns: dict[str, threading.Lock] = field(default_factory=dict)
    _results: list[RefreshResult] | None = None
    _troubles: dict[str, str] = field(default_factory=dict)
    lost: RunnelError | None = None

    def once(self) -> list[RefreshResult]:
        """Refresh what is due now, each table at most once, and come back."""
        done: list[RefreshResult] = []
        self._results = done
        try:
            self._begin(self.machine.decide(self.clock()))
            while self._is_at_work and self._goes_on:
                if self._take(0.2):
                    self._begin(self.machine.continue_passes())
        finally:
            self._end()
        return done

    def forever(self) -> None:
        """Go on until `stop` is set, Ctrl-C is pressed, or what every refresh needs is `lost`."""
        try:
            while self._goes_on:
                self._tick()
        except KeyboardInterrupt:
            self.stop.set()
        finally:
            self._end()

    @property
    def _goes_on(self) -> bool:
        return not self.stop.is_set() and self.lost is None

    @property
    def is_hanging(self) -> bool:
        """Whether a refresh goes on that could not be ended."""
        return self._is_at_work

    @property
    def _is_at_work(self) -> bool:
        return bool(self._running or self._tidying)

    def _tick(self) -> None:
        pause = self.machine.limits.interval
        self._keep_house()
        try:
            starts = self.machine.decide(self.clock())
            self._show(partial(self.onlooker.looked, self.clock(), self.machine))
            self._begin(starts)
            pause = min(pause, self.machine.next_wake(self.clock()) - self.clock())
            self._warn(_NO_WORK, None)
        except Exception as error:
            # The catalog may come back, a table may just have been dropped: the next look tells.
            self._start_afresh(_NO_WORK, error)
        if self._wait(max(_LEAST, pause)):
            while self._take(0.0):
                pass

    def _wait(self, seconds: float) -> bool:
        """Wait for a refresh to end, or to be stopped; whether one has ended."""
        deadline = monotonic() + seconds
        while self._goes_on and (left := deadline - monotonic()) > 0:
            if self._take(min(left, _LONGEST_SLEEP)):
                return True
        return False

    def _start_afresh(self, what: str, error: Exception) -> None:
        """What is no error of the lake may come from what the scheduler believes of it."""
        if not isinstance(error, RunnelError):
            self.machine.forget()
        self._warn(what, error)

    def _show(self, show: Callable[[], None]) -> None:
        """Who looks on, and stumbles, stops nobody."""
        try:
            show()
        except Exception as error:
            self._warn(_NO_SIGHT, error)

    def _keep_house(self) -> None:
        """What goes wrong beside the refreshes is no reason to refresh nothing any more."""
        try:
            self.keep_house()
            self._warn(_NO_CARE, None)
        except Exception as error:
            self._warn(_NO_CARE, error)

    def _warn(self, what: str, error: Exception | None) -> None:
        """Once, however often it is tried again."""
        text = "" if error is None else f"{what}: {error}"
        if text and text != self._troubles.get(what):
            _log.warning("%s", text, exc_info=None if isinstance(error, RunnelError) else error)
        self._troubles[what] = text

    def _begin(self, starts: list[Start]) -> None:
        # Who was stopped while sources were looked at does not know all of them.
        for start in starts if self._goes_on else ():
            self._running[start.number, str(start.unit)] = start
            self._show(partial(self.onlooker.started, start))
            self._orders.put(start)
            if len(self._threads) < len(self._running) + len(self._tidying):
                self._hire()

    def _hire(self) -> None:
        name = f"runnel refresh {len(self._threads) + 1}"
        # Daemons: a refresh that cannot be ended must not keep the process from ending.
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (start := self._orders.get()) is not None:
            unit = str(start.unit)
            # What is tidied is not refreshed again meanwhile: it would find its own lease taken.
            with self._turns.setdefault(unit, threading.Lock()):
                try:
                    event = self.execute(start)
                except BaseException as error:
                    event = Finished(start, Ending.FAILED, error=f"{type(error).__name__}: {error}")
                self._report_and_tidy(unit, event)

    def _report_and_tidy(self, unit: str, event: Finished) -> None:
        """In this order: who reads the table does not wait for its compaction."""
        self._tidying.add(unit)
        self._ended.put(event)
        try:
            if self._goes_on:
                self.tidy(event)
        except Exception as error:
            _log.warning("%s was refreshed but not tidied: %s", unit, error)
        finally:
            self._tidying.discard(unit)

    def _take(self, pause: float) -> bool:
        """Take note of one refresh that ended, waiting for it a while."""
        try:
            event = self._ended.get(timeout=pause) if pause > 0 else self._ended.get_nowait()
        except Empty:
            return False
        self._running.pop((event.start.number, str(event.start.unit)), None)
        if self._results is not None:
            self._results.extend(event.results)
        self.lost = self.lost or event.fault
        try:
            self.machine.finished(self.clock(), event)
            self._warn(_NO_NOTE, None)
        except Exception as error:
            self._start_afresh(_NO_NOTE, error)
        self._show(partial(self.onlooker.ended, event))
        return True

    def _end(self) -> None:
        """Let what runs finish, then abandon it; then go, whatever still hangs."""
        self.machine.stop()
        self._drain(0.0 if self._goes_on else FINISH_SECONDS)
        if self._is_at_work:
            self.abandon()
            self._drain(ABANDON_SECONDS)
        for _ in self._threads:
            self._orders.put(None)

    def _drain(self, seconds: float) -> None:
        deadline = monotonic() + seconds
        while self._is_at_work and monotonic() < deadline:
            self._take(0.1)
