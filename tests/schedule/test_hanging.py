"""Sources that do not answer, as a mount that is gone: only who reads them waits, and is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic

import pytest

from runnel.errors import SystemFault
from runnel.model.frontier import Pin
from runnel.model.names import TableName
from runnel.model.refresh import RefreshMode
from runnel.refresh import keeper
from runnel.refresh.answers import Answers, Question
from runnel.refresh.keeper import SessionKeeper
from runnel.refresh.looking import pin_source, pin_sources
from runnel.refresh.retention import Lost, retention_risks
from runnel.schedule import loop, run
from runnel.schedule.executor import LakeExecutor
from runnel.schedule.health import sources
from runnel.schedule.immediate import following_writes
from runnel.schedule.lake_book import LakeBook
from runnel.schedule.machine import Limits, Machine
from runnel.schedule.views import Ending, Finished, Start
from schedule.by_hand import T0, Ears
from schedule.lake import FakeLake, FakeLog

PATIENCE = 0.2
_AT_ONCE = 5.0  # what takes longer has waited


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[FakeLake]:
    made = FakeLake(tmp_path, source_timeout=PATIENCE)
    FakeLog.looks = 0
    yield made
    made.workspace.catalog.close()


@contextmanager
def hanging(lake: FakeLake, *names: str) -> Iterator[threading.Event]:
    """These do not answer until the end, or until the gate is opened."""
    gate = threading.Event()
    for name in names:
        lake.base(name).gate = gate
    try:
        yield gate
    finally:
        gate.set()


def looking(patience: float) -> list[threading.Thread]:
    """The threads that still look after a while."""
    found = [t for t in threading.enumerate() if t.name == "runnel looks"]
    for thread in found:
        thread.join(patience)
    return [thread for thread in found if thread.is_alive()]


def machine(lake: FakeLake) -> Machine:
    return Machine(LakeBook(lake.workspace), Ears(), Limits())


def test_a_source_that_hangs_holds_up_only_who_reads_it(lake: FakeLake) -> None:
    for name, source in (("a", "x1"), ("b", "x2"), ("c", "x3"), ("d", "a")):
        lake.add(name, "1m", source, at=T0)
    lake.base("x2").version = 2
    with hanging(lake, "x1"):
        begun = monotonic()
        starts = machine(lake).decide(T0 + 24)
        assert monotonic() - begun < _AT_ONCE
        assert [str(start.unit) for start in starts] == ["default.a", "default.b"]
        assert lake.at("c") == T0 + 24, "it has no news"
        event = LakeExecutor(lake.workspace)(starts[0])
    assert (event.ending, event.is_retryable, event.failed) == (Ending.FAILED, True, "default.a")
    assert "x1, which is read, does not answer" in (event.error or "")
    assert "source_timeout" in (event.error or "")


def test_who_hangs_is_not_asked_again_before_it_has_answered(lake: FakeLake) -> None:
    known = [lake._source(name) for name in ("x1", "x2")]
    with hanging(lake, "x1") as gate:
        for _ in range(3):
            found = pin_sources(lake.workspace, known)
            assert isinstance(found["default.x1"], SystemFault)
            assert found["default.x2"] == Pin("delta", "id of x2", 1)
        begun = monotonic()
        pin_sources(lake.workspace, known)
        assert monotonic() - begun < PATIENCE, "nobody waits for it once more"
        looks = FakeLog.looks
        with pytest.raises(SystemFault, match="does not answer"):
            pin_source(lake.workspace, known[0])
        assert FakeLog.looks == looks
        assert len(looking(0.5)) == 1, "the one that is lost"
        gate.set()
        assert looking(20) == []
        lake.base("x1").version = 5
        assert pin_source(lake.workspace, known[0]) == Pin("delta", "id of x1", 5)


def test_many_that_hang_are_waited_for_together(lake: FakeLake) -> None:
    names = [f"x{i}" for i in range(60)]
    with hanging(lake, *names[:50]):
        begun = monotonic()
        found = pin_sources(lake.workspace, [lake._source(name) for name in names])
        assert monotonic() - begun < _AT_ONCE
    hung = {key for key, pin in found.items() if isinstance(pin, SystemFault)}
    assert hung == {f"default.{name}" for name in names[:50]}


def test_who_is_stopped_does_not_wait_for_a_source(lake: FakeLake) -> None:
    stopped = threading.Event()
    patient = Answers()
    with hanging(lake, "x1"):
        log = lake.base("x1")

        def ask() -> int:
            stopped.set()
            return log.latest_version()

        begun = monotonic()
        assert patient.ask({"x1": Question("x1", ask)}, 3600, stopped.is_set) == {}
        assert monotonic() - begun < _AT_ONCE


def test_who_is_stopped_while_it_looks_begins_nothing(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    stop, begun = threading.Event(), list[Start]()
    lake.workspace = lake.workspace.for_run(stop.is_set)
    lake.workspace.settings = replace(lake.workspace.settings, source_timeout=60)

    def execute(start: Start) -> Finished:
        begun.append(start)
        return Finished(start, Ending.ABANDONED)

    made = loop.Loop(machine(lake), execute, lambda: T0 + 24, stop=stop)
    with hanging(lake, "x1"):
        threading.Timer(0.05, stop.set).start()
        made.forever()
    assert begun == []


def test_places_that_answer_slowly_are_asked_side_by_side() -> None:
    """Eight that answer only when all eight have been asked."""
    meeting = threading.Barrier(8)
    asked = {n: Question(f"place {n}", partial(meeting.wait, 20)) for n in range(8)}
    assert len(Answers().ask(asked, 20, lambda: False)) == 8


def test_the_first_version_is_an_answer_too(lake: FakeLake) -> None:
    lake.base("x1").version = 0
    assert pin_source(lake.workspace, lake._source("x1")) == Pin("delta", "id of x1", 0)


def test_what_goes_wrong_while_asking_is_raised() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Answers().ask({1: Question("here", fail)}, 20, lambda: False)


def test_nobody_hangs_who_looks_after_the_lake(lake: FakeLake) -> None:
    """The watch over what sources may lose, and the doctor."""
    lake.add("a", "1m", "x1", at=T0)
    lake.add("b", "1m", "x2", at=T0)
    with hanging(lake, "x1"):
        (lost,) = retention_risks(lake.workspace)
        assert isinstance(lost, Lost)
        assert (lost.need.source, lost.is_gone) == ("x1", False)
        run.House(lake.workspace, lambda: T0, lambda: None).keep()
        assert sources(lake.workspace).said == "gone: x1 (read by a)"


def test_a_write_does_not_hang_because_of_a_source_that_others_read(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0, mode=RefreshMode.IMMEDIATE)
    with hanging(lake, "x1"), following_writes(lake.workspace):
        pass


def test_names_are_given_although_a_place_hangs(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table outside of the lake on a mount that is gone; it gets its name when that is back."""
    catalog, gate, named = lake.workspace.catalog, threading.Event(), list[str]()
    for name in ("near", "far"):
        catalog.register_base_table(TableName.parse(name), f"/mnt/{name}")

    def is_gone(location: str) -> bool:
        if location == "/mnt/far":
            gate.wait(60)
        return False

    monkeypatch.setattr(keeper, "is_gone", is_gone)
    monkeypatch.setattr(keeper, "register_location", lambda _, name, __: named.append(str(name)))
    monkeypatch.setattr(keeper, "sync_tables", lambda *_, **__: None)
    made = SessionKeeper(lake.workspace.path, catalog, None, None, {}, PATIENCE)
    monkeypatch.setattr(made, "begin", lambda: None)
    made.sync()
    made.sync()
    assert named == ["near"]
    gate.set()
    assert looking(20) == []
    made.sync()
    assert named == ["near", "far"]
