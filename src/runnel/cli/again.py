"""`runnel run` begun anew when its Spark has ended: PySpark can start only one in a program."""

from __future__ import annotations

import os
import sys
from time import time
from typing import NoReturn

from runnel.cli.text import note
from runnel.errors import SparkEnded

MOST = 3
WITHIN_SECONDS = 600.0
RESTARTS = "RUNNEL_RUN_RESTARTS"
"""The variable in which a process tells the next one when it and those before it were begun."""


def start_again(error: SparkEnded, now: float | None = None) -> NoReturn:
    """Run the same command line again; the error instead when that was done too often of late."""
    from runnel.cli.lines import clock

    at = time() if now is None else now
    before = [t for t in _restarts() if abs(at - t) < WITHIN_SECONDS]
    if len(before) >= MOST:
        raise _too_often(error, len(before) + 1) from error
    note(f"{clock()} {error.primary}; starting again with a new one")
    sys.stdout.flush()
    sys.stderr.flush()
    told = " ".join(f"{t:.0f}" for t in [*before, at])
    command = [sys.executable, *sys.orig_argv[1:]]
    os.execve(sys.executable, command, {**os.environ, RESTARTS: told})


def _restarts() -> list[float]:
    """When it was begun anew so far; whatever else stands there is not ours."""
    try:
        return [float(word) for word in os.environ.get(RESTARTS, "").split()]
    except ValueError:
        return []


def _too_often(error: SparkEnded, times: int) -> SparkEnded:
    return SparkEnded(
        f"{error.primary} {times} times within {WITHIN_SECONDS / 60:.0f} minutes",
        detail=error.detail,
        hint="find out why, then start runnel run again: _runnel/spark.log and the system's log "
        "tell whether memory was short (less of it: --workers 1)",
    )
