"""Leases: exclusive, taken over from the dead, fenced."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from runnel.catalog import Leases, Owner, Writer, is_alive
from runnel.errors import Busy


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


ELSEWHERE = Owner("elsewhere", 77, 5.0, "e")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_leases(catalog: Writer, clock: Clock) -> Callable[..., Leases]:
    def make(owner: Owner | None = None) -> Leases:
        return Leases(catalog.engine, owner or Owner.current(), clock=clock, pause=clock.pass_by)

    return make


Make = Callable[..., Leases]


@pytest.fixture
def held(catalog: Writer) -> Iterator[ExitStack]:
    """Leases held until the test ends; a context that nobody keeps would be released at once."""
    with ExitStack() as stack:
        yield stack


def dead_owner() -> Owner:
    """A process of this host that has ended, with the start time it had."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        from runnel.catalog.owner import started_at

        started = started_at(process.pid)
    assert started is not None
    return dataclasses.replace(Owner.current(), pid=process.pid, started=started, instance="dead")


def test_second_holder_is_told_who_is_first(make_leases: Make):
    first = make_leases(ELSEWHERE)
    with first.hold("sales"), pytest.raises(Busy) as caught, make_leases().hold("sales"):
        pass
    assert "sales is busy" in str(caught.value)
    assert "process 77 on elsewhere since 1970-01-12 13:46:40 UTC" in str(caught.value)
    with make_leases().hold("sales"):
        pass


def test_other_resources_are_free(make_leases: Make):
    with make_leases(ELSEWHERE).hold("a"), make_leases().hold("b"):
        pass


def test_threads_of_one_process_exclude_each_other(make_leases: Make):
    leases = make_leases()
    with leases.hold("sales"), pytest.raises(Busy), leases.hold("sales"):
        pass


def test_many_threads_never_hold_together(catalog: Writer):
    leases = Leases(catalog.engine, Owner.current())
    inside, most, taken = 0, 0, 0
    guard = threading.Lock()

    def work() -> None:
        nonlocal inside, most, taken
        for _ in range(5):
            with leases.hold("sales", wait=60):
                with guard:
                    inside += 1
                    most = max(most, inside)
                    taken += 1
                with guard:
                    inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, taken) == (1, 20)


def test_expired_lease_is_taken_over_and_fenced(make_leases: Make, clock: Clock):
    with make_leases(ELSEWHERE).hold("sales") as old:
        clock.pass_by(29)
        with pytest.raises(Busy), make_leases().hold("sales"):
            pass
        clock.pass_by(2)
        with make_leases().hold("sales") as new:
            assert new.fencing > old.fencing
            new.check()
            assert not old.renew()
            with pytest.raises(Busy, match="lease on sales was lost"):
                old.check()
    with make_leases().hold("sales") as third:
        assert third.fencing > new.fencing


def test_renewed_lease_stays(make_leases: Make, clock: Clock):
    with make_leases(ELSEWHERE).hold("sales") as lease:
        for _ in range(5):
            clock.pass_by(20)
            assert lease.renew()
        with pytest.raises(Busy), make_leases().hold("sales"):
            pass


def test_lease_renews_by_itself(catalog: Writer):
    leases = Leases(catalog.engine, ELSEWHERE, ttl=0.06)
    renewed = threading.Event()
    original = leases.renew

    def renew(lease: object) -> bool:
        result = original(lease)  # type: ignore[arg-type]
        renewed.set()
        return result

    leases.renew = renew  # type: ignore[method-assign]
    with leases.hold("sales") as lease:
        assert renewed.wait(20)
        lease.check()


def test_lease_of_a_dead_process_is_taken_at_once(make_leases: Make, held: ExitStack):
    owner = dead_owner()
    assert not is_alive(owner)
    lease = held.enter_context(make_leases(owner).hold("sales"))
    with make_leases().hold("sales") as mine:
        assert mine.fencing == lease.fencing + 1


def test_lease_of_a_reused_process_number_is_taken_at_once(make_leases: Make, held: ExitStack):
    earlier = dataclasses.replace(Owner.current(), started=1.0)
    lease = held.enter_context(make_leases(earlier).hold("sales"))
    with make_leases().hold("sales") as mine:
        assert mine.fencing == lease.fencing + 1


def test_release_of_a_lost_lease_does_not_free_it(make_leases: Make, clock: Clock):
    first = make_leases(ELSEWHERE).hold("sales")
    first.__enter__()
    clock.pass_by(31)
    with make_leases().hold("sales") as second:
        first.__exit__(None, None, None)
        second.check()


def test_waiting_ends_when_the_lease_expires(make_leases: Make, clock: Clock, held: ExitStack):
    held.enter_context(make_leases(ELSEWHERE).hold("sales"))
    before = clock.now
    with pytest.raises(Busy), make_leases().hold("sales", wait=5):
        pass
    assert 5 <= clock.now - before < 6
    with make_leases().hold("sales", wait=60):
        assert clock.now - before == pytest.approx(30, abs=0.2)


def test_lease_is_released_when_the_block_fails(make_leases: Make):
    with pytest.raises(ValueError, match="x"), make_leases(ELSEWHERE).hold("sales"):
        raise ValueError("x")
    with make_leases().hold("sales"):
        pass


def test_owner_elsewhere_lives_as_long_as_its_leases(make_leases: Make, clock: Clock):
    leases = make_leases()
    assert not leases.is_alive(ELSEWHERE)
    with make_leases(ELSEWHERE).hold("sales"):
        assert leases.is_alive(ELSEWHERE)
        clock.pass_by(31)
        assert not leases.is_alive(ELSEWHERE)
    assert leases.is_alive(leases.owner)


@pytest.mark.parametrize("ahead", [-5.0, 5.0], ids=["behind", "ahead"])
def test_clocks_that_differ_by_seconds_do_no_harm(catalog: Writer, clock: Clock, ahead: float):
    """Who lives keeps its lease, and who died loses it; a little sooner or later, by the clocks."""
    there = Leases(catalog.engine, ELSEWHERE, clock=lambda: clock.now + ahead)
    here = Leases(catalog.engine, Owner.current(), clock=clock, pause=clock.pass_by)
    with there.hold("sales") as lease:
        for _ in range(3):
            clock.pass_by(here.ttl / 3)
            with pytest.raises(Busy), here.hold("sales"):
                pass
            assert here.is_alive(ELSEWHERE)
            assert lease.renew(), "as it does by itself this often"
        died = clock.now
        with here.hold("sales", wait=60):
            assert clock.now - died == pytest.approx(here.ttl + ahead, abs=0.2)
            assert not here.is_alive(ELSEWHERE)
            with pytest.raises(Busy, match="was lost"):
                lease.check()


def test_owner_survives_text():
    owner = Owner.current()
    parsed = Owner.parse(str(owner))
    assert (parsed.host, parsed.pid, parsed.instance) == (owner.host, os.getpid(), owner.instance)
    assert is_alive(parsed)


def test_killed_process_that_was_not_reaped_is_dead():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    from runnel.catalog.owner import started_at

    owner = dataclasses.replace(
        Owner.current(), pid=process.pid, started=started_at(process.pid) or 0
    )
    assert is_alive(owner)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(owner)
    process.communicate()
