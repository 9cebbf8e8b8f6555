"""Whether the Spark behind a session has ended, so that nothing will work in the session again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runnel.errors import SparkEnded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HINT = (
    "start this program again: a process can start Spark only once; "
    "_runnel/spark.log may say why it ended"
)


def end_of(spark: SparkSession) -> SparkEnded | None:
    """What became of a session's Spark; None while it lives.

    A Connect server that is away may come back. When another one answers in its place, the session
    is lost: the client has noticed that by itself, and is asked without a call.
    """
    if is_remote(spark):
        return _session_lost() if getattr(spark, "is_stopped", False) else None
    try:
        _ = spark.sparkContext.defaultParallelism
    except Exception as error:
        if is_cut_off(error) or _is_stopped(error):
            return SparkEnded("the Spark process has ended", hint=HINT)
    return None


def is_remote(spark: SparkSession) -> bool:
    """Whether a session speaks Spark Connect."""
    return not hasattr(spark, "newSession")


def is_cut_off(error: Exception) -> bool:
    """Whether a call did not reach the JVM, or no answer came back.

    By the type alone: a function of the user's own may be refused a connection too, and the text of
    Spark's error has that in it.
    """
    name = type(error).__name__
    if name == "Py4JError":
        return "Trace:" not in str(error)
    return name == "Py4JNetworkError" or isinstance(error, ConnectionError)


def _is_stopped(error: Exception) -> bool:
    """The JVM may outlive its context; what was stopped from Python has no context at all."""
    return isinstance(error, AttributeError) or "stopped SparkContext" in str(error)


def _session_lost() -> SparkEnded:
    return SparkEnded(
        "the Spark session has ended",
        detail="the Connect server does not know it any more: it was started anew",
        hint="open the lake again",
    )
