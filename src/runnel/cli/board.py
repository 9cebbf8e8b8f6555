"""What the scheduler is doing, live in a terminal: what runs, how the tables stand, what ended."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from runnel.cli.lines import clock, first_line
from runnel.model.refresh import RefreshAction
from runnel.schedule.machine import Machine
from runnel.schedule.sight import Sight, sights
from runnel.schedule.views import Ending, Finished, Start

if TYPE_CHECKING:
    from rich.console import Group

_LAST = 6


@dataclass(frozen=True, slots=True)
class Running:
    """A refresh under way; `work` is what it took before."""

    name: str
    since: float
    work: float | None


@dataclass(slots=True)
class Board:
    """Told by the loop's thread, drawn by a thread of rich's own."""

    running: dict[tuple[int, str], Running] = field(default_factory=dict)
    last: deque[tuple[str, ...]] = field(default_factory=lambda: deque(maxlen=_LAST))
    tables: list[Sight] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    looked_at: float = field(default_factory=monotonic)
    done: int = 0
    failed: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    _work: dict[str, float | None] = field(default_factory=dict)
    _titles: dict[str, str] = field(default_factory=dict)

    @staticmethod
    @contextmanager
    def live() -> Iterator[Board]:
        from rich.console import Console
        from rich.live import Live

        board = Board()
        # Spark's start points the descriptors elsewhere for a while, so the view has its own.
        with os.fdopen(os.dup(sys.stdout.fileno()), "w") as stream:
            console = Console(file=stream, force_terminal=True)
            with Live(
                get_renderable=board.drawn, console=console, refresh_per_second=4,
                redirect_stdout=False, redirect_stderr=False, vertical_overflow="crop",
            ):  # fmt: skip
                yield board

    def looked(self, now: float, machine: Machine) -> None:
        """Take note of how all tables stand."""
        found = sights(machine, now)
        with self.lock:
            self.tables, self.looked_at = found, monotonic()
            self._work = {table.key: table.seconds for table in machine.tables.values()}
            self._titles = {
                name: t.title for t in machine.tables.values() for name in (t.name, t.key)
            }

    def started(self, start: Start) -> None:
        with self.lock:
            members = start.unit.members
            measured = [self._work.get(key) for key in members]
            work = sum(seconds or 0.0 for seconds in measured) if any(measured) else None
            name = ", ".join(self._title(key) for key in members)
            self.running[start.number, str(start.unit)] = Running(name, monotonic(), work)

    def ended(self, event: Finished) -> None:
        with self.lock:
            self.running.pop((event.start.number, str(event.start.unit)), None)
            if event.ending is Ending.FAILED:
                self._note_failure(event)
            for result in event.results:
                self.done += 1
                title = self._titles.get(result.name, result.name)
                self.errors.pop(title, None)
                if result.action is not RefreshAction.NO_DATA:
                    changed = f"+{result.rows_inserted:,} -{result.rows_deleted:,}"
                    self.last.append((clock(), title, result.action.value, changed, result.reason))

    def drawn(self) -> Group:
        from runnel.cli.drawing import draw

        with self.lock:
            return draw(self)

    def _note_failure(self, event: Finished) -> None:
        self.failed += 1
        title = self._title(event.failed or event.start.unit.members[0])
        self.errors[title] = first_line(event.error)
        self.last.append((clock(), title, "FAILED", "", first_line(event.error)))

    def _title(self, key: str) -> str:
        return self._titles.get(key, key.removeprefix("default."))
