"""What the scheduler is doing where there is no terminal: a line for each end."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime

from runnel.cli.text import note, say
from runnel.model.names import is_reserved
from runnel.model.refresh import RefreshAction
from runnel.schedule.machine import Machine
from runnel.schedule.views import Ending, Finished, Start


@dataclass(slots=True)
class Lines:
    """One line a refresh that did something, or failed."""

    as_json: bool = False
    is_silent: bool = False
    failed: int = 0

    def looked(self, now: float, machine: Machine) -> None:
        pass

    def started(self, start: Start) -> None:
        pass

    def ended(self, event: Finished) -> None:
        if event.ending is Ending.FAILED:
            self.failed += 1
            note(f"{clock()} {event.failed or event.start.unit}: {first_line(event.error)}")
        for result in event.results if not self.is_silent else ():
            if is_reserved(result.name):
                continue
            if self.as_json:
                say(json.dumps(result.to_dict(), ensure_ascii=False))
            elif result.action is not RefreshAction.NO_DATA:
                say(f"{clock()} {result}")
        sys.stdout.flush()


def first_line(error: str | None) -> str:
    return (error or "failed").partition("\n")[0]


def clock() -> str:
    return f"{datetime.now(UTC):%H:%M:%S}"
