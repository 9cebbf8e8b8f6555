"""A daemon killed with the Spark that it started, or that alone: nothing lost, nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import sleep

import psutil
import pytest
from bench.soak.daemon import Daemon

from crash.daemons import append, at_work, attempts, base, check_nothing_twice, daemon
from kit.connect_server import ConnectServer
from runnel.api import Lake
from runnel.model.refresh import Outcome, RefreshAction
from runnel.refresh.lifecycle import orphans
from schedule.gates import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

_TABLES = {
    "sales": "SELECT cust, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY cust",
    "big": "SELECT cust, total FROM sales WHERE total > 5",
    "sums": "SELECT cust, SUM(amount) AS total FROM orders GROUP BY cust",
    "counts": "SELECT cust, COUNT(*) AS n FROM orders GROUP BY cust",
    "both": "SELECT s.cust, s.total, c.n FROM sums s JOIN counts c ON s.cust = c.cust",
}
_CYCLE = {
    "even": "SELECT DISTINCT o.id, r.cust FROM orders o JOIN odd r ON o.cust = r.id",
    "odd": "SELECT id, cust FROM orders UNION SELECT e.id, o.cust FROM even e JOIN orders o ON e.cust = o.id",
}
_NAMES = [*_TABLES, *_CYCLE]
# How far into a refresh it dies: at its beginning, while Spark computes, about when it commits.
_PAUSES = (0.0, 0.3, 0.9)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """In this process, through a server: the daemons have nothing of it."""
    with (
        ConnectServer(tmp_path) as server,
        server.lake(tmp_path / "lake", allow_circular=True) as made,
    ):
        yield made


def test_killed_with_its_own_spark(lake: Lake, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    path = base(folder)
    _make(lake)
    number = 100
    for pause in _PAUSES:
        running = daemon(None, folder, RUNNEL_ALLOW_CIRCULAR="true")
        number = _kill_at_work(lake, path, running, number, pause)
    last = daemon(None, folder, RUNNEL_ALLOW_CIRCULAR="true")
    number = _catch_up(lake, path, last, number)
    code, seconds = last.stop()
    assert (code, seconds < 10) == (0, True)
    ended = [a.outcome for a in attempts(lake, _NAMES)]
    assert Outcome.RUNNING not in ended
    assert Outcome.INTERRUPTED in ended, "they did die at work"
    check_nothing_twice(lake, _NAMES)
    for name in _NAMES:
        assert lake.verify(name).ok
    assert not orphans(lake._workspace)
    append(path, (number, number - 1, 7))
    lake.refresh()
    for name in _NAMES:
        assert lake.history(name)[0].action is RefreshAction.DIFFERENTIAL, str(
            lake.history(name)[0]
        )
        assert lake.verify(name).ok


def test_its_spark_killed_alone(lake: Lake, tmp_path: Path) -> None:
    """As the OOM killer does it: the daemon begins anew by itself, and no table has failed."""
    folder = tmp_path / "lake"
    path = base(folder)
    _make(lake)
    running = daemon(None, folder, RUNNEL_ALLOW_CIRCULAR="true")
    number = 100
    append(path, (number, number - 1, 7))
    wait_until(lambda: running.has_worked, "it has worked", 180)
    for pause in _PAUSES[:2]:
        number = _kill_spark_at_work(lake, path, running, number + 1, pause)
        number = _catch_up(lake, path, running, number)
    children = psutil.Process(running.process.pid).children()
    assert [p for p in children if p.status() == psutil.STATUS_ZOMBIE] == [], "nobody buried it"
    code, seconds = running.stop()
    assert (code, seconds < 10) == (0, True)
    log = (tmp_path / "daemon.log").read_text()
    assert log.count("the Spark process has ended; starting again with a new one") == 2, log
    ended = [a.outcome for a in attempts(lake, _NAMES)]
    assert Outcome.RUNNING not in ended
    assert Outcome.INTERRUPTED in ended, "it did die at work"
    check_nothing_twice(lake, _NAMES)
    assert {a.kind for a in lake.alerts(limit=1000)}.isdisjoint({"refresh_failed", "outage"})
    for name in _NAMES:
        assert lake.verify(name).ok


def _make(lake: Lake) -> None:
    for name, query in _TABLES.items():
        lake.create_stream_table(
            name, query, schedule="2s", refresh_mode="DIFFERENTIAL",
            diamond_consistency="atomic" if name == "both" else None,
        )  # fmt: skip
    lake.create_stream_tables(_CYCLE, schedule="2s", refresh_mode="DIFFERENTIAL")


def _kill_at_work(lake: Lake, path: str, running: Daemon, number: int, pause: float) -> int:
    """kill -9 for the whole process group in the middle of a refresh; the next number."""
    pid = running.process.pid
    append(path, (number, number - 1, 7))
    wait_until(lambda: running.has_worked, "it has worked", 180)
    append(path, (number + 1, number, 7))
    wait_until(lambda: at_work(lake, _NAMES, pid), "it is at work")
    sleep(pause)
    family = psutil.Process(pid).children(recursive=True)
    assert any("java" in process.name() for process in family), "it has a Spark of its own"
    running.kill(with_spark=True)
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive, "its Spark outlived it"
    return number + 2


def _kill_spark_at_work(
    lake: Lake, path: str, running: Daemon, number: int, pause: float
) -> int:  # fmt: skip
    """kill -9 for the JVM alone in the middle of a refresh; the next number."""
    append(path, (number, number - 1, 7))
    wait_until(lambda: at_work(lake, _NAMES, running.process.pid), "it is at work")
    sleep(pause)
    machines = [process for process in _family(running) if "java" in process.name()]
    assert machines, "it has a Spark of its own"
    for process in machines:
        process.kill()
    return number + 1


def _family(running: Daemon) -> list[psutil.Process]:
    return list(psutil.Process(running.process.pid).children(recursive=True))


def _catch_up(lake: Lake, path: str, running: Daemon, number: int) -> int:
    """The next daemon does what was left, and then what is new, by differences alone."""
    before = {name: lake.status(name).epoch for name in _NAMES}
    append(path, (number, number - 1, 7), (number + 1, number, 7))
    wait_until(
        lambda: all(lake.status(name).epoch > before[name] for name in _NAMES), "all go on", 180,
    )  # fmt: skip
    done = [a for a in attempts(lake, _NAMES) if str(running.process.pid) in a.owner.split("/")]
    work = {a.action for a in done} - {RefreshAction.NO_DATA, RefreshAction.SKIP, None}
    assert work == {RefreshAction.DIFFERENTIAL}
    return number + 2
