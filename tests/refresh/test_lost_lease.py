"""A process that stands still for longer than its lease lasts does no harm when it goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest

from refresh.helpers import SALES, Source, check
from runnel.api import Lake
from runnel.catalog.engine import writing
from runnel.catalog.schema import leases
from runnel.errors import Busy
from runnel.lake import appending
from runnel.model.refresh import Outcome
from runnel.refresh import attempt, execute, recording

pytestmark = pytest.mark.spark

POINTS = ["refresh.before_append", "trace.append.written", "refresh.before_record"]


@contextmanager
def standing_still(
    monkeypatch: pytest.MonkeyPatch, point: str, *meanwhile: Callable[[], object]
) -> Iterator[None]:
    """Who comes to a point stays there while something happens: the first, the second ..."""
    left = list(meanwhile)

    def reach(name: str) -> None:
        if name == point and left:
            left.pop(0)()

    with monkeypatch.context() as patched:
        for module in (appending, attempt, execute, recording):
            patched.setattr(module, "reach", reach)
        yield
    assert not left, f"{point} was not reached"


def expire(lake: Lake) -> None:
    """All leases run out: nobody renewed them in time."""
    with writing(lake._workspace.catalog.engine) as connection:
        connection.execute(leases.update().values(expires_at=0.0))


def instant(lake: Lake) -> datetime:
    found = lake.status("sales").data_timestamp
    assert found is not None
    return found


@pytest.mark.parametrize("mode", ["DIFFERENTIAL", "FULL"])
@pytest.mark.parametrize("point", POINTS)
def test_someone_else_took_the_table_over(
    lake: Lake, other: Lake, source: Source, monkeypatch: pytest.MonkeyPatch, point: str, mode: str
) -> None:
    point = point.replace("append.written", "replace.written") if mode == "FULL" else point
    lake.create_stream_table("sales", SALES, refresh_mode=mode)
    source.append((4, 12, "2.00"))
    seen: list[datetime] = []

    def take_over() -> None:
        expire(lake)
        source.append((5, 10, "3.00"), (6, 12, "1.00"))
        assert other.refresh("sales").action == mode
        seen.append(instant(other))

    with standing_still(monkeypatch, point, take_over), pytest.raises(Busy) as caught:
        lake.refresh("sales")
    is_committed = point == "refresh.before_record"
    assert ("was lost after its change was committed" in str(caught.value)) == is_committed
    assert ("nothing of this attempt was kept" in str(caught.value)) != is_committed
    assert instant(lake) == seen[0], "what the other one recorded stays"
    assert lake.status("sales").epoch == (3 if is_committed else 2)
    assert lake.verify("sales").ok
    source.append((7, 11, "4.00"))
    check(lake, "sales", mode)
    assert instant(lake) > seen[0]
    totals = {row["cust"]: (str(row["total"]), row["n"]) for row in lake.table("sales").collect()}
    assert totals == {10: ("15.50", 3), 11: ("5.25", 2), 12: ("3.00", 2)}


def test_one_who_lost_the_table_appends_before_its_new_holder(
    lake: Lake, other: Lake, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is appended first counts, whoever it was; the holder notices that it was not alone."""
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "2.00"))
    told: list[str] = []
    is_there, goes_on = threading.Event(), threading.Event()

    def refresh_too() -> None:
        try:
            other.refresh("sales")
        except Busy as error:
            told.append(error.primary)

    holder = threading.Thread(target=refresh_too)

    def let_the_other_in() -> None:
        expire(lake)
        source.append((5, 10, "3.00"))
        holder.start()
        assert is_there.wait(60)

    def wait() -> None:
        is_there.set()
        goes_on.wait(60)

    with standing_still(monkeypatch, "trace.append.written", let_the_other_in, wait):
        with pytest.raises(Busy, match="was lost after its change was committed"):
            lake.refresh("sales")
        goes_on.set()
        holder.join(60)
    assert told == ["another process has written epoch 2 of sales meanwhile"]
    assert lake.verify("sales").ok
    assert lake.status("sales").epoch == 2
    check(lake, "sales", "DIFFERENTIAL")
    assert lake.table("sales").count() == 3


def test_a_reader_that_finds_the_commit_first_takes_nothing_away(
    lake: Lake, other: Lake, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    source.append((4, 12, "2.00"))
    seen: list[int] = []

    def look() -> None:
        seen.append(other.table("sales").count())

    with standing_still(monkeypatch, "refresh.before_record", look):
        assert lake.refresh("sales").action == "DIFFERENTIAL"
    assert seen == [3]
    assert other.status("sales").epoch == 2
    assert lake.history("sales")[0].outcome is Outcome.OK
    check(lake, "sales", "NO_DATA")
