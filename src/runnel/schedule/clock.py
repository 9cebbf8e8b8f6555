"""A clock that never goes back, whatever happens to the one on the wall."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

AHEAD = 60.0
"""Beyond so many seconds an instant to come is no difference of clocks: one of them was wrong."""


@dataclass(slots=True)
class SteadyClock:
    """Follows the wall clock forward; when that is set back, it waits for it at half speed."""

    wall: Callable[[], float] = time.time
    ticks: Callable[[], float] = time.monotonic
    _now: float = field(default=0.0)
    _tick: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self) -> float:
        """Seconds since 1970."""
        with self._lock:
            tick = self.ticks()
            passed = 0.0 if self._tick is None else max(0.0, tick - self._tick)
            self._tick = tick
            self._now = max(self._now + passed / 2, self.wall())
            return self._now
