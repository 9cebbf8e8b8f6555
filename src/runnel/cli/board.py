"""What the scheduler is doing: a live table in a terminal, a line for each end elsewhere."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING

from runnel.cli.text import note, say
from runnel.model.refresh import RefreshAction
from runnel.model.tabular import duration
from runnel.schedule.views import Ending, Finished, Start

if TYPE_CHECKING:
    from rich.table import Table

_LAST = 12


@dataclass(slots=True)
class Lines:
    """One line a refresh that did something, or failed."""

    as_json: bool = False
    is_silent: bool = False
    failed: int = 0

    def started(self, start: Start) -> None:
        pass

    def ended(self, event: Finished) -> None:
        if event.ending is Ending.FAILED:
            self.failed += 1
            note(f"{_clock()} {event.failed or event.start.unit}: {_first(event.error)}")
        for result in event.results if not self.is_silent else ():
            if self.as_json:
                say(json.dumps(result.to_dict(), ensure_ascii=False))
            elif result.action is not RefreshAction.NO_DATA:
                say(f"{_clock()} {result}")
        sys.stdout.flush()


@dataclass(slots=True)
class Board:
    """What runs, for how long, and what ended last; drawn by a thread of rich's own."""

    running: dict[str, float] = field(default_factory=dict)
    last: deque[tuple[str, ...]] = field(default_factory=lambda: deque(maxlen=_LAST))
    done: int = 0
    failed: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

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
                redirect_stdout=False, redirect_stderr=False,
            ):  # fmt: skip
                yield board

    def started(self, start: Start) -> None:
        with self.lock:
            self.running[str(start.unit)] = monotonic()

    def ended(self, event: Finished) -> None:
        with self.lock:
            self.running.pop(str(event.start.unit), None)
            if event.ending is Ending.FAILED:
                self.failed += 1
                table = event.failed or str(event.start.unit)
                self.last.append((_clock(), table, "FAILED", "", _first(event.error)))
            for result in event.results:
                self.done += 1
                if result.action is not RefreshAction.NO_DATA:
                    changed = f"+{result.rows_inserted:,} -{result.rows_deleted:,}"
                    self.last.append(
                        (_clock(), result.name, result.action.value, changed, result.reason)
                    )

    def drawn(self) -> Table:
        from rich.table import Table

        with self.lock:
            title = f"{len(self.running)} running, {self.done:,} done, {self.failed:,} failed"
            drawn = Table(title=title, expand=True, title_justify="left")
            for name in ("time (UTC)", "table", "action", "rows", "reason"):
                drawn.add_column(name, no_wrap=name != "reason")
            for row in self.last:
                drawn.add_row(*row)
            for table, since in self.running.items():
                drawn.add_row("now", table, "RUNNING", "", f"for {duration(monotonic() - since)}")
        return drawn


def _first(error: str | None) -> str:
    return (error or "failed").partition("\n")[0]


def _clock() -> str:
    return f"{datetime.now(UTC):%H:%M:%S}"
