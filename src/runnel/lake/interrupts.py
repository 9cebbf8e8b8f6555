"""Ctrl-C and Spark: PySpark's own way with it fails half-way, so this is ours."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CANCEL_SECONDS = 3.0


class _Cancelled(KeyboardInterrupt):
    """An interrupt after which nothing runs any more."""


@contextmanager
def same_handler() -> Iterator[None]:
    """Keep the process's own handler, where starting Spark would replace it.

    PySpark's talks to the JVM on the connection that it has just interrupted: that fails, and the
    job goes on.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGINT, handler)


@contextmanager
def cancelling(session: Callable[[], SparkSession | None]) -> Iterator[None]:
    """An interrupt also ends what the session has running, which would go on otherwise."""
    try:
        yield
    except _Cancelled:
        raise
    except BaseException as error:
        if not was_interrupted(error):
            raise
        if (spark := session()) is not None:
            cancel(spark)
        raise _Cancelled from error


def was_interrupted(error: BaseException | None) -> bool:
    """Also when cleaning up after the interrupt failed, and that is the error we see."""
    # Chains of causes can go round: Spark Connect's do.
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def cancel(spark: SparkSession) -> None:
    """End what the session has running, or is about to run."""
    # The interrupted call may still be planned there, and start a job a moment later, or another
    # one; and the first call after it may find the JVM busy with closing its connection.
    deadline = monotonic() + _CANCEL_SECONDS
    was_running = False
    while monotonic() < deadline:
        with suppress(Exception):
            is_running = bool(spark.interruptAll())
            if was_running and not is_running:
                return
            was_running |= is_running
        sleep(0.2)
