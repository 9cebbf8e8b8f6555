"""Deleting what no reader can still need: replaced files, and leavings of interrupted writes."""

from __future__ import annotations

import contextlib
import os
import time
from datetime import timedelta

from runnel.lake.log import DeltaLog


def vacuum(log: DeltaLog, retention: timedelta) -> int:
    """Delete files that no version younger than `retention` names; returns how many."""
    cutoff = time.time() - retention.total_seconds()
    keep = _needed(log, cutoff)
    deleted = 0
    for folder, _, names in os.walk(log.path, topdown=False):
        if "_delta_log" in os.path.relpath(folder, log.path).split(os.sep):
            continue
        before = deleted
        for name in names:
            path = os.path.join(folder, name)
            if _owner(path) not in keep and _is_older(path, cutoff):
                os.remove(path)
                deleted += 1
        # An empty folder may belong to a write that has just begun.
        if folder != log.path and (deleted > before or _is_older(folder, cutoff)):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
    return deleted


def _needed(log: DeltaLog, cutoff: float) -> set[str]:
    version = log.latest_version()
    keep = {file.path for file in log.snapshot(version).files}
    # A version is current until the next commit: what that one removed was needed up to then.
    while version >= 0:
        commit = log.commit(version)
        if commit.timestamp_ms < cutoff * 1000:
            break
        keep |= {action.path for action in commit.removes}
        version -= 1
    return keep


def _owner(path: str) -> str:
    """The data file that a checksum file belongs to, or the file itself."""
    folder, name = os.path.split(path)
    if name.startswith(".") and name.endswith(".crc"):
        return os.path.join(folder, name[1:-4])
    return path


def _is_older(path: str, cutoff: float) -> bool:
    try:
        return os.stat(path).st_mtime < cutoff
    except OSError:
        return False
