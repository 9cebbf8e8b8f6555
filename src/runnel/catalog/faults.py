"""What a database error means for the catalog, and what to do about it."""

from __future__ import annotations

from runnel.errors import SystemFault


def fault_of(address: str, text: str) -> SystemFault:
    """The fault that a database's message stands for."""
    for sign, problem, hint, is_passing in _FAULTS:
        if sign in text.lower():
            fault = SystemFault(f"the catalog {address} {problem}", detail=text, hint=hint)
            fault.retryable = is_passing
            return fault
    return SystemFault(f"the catalog {address} failed", detail=text)


_DAMAGED = (
    "is damaged",
    "stop what uses it, then make a new one from the files beside the tables: "
    "runnel doctor --rebuild; or restore a backup of any age. The contents of the tables are safe",
    False,
)
_FAULTS = (
    ("not a database", *_DAMAGED),
    ("malformed", *_DAMAGED),
    ("no such table", *_DAMAGED),
    ("no such column", *_DAMAGED),
    ("locked", "is locked by another process", "try again; see who has the file open", True),
    ("readonly", "cannot be written", "check the permissions of the file and its folder", False),
    ("unable to open", "cannot be opened", "check that the folder exists and is writable", False),
    ("is full", "cannot grow", "free some disk space; nothing was lost, try again then", True),
    ("disk i/o", "cannot be read or written", "check the disk, its space and its quota", True),
    ("connection", "cannot be reached", "check that the server runs and the URL is right", True),
)
