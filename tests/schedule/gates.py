"""A function of the user's own that stops a refresh in the middle of Spark until it may go on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from runnel.api import Lake

_PATIENCE = 60.0


class Gate:
    """`name(x)` gives x back when the gate is open; who came there is noted with its pool."""

    def __init__(self, lake: Lake, folder: Path, name: str) -> None:
        self._seen, self._open = folder / f"{name}.seen", folder / f"{name}.open"
        self.open()
        lake.register_function(name, _passing(self._seen, self._open), "bigint", deterministic=True)

    def open(self) -> None:
        self._open.touch()

    def shut(self) -> None:
        self._seen.unlink(missing_ok=True)
        self._open.unlink()

    def open_when_seen(self, other: Gate) -> None:
        """Let through who comes here as soon as someone stands at the other gate."""
        self._open.unlink(missing_ok=True)
        self._open.symlink_to(other._seen)

    @property
    def pool(self) -> str | None:
        """The pool of the job that came to the gate; None when nobody did."""
        return self._seen.read_text() if self._seen.exists() else None


def _passing(seen: Path, opened: Path) -> Callable[[int], int]:
    def passing(value: int) -> int:
        from pyspark import TaskContext

        context = TaskContext.get()
        pool = context.getLocalProperty("spark.scheduler.pool") if context else None
        seen.write_text(pool or "none")
        deadline = time.monotonic() + _PATIENCE
        while not opened.exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"nobody opened {opened}")
            time.sleep(0.02)
        return value

    return passing


def wait_until(holds: Callable[[], object], what: str, seconds: float = _PATIENCE) -> None:
    """Wait for something that another thread or process does."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)
