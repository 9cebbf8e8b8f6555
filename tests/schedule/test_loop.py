"""The threads around the state machine: nothing is lost, and the end comes in time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import monotonic

import pytest

from runnel.errors import NotFound, SystemFault
from runnel.model.refresh import TableState
from runnel.schedule import loop as loops
from runnel.schedule.clock import SteadyClock
from runnel.schedule.loop import Loop
from runnel.schedule.machine import Limits, Machine
from runnel.schedule.views import Ending, Finished, Start, TableView
from runnel.schedule.webhook import CLOSE_SECONDS
from schedule.by_hand import T0, ByHand, table
from schedule.sim_world import SimSnapshot


@dataclass
class Seen:
    """An onlooker with a memory."""

    begun: list[str] = field(default_factory=list)
    over: list[tuple[str, Ending]] = field(default_factory=list)

    def looked(self, now: float, machine: Machine) -> None:
        pass

    def started(self, start: Start) -> None:
        self.begun.append(str(start.unit))

    def ended(self, event: Finished) -> None:
        self.over.append((str(event.start.unit), event.ending))


class Worker:
    """Refreshes in the simulated lake; tables in `gates` wait until theirs is opened."""

    def __init__(self, lake: ByHand, **gates: threading.Event) -> None:
        self.lake = lake
        self.gates = gates
        self.lock = threading.Lock()
        self.at_once = 0
        self.most_at_once = 0

    def __call__(self, start: Start) -> Finished:
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        if (gate := self.gates.get(str(start.unit))) is not None:
            gate.wait(20)
        with self.lock:
            self.at_once -= 1
            assert isinstance(start.snapshot, SimSnapshot)
            results = self.lake.world.commit(start.unit, start.snapshot)
            assert results is not None
            return Finished(start, Ending.DONE, results)


def make(lake: ByHand, worker: Worker, **options: object) -> Loop:
    return Loop(lake.machine, worker, lambda: T0, **options)  # type: ignore[arg-type]


def test_once_refreshes_what_is_due_in_order_and_returns_it() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "a"), table("c", None, "x"))
    results = make(lake, Worker(lake)).once()
    assert [(r.name, r.action.value) for r in results] == [
        ("a", "DIFFERENTIAL"),
        ("b", "DIFFERENTIAL"),
    ]
    assert lake.machine.is_idle


def test_once_with_nothing_due_starts_no_thread() -> None:
    lake = ByHand(table("a", "1m", "x"))
    lake.run_all(T0)
    before = threading.active_count()
    assert make(lake, Worker(lake)).once() == []
    assert threading.active_count() == before


def test_once_does_not_begin_another_pass() -> None:
    lake = ByHand(table("a", "1s", "x"), table("b", "1s", "a"))
    times = iter(range(10**6))
    loop = Loop(lake.machine, Worker(lake), lambda: T0 + 10.0 * next(times))
    assert [r.name for r in loop.once()] == ["a", "b"]


def test_refreshes_overlap() -> None:
    lake = ByHand(*(table(f"t{i}", "1m", "x") for i in range(3)))
    gates = {f"t{i}": threading.Event() for i in range(3)}
    worker = Worker(lake, **gates)

    def open_when_all_are_there() -> None:
        while worker.at_once < 3:
            pass
        for gate in gates.values():
            gate.set()

    threading.Thread(target=open_when_all_are_there, daemon=True).start()
    assert len(make(lake, worker).once()) == 3
    assert worker.most_at_once == 3


def test_once_tells_of_every_table() -> None:
    lake = ByHand(*(table(f"t{i}", "1m", "x") for i in range(1100)), concurrent=8)
    assert len(make(lake, Worker(lake)).once()) == 1100


def test_a_stop_lets_what_runs_finish_and_starts_nothing_more() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "a"))
    gate, stop, seen = threading.Event(), threading.Event(), Seen()

    def begun(start: Start) -> None:
        seen.begun.append(str(start.unit))
        stop.set()
        threading.Timer(0.2, gate.set).start()

    seen.started = begun  # type: ignore[method-assign]
    make(lake, Worker(lake, a=gate), onlooker=seen, stop=stop).forever()
    assert seen.begun == ["a"]
    assert seen.over == [("a", Ending.DONE)]
    assert lake.view("b").state is TableState.UNINITIALIZED


def test_what_hangs_is_abandoned_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FINISH_SECONDS", 0.2)
    monkeypatch.setattr(loops, "ABANDON_SECONDS", 0.3)
    lake = ByHand(table("a", "1m", "x"))
    stop, abandoned, never = threading.Event(), threading.Event(), threading.Event()
    seen = Seen()
    seen.started = lambda start: stop.set()  # type: ignore[method-assign]
    began = monotonic()
    make(lake, Worker(lake, a=never), onlooker=seen, stop=stop, abandon=abandoned.set).forever()
    assert abandoned.is_set()
    assert monotonic() - began < 10
    never.set()


def test_the_end_comes_within_ten_seconds() -> None:
    """What notices the stop, lets refreshes finish, abandons them and posts the last alerts."""
    seconds = (loops._LONGEST_SLEEP, loops.FINISH_SECONDS, loops.ABANDON_SECONDS, CLOSE_SECONDS)
    assert sum(seconds) <= 8


def test_a_stop_is_noticed_however_seldom_it_looks_for_work() -> None:
    lake = ByHand(table("a", "1m", "x"))
    lake.machine.limits = replace(lake.machine.limits, interval=3600.0)
    stop = threading.Event()
    loop = make(lake, Worker(lake), stop=stop)
    threading.Timer(0.5, stop.set).start()
    began = monotonic()
    loop.forever()
    assert monotonic() - began < 5


def test_a_worker_that_dies_is_an_error_of_the_table() -> None:
    lake = ByHand(table("a", "1m", "x"))

    def die(start: Start) -> Finished:
        raise ValueError("unheard of")

    seen = Seen()
    Loop(lake.machine, die, lambda: T0, seen).once()
    assert seen.over == [("a", Ending.FAILED)]
    assert lake.view("a").errors == 1


@pytest.mark.parametrize("once", [True, False])
def test_it_ends_at_once_when_what_all_refreshes_need_is_lost(once: bool) -> None:
    """Others that run then end in the same way, and nothing is counted against any table."""
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "x"), table("c", "1m", "a"))
    gone, seen, there = SystemFault("Spark is gone"), Seen(), threading.Barrier(2, timeout=20)

    def lose(start: Start) -> Finished:
        there.wait()
        return Finished(start, Ending.LOST, error=str(gone), fault=gone)

    loop = Loop(lake.machine, lose, lambda: T0, seen)
    began = monotonic()
    loop.once() if once else loop.forever()
    assert monotonic() - began < 10
    assert loop.lost is gone
    assert not loop.is_hanging
    assert sorted(seen.over) == [("a", Ending.LOST), ("b", Ending.LOST)]
    assert seen.begun == ["a", "b"]
    assert [lake.view(name).errors for name in "abc"] == [0, 0, 0]
    assert lake.ears.heard == []


def test_trouble_beside_the_refreshes_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """A table dropped elsewhere, or a view that cannot be made, are no reason to end."""
    lake = ByHand(table("a", "1m", "x"))
    stop, seen = threading.Event(), Seen()
    troubles = iter([NotFound("dropped meanwhile"), NotFound("dropped meanwhile")])
    decide = lake.machine.decide

    def failing(now: float) -> list[Start]:
        if (error := next(troubles, None)) is not None:
            raise error
        return decide(now)

    def keep() -> None:
        raise ValueError("no such view")

    lake.machine = _With(lake.machine, failing)  # type: ignore[assignment]
    seen.ended = lambda event: stop.set()  # type: ignore[method-assign]
    loop = make(lake, Worker(lake), onlooker=seen, stop=stop, keep_house=keep)
    loop.machine.limits = Limits(interval=0.01)
    loop.forever()
    assert seen.begun == ["a"]
    told = [record.message for record in caplog.records]
    assert told.count("the scheduler could not look for work: dropped meanwhile") == 1
    assert told.count("the scheduler could not look after the lake: no such view") == 1


def test_an_error_of_the_scheduler_itself_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged once, with where it came from, and everything is read again."""
    lake = ByHand(table("a", "1m", "x"))
    stop, seen = threading.Event(), Seen()
    wrong = iter([KeyError("a"), KeyError("a")])
    decide, read = lake.machine.decide, [0]
    tables = lake.book.tables

    def failing(now: float) -> list[Start]:
        starts = decide(now)
        if (error := next(wrong, None)) is not None:
            lake.machine.passes.under_way.clear()
            raise error
        return starts

    def counting() -> dict[str, TableView]:
        read[0] += 1
        return tables()

    lake.book.tables = counting  # type: ignore[method-assign]
    lake.machine = _With(lake.machine, failing)  # type: ignore[assignment]
    seen.ended = lambda event: stop.set()  # type: ignore[method-assign]
    loop = make(lake, Worker(lake), onlooker=seen, stop=stop)
    loop.machine.limits = Limits(interval=0.01)
    loop.forever()
    assert (seen.begun, read) == (["a"], [3])
    (told,) = caplog.records
    assert told.message == "the scheduler could not look for work: 'a'"
    assert told.exc_info is not None
    assert told.exc_info[0] is KeyError


