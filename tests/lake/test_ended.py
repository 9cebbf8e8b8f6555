"""When a Spark counts as ended, told without one."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PythonException

from runnel.errors import QueryFailed, SystemFault
from runnel.lake.ended import end_of
from runnel.lake.session import stop_session
from runnel.lake.translate import translate


class FakeSpark:
    """A classic session whose context answers, or raises."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.stops = 0

    def newSession(self) -> None:  # noqa: N802
        raise AssertionError

    @property
    def sparkContext(self) -> Any:  # noqa: N802
        return self

    @property
    def defaultParallelism(self) -> int:  # noqa: N802
        if self.error is not None:
            raise self.error
        return 2

    def stop(self) -> None:
        self.stops += 1
        if self.error is not None:
            raise self.error


class FakeConnect:
    """A session of Connect."""

    def __init__(self, is_stopped: bool) -> None:
        self.is_stopped = is_stopped


GONE = [
    Py4JNetworkError("Answer from Java side is empty"),
    Py4JNetworkError("An error occurred while trying to connect to the Java server"),
    Py4JError("An error occurred while calling o12.collectToPython"),
    ConnectionRefusedError(111, "Connection refused"),
    ConnectionResetError(104, "Connection reset by peer"),
]


@pytest.mark.parametrize("error", GONE, ids=str)
def test_a_process_that_does_not_answer_has_ended(error: Exception) -> None:
    end = end_of(FakeSpark(error))  # type: ignore[arg-type]
    assert end is not None
    assert (end.primary, end.retryable) == ("the Spark process has ended", True)
    assert "spark.log" in (end.hint or "")
    told = translate(error)
    assert isinstance(told, SystemFault)
    assert (told.primary, told.hint) == (end.primary, end.hint)


@pytest.mark.parametrize(
    "error",
    [
        Py4JError("java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext"),
        AttributeError("'NoneType' object has no attribute 'sc'"),
    ],
)
def test_so_has_one_whose_context_was_stopped(error: Exception) -> None:
    assert end_of(FakeSpark(error)) is not None  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [None, Py4JError("no. Trace:\nnot allowed"), ValueError("?")])
def test_one_that_answers_has_not(error: Exception | None) -> None:
    assert end_of(FakeSpark(error)) is None  # type: ignore[arg-type]


def test_a_connect_server_may_come_back_but_not_know_the_session() -> None:
    assert end_of(FakeConnect(is_stopped=False)) is None  # type: ignore[arg-type]
    end = end_of(FakeConnect(is_stopped=True))  # type: ignore[arg-type]
    assert end is not None
    assert end.hint == "open the lake again"


def test_a_function_that_is_refused_a_connection_does_not_end_spark() -> None:
    text = (
        "[UDF_USER_CODE_ERROR.GENERIC] ...\nTraceback (most recent call last):\n"
        '  File "rates.py", line 3, in rate\nConnectionRefusedError: [Errno 111] Connection refused'
    )
    told = translate(PythonException(text))
    assert isinstance(told, QueryFailed)
    assert "ConnectionRefusedError" in told.primary


def test_what_has_ended_can_be_stopped() -> None:
    gone, alive = FakeSpark(GONE[0]), FakeSpark(None)
    stop_session(gone)  # type: ignore[arg-type]
    stop_session(alive)  # type: ignore[arg-type]
    assert (gone.stops, alive.stops) == (1, 1)
