"""The newest contents of a table, whatever others make of its storage meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from runnel.catalog import StreamTable
from runnel.lake.frames import DataFrame
from runnel.refresh.recovery import catch_up, current
from runnel.refresh.workspace import Workspace

_TRIES = 5
R = TypeVar("R")


def read_newest(workspace: Workspace, known: StreamTable, read: Callable[[StreamTable], R]) -> R:
    """Do something with a table as it is now; again when it has moved on and that is why it failed.

    An epoch stays readable for a while after it was compacted or replaced, but not what was stored
    for an earlier definition.
    """
    for tries_left in reversed(range(_TRIES)):
        table = catch_up(workspace, current(workspace, known.id))
        try:
            return read(table)
        except Exception:
            now = current(workspace, known.id)
            if not tries_left or (now.incarnation, now.epoch) == (table.incarnation, table.epoch):
                raise
    raise AssertionError("the last try returns or raises")


def newest_rows(workspace: Workspace, known: StreamTable) -> DataFrame:
    """What the user sees of a table."""
    # Before its epoch is settled: to start Spark takes seconds.
    spark = workspace.spark
    return read_newest(
        workspace, known, lambda table: workspace.trace(table).past_readout(spark, table.epoch)
    )
