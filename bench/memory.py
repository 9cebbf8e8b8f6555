"""How much memory the process of the benchmark has taken at its highest, of late."""

from __future__ import annotations

import re
import resource
from contextlib import suppress
from pathlib import Path

_HIGHEST = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
_FORGET = Path("/proc/self/clear_refs")


def forget_peak() -> bool:
    """Begin anew with what is taken now; False where the system cannot (it has to be Linux)."""
    try:
        _FORGET.write_text("5")
    except OSError:
        return False
    return True


def python_peak_mb() -> float:
    """Of this process alone: Spark's is a child of it."""
    with suppress(OSError):
        found = _HIGHEST.search(Path("/proc/self/status").read_text())
        if found is not None:
            return int(found[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
