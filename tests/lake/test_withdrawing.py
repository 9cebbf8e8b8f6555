"""An epoch that never became visible is taken back, and its number is not given again."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from lake.traces import append, contents, make_trace
from runnel.lake.trace import Trace


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    made = make_trace(str(tmp_path / "t"))
    append(made, 1, [(1, 1), (2, 1)], frontier="f1")
    return made


def no_spark() -> NoReturn:
    raise AssertionError("this needs no Spark")


def test_what_waits_for_its_group_is_pending(trace: Trace) -> None:
    append(trace, 2, [(3, 1)], group="g", frontier="f2")
    last = trace.last_commit()
    assert last is not None
    assert trace.is_pending(last, visible=1)
    assert not trace.is_pending(last, visible=2), "it became visible"
    assert not trace.is_pending(last, visible=0), "the catalog is older than the trace"


def test_what_came_by_itself_is_not(trace: Trace) -> None:
    append(trace, 2, [(3, 1)])
    last = trace.last_commit()
    assert last is not None
    assert not trace.is_pending(last, visible=1)


def test_taken_back_the_contents_and_the_frontier_are_those_of_before(trace: Trace) -> None:
    append(trace, 2, [(3, 1), (1, -1)], group="g", frontier="f2")
    pending = trace.last_commit()
    assert pending is not None
    assert trace.withdraw(no_spark, pending)
    last = trace.last_commit()
    assert last is not None
    assert (last.epoch, last.since, last.metadata, last.rows) == (1, 0, {"frontier": "f1"}, 2)
    assert contents(trace, 99) == {1: 1, 2: 1}
    assert not trace.withdraw(no_spark, pending), "it is gone already"


def test_its_number_is_used_up(trace: Trace) -> None:
    append(trace, 2, [(3, 1)], group="g")
    pending = trace.last_commit()
    assert pending is not None
    trace.withdraw(no_spark, pending)
    assert not append(trace, 2, [(4, 1)], group="g"), "a process that was cut off comes too late"
    assert trace.next_epoch() == 3
    assert append(trace, 3, [(5, 1)], group="h")
    last = trace.last_commit()
    assert last is not None
    assert trace.is_pending(last, visible=1)
    assert contents(trace, 3) == {1: 1, 2: 1, 5: 1}
    assert trace.next_epoch() == 4


def test_only_the_last_epoch_is_taken_back(trace: Trace) -> None:
    append(trace, 2, [(3, 1)], group="g")
    pending = trace.last_commit()
    assert pending is not None
    append(trace, 3, [(4, 1)])
    assert not trace.withdraw(no_spark, pending)
    assert contents(trace, 3) == {1: 1, 2: 1, 3: 1, 4: 1}


def test_the_first_epoch_can_be_taken_back_too(tmp_path: Path) -> None:
    trace = make_trace(str(tmp_path / "t"))
    append(trace, 1, [(1, 1)], group="g")
    pending = trace.last_commit()
    assert pending is not None
    assert trace.is_pending(pending, visible=0)
    assert trace.withdraw(no_spark, pending)
    assert contents(trace, 9) == {}
    assert trace.next_epoch() == 2


def test_an_older_state_is_found_in_the_log(trace: Trace) -> None:
    append(trace, 2, [(3, 1)])
    assert trace.is_readable(1)
    assert trace.is_readable(2)