def test_an_end_that_cannot_be_noted_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    lake = ByHand(table("a", "1m", "x"))
    stop, seen = threading.Event(), Seen()

    def finished(now: float, event: Finished) -> None:
        stop.set()
        raise KeyError("b")

    machine = _With(lake.machine, lake.machine.decide)
    machine.finished = finished  # type: ignore[attr-defined]
    lake.machine = machine  # type: ignore[assignment]
    make(lake, Worker(lake), onlooker=seen, stop=stop).forever()
    assert seen.over == [("a", Ending.DONE)]
    assert [r.message for r in caplog.records] == ["the end of a refresh could not be noted: 'b'"]


def test_who_looks_on_and_stumbles_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "x"))
    stop, over = threading.Event(), []

    class Stumbling(Seen):
        def looked(self, now: float, machine: Machine) -> None:
            raise ValueError("no terminal")

        def started(self, start: Start) -> None:
            raise ValueError("no terminal")

        def ended(self, event: Finished) -> None:
            over.append(str(event.start.unit))
            if len(over) == 2:
                stop.set()
            raise ValueError("no terminal")

    make(lake, Worker(lake), onlooker=Stumbling(), stop=stop).forever()
    assert sorted(over) == ["a", "b"]
    assert [record.message for record in caplog.records] == [
        "what goes on could not be shown: no terminal"
    ]


