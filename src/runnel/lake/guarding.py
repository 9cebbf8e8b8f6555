"""Writers of PySpark's own that are asked about first: Spark lets them take a view's name.

`frame.write.mode("overwrite").saveAsTable("v")` drops a view v without a word and makes a table of
that name. There is nothing to set in Spark against it, so frames are given writers that ask.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from runnel.lake.ended import is_remote


class Guard(Protocol):
    """Who knows what must not be written."""

    def refuse_write(self, name: str) -> None:
        """Raise where nothing of this name may be written."""


_guards: WeakKeyDictionary[Guard, SparkSession] = WeakKeyDictionary()
_guarded: set[type] = set()
_lock = threading.Lock()


def guard_writes(guard: Guard, spark: SparkSession) -> None:
    """Ask before a frame is written under a name."""
    with _lock:
        _guards[guard] = spark
        kind = type(spark.range(0))
        if kind not in _guarded:
            _guarded.add(kind)
            _change(kind)


def release_writes(guard: Guard) -> None:
    """Ask no more."""
    with _lock:
        _guards.pop(guard, None)


def _ask(frame: DataFrame, name: str) -> None:
    session = frame.sparkSession
    with _lock:
        guards = list(_guards.items())
    for guard, spark in guards:
        # Sessions of one Spark have their names in common; two Connect servers do not.
        if spark is session or not (is_remote(spark) or is_remote(session)):
            guard.refuse_write(name)


def _change(kind: Any) -> None:
    """Let `write` and `writeTo` of a class of frames ask."""
    plain_write, plain_write_to = kind.write, kind.writeTo

    def write(self: DataFrame) -> Any:
        writer = plain_write.fget(self)
        for verb in ("saveAsTable", "insertInto"):
            setattr(writer, verb, _asking(self, getattr(writer, verb)))
        return writer

    @wraps(plain_write_to)
    def write_to(self: DataFrame, table: str) -> Any:
        _ask(self, table)
        return plain_write_to(self, table)

    kind.write = property(write, doc=plain_write.__doc__)
    kind.writeTo = write_to


def _asking(frame: DataFrame, verb: Callable[..., None]) -> Callable[..., None]:
    @wraps(verb)
    def ask_first(*arguments: Any, **options: Any) -> None:
        name = arguments[0] if arguments else options.get("name", options.get("tableName"))
        if isinstance(name, str):
            _ask(frame, name)
        verb(*arguments, **options)

    return ask_first
