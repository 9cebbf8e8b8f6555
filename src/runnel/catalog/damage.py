"""A SQLite catalog that may be damaged: whether it is, and out of the way with it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path


def is_sound(file: Path) -> bool:
    """Whether SQLite finds the file in order, page by page; a lock is no damage."""
    try:
        with closing(sqlite3.connect(file)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.OperationalError as error:
        return "malformed" not in str(error)
    except sqlite3.DatabaseError:
        return False


def set_aside(file: Path, at: datetime) -> Path:
    """Rename a catalog's files, so that a new one can take their place."""
    kept = file.with_name(f"{file.name}.damaged-{at:%Y%m%dT%H%M%S}")
    for end in ("-wal", "-shm", ""):
        part = file.with_name(file.name + end)
        if part.exists():
            part.rename(kept.with_name(kept.name + end))
    return kept