class _With:
    """A machine that decides in another way."""

    def __init__(self, machine: Machine, decide: Callable[[float], list[Start]]) -> None:
        self.machine, self.decide = machine, decide

    def __getattr__(self, name: str) -> object:
        return getattr(self.machine, name)


def test_the_clock_follows_the_wall_but_never_goes_back() -> None:
    wall, ticks = [100.0], [0.0]
    clock = SteadyClock(lambda: wall[0], lambda: ticks[0])
    assert clock() == 100.0
    wall[0], ticks[0] = 110.0, 10.0
    assert clock() == 110.0
    wall[0], ticks[0] = 60.0, 20.0
    assert clock() == 115.0, "set back: half speed"
    wall[0], ticks[0] = 160.0, 120.0
    assert clock() == 165.0
    wall[0], ticks[0] = 300.0, 260.0
    assert clock() == 300.0, "the wall has caught up"


def test_who_reads_a_table_does_not_wait_until_it_is_tidied() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "a"))
    b_is_done = threading.Event()
    tidied: list[tuple[str, bool]] = []

    def tidy(event: Finished) -> None:
        unit = str(event.start.unit)
        if unit == "a":
            tidied.append((unit, b_is_done.wait(20)))
        else:
            b_is_done.set()

    results = make(lake, Worker(lake), tidy=tidy).once()
    assert [result.name for result in results] == ["a", "b"]
    assert tidied == [("a", True)], "and once comes back after that"


def test_what_is_being_tidied_is_not_refreshed_meanwhile() -> None:
    lake = ByHand(table("a", "1s", "x"))
    (start,) = lake.machine.decide(T0)
    at_work: list[str] = []
    is_over = threading.Semaphore(0)

    def execute(start: Start) -> Finished:
        at_work.append("refresh")
        return Finished(start, Ending.DONE)

    def tidy(event: Finished) -> None:
        at_work.append("tidy")
        threading.Event().wait(0.1)
        at_work.append("tidied")
        is_over.release()

    loop = Loop(lake.machine, execute, lambda: T0, tidy=tidy)
    for _ in range(2):
        loop._orders.put(start)
        loop._hire()
    assert all(is_over.acquire(timeout=20) for _ in range(2))
    assert at_work == ["refresh", "tidy", "tidied"] * 2
    loop._end()


def test_an_error_while_tidying_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "a"))

    def tidy(event: Finished) -> None:
        raise SystemFault("no disk")

    assert len(make(lake, Worker(lake), tidy=tidy).once()) == 2
    assert "not tidied: no disk" in caplog.text
