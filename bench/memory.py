"""How much memory the process of the benchmark has taken at its highest."""

from __future__ import annotations

import resource


def python_peak_mb() -> float:
    """Of this process alone: Spark's is a child of it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
