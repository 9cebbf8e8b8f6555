"""Spark begins beside the scheduler: a pass looks at its sources when they can be read, not before.

A start takes ten seconds. What looked at its sources before it would be that much older, and every
table would come to its next due instant in the middle of its refresh.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field

from runnel.refresh.workspace import Workspace


@dataclass(slots=True)
class Readiness:
    """Asked when something is to be refreshed: the first who asks lets Spark begin."""

    workspace: Workspace
    _starting: threading.Thread | None = field(default=None)

    def __call__(self) -> bool:
        if self._starting is None:
            if self.workspace.present_spark() is not None:
                return True
            self._starting = threading.Thread(target=self._start, name="runnel spark", daemon=True)
            self._starting.start()
        return not self._starting.is_alive()

    def _start(self) -> None:
        # The refresh that then tries it itself tells why it cannot.
        with suppress(Exception):
            _ = self.workspace.nameless_spark
