"""Deleting what no reader can still need: replaced files, and leavings of interrupted writes."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable
from datetime import timedelta

from runnel.errors import SourceError
from runnel.lake.commits import RUN
from runnel.lake.log import DeltaLog, HistoryLost


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


def run_folders(log: DeltaLog) -> set[str]:
    """The folders that writes made inside a table, whether they were committed or not."""
    try:
        with os.scandir(log.path) as entries:
            return {entry.path for entry in entries if entry.name.startswith(RUN)}
    except FileNotFoundError:
        return set()


def unnamed(log: DeltaLog, folders: set[str]) -> set[str]:
    """Those of some folders that no entry of the log names: their writes were never committed."""
    if not os.path.isdir(os.path.join(log.path, "_delta_log")):
        return folders
    try:
        version = log.latest_version()
        live = log.snapshot(version).files
    except SourceError:
        # What cannot be read may name any of them.
        return set()
    left = folders - {os.path.dirname(file.path) for file in live}
    # What is not live any more was removed, however long ago.
    with contextlib.suppress(HistoryLost):
        while left and version >= 0:
            left -= {os.path.dirname(action.path) for action in log.commit(version).removes}
            version -= 1
    return left


def remove_folders(folders: Iterable[str]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


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
