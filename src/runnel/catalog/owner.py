"""Who does something: a process, told apart from a later one with the same number."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass

import psutil

# Start times are read in clock ticks, so two readings of one process agree to much less than this.
_TOLERANCE = 1.0


@dataclass(frozen=True, slots=True)
class Owner:
    """A process on a host; `started` is seconds after boot, `instance` one use of Runnel in it."""

    host: str
    pid: int
    started: float
    instance: str

    @staticmethod
    def current() -> Owner:
        pid = os.getpid()
        return Owner(socket.gethostname(), pid, started_at(pid) or 0.0, uuid.uuid4().hex)

    @staticmethod
    def parse(text: str) -> Owner:
        host, pid, started, instance = text.rsplit("/", 3)
        return Owner(host, int(pid), float(started), instance)

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}/{self.started:.2f}/{self.instance}"

    @property
    def description(self) -> str:
        return f"process {self.pid} on {self.host}"

    @property
    def is_local(self) -> bool:
        return self.host == socket.gethostname()


def is_alive(owner: Owner) -> bool:
    """Whether the process still runs; of another host's processes nothing is known, so yes."""
    if not owner.is_local:
        return True
    try:
        started = started_at(owner.pid)
    except psutil.AccessDenied:
        return True
    return started is not None and abs(started - owner.started) < _TOLERANCE


def started_at(pid: int) -> float | None:
    """When a process started, in seconds after boot: steps of the wall clock do not change it."""
    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        return float(process.create_time() - psutil.boot_time())
    except psutil.NoSuchProcess:
        return None
