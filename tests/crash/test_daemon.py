"""`runnel run` in processes of their own: asked to end, killed, two at once, at random moments."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import psutil
import pytest
from bench.soak.daemon import Daemon
from bench.soak.run import Plan, soak

import runnel
from crash.daemons import append, at_work, base, check_nothing_twice, daemon, until_all_worked
from kit.connect_server import ConnectServer
from runnel.api import Lake
from runnel.model.refresh import Outcome, RefreshAction
from schedule.gates import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_ENDLESS = "SELECT COUNT(*) AS n FROM {0} a, {0} b WHERE sqrt(a.id + b.id) > 3"


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with ConnectServer(tmp_path_factory.mktemp("connect")) as started:
        yield started


def test_two_daemons_share_the_work_and_one_takes_over(
    server: ConnectServer, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    path = base(folder, name="bills")
    names = [f"t{i}" for i in range(4)]
    with server.lake(folder) as lake:
        for i, name in enumerate(names):
            query = f"SELECT cust, SUM(amount) AS total FROM bills WHERE id >= {i} GROUP BY cust"
            lake.create_stream_table(name, query, schedule="2s", refresh_mode="DIFFERENTIAL")
        daemons = [daemon(server, folder) for _ in range(2)]
        number = until_all_worked(lake, path, names, {d.process.pid for d in daemons})
        doomed, other = daemons
        wait_until(lambda: at_work(lake, names, doomed.process.pid), "it is at work")
        doomed.kill(with_spark=True)
        append(path, (number, 1, 1))
        reached = {name: lake.status(name).epoch for name in names}
        wait_until(
            lambda: all(lake.status(n).epoch > reached[n] for n in names), "it is taken over", 30
        )
        wait_until(lambda: not at_work(lake, names, doomed.process.pid), "it is closed", 30)
        code, seconds = other.stop()
        assert (code, seconds < 10) == (0, True)
        check_nothing_twice(lake, names)
        lake.refresh()
        for name in names:
            assert lake.verify(name).ok


@pytest.mark.slow
def test_killed_at_random_moments(own_server: ConnectServer, tmp_path: Path) -> None:
    plan = Plan(
        seconds=40, kill_every=6, kills=3, write_every=0.3, read_every=0.3,
        seed=int(os.environ.get("RUNNEL_SOAK_SEED", "7")), master=own_server.url,
    )  # fmt: skip
    report = soak(tmp_path / "lake", plan)
    assert report.is_right, "\n".join(report.lines())
    assert report.kills == 3
    assert report.refreshes > 20
    assert report.reads.total() > 10


@pytest.mark.slow
def test_killed_with_a_spark_of_its_own(tmp_path: Path) -> None:
    report = soak(tmp_path / "lake", Plan(seconds=240, kill_every=40, seed=3))
    assert report.is_right, "\n".join(report.lines())
    assert report.kills >= 3


def _runs(lake: Lake, name: str) -> bool:
    return any(entry.outcome is Outcome.RUNNING for entry in lake.history(name))


def test_with_nothing_to_do_no_spark_is_started(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    runnel.connect(folder).close()
    running = Daemon(folder, tmp_path / "daemon.log")
    running.start()
    wait_until(lambda: "running" in (tmp_path / "daemon.log").read_text(), "it runs")
    code, seconds = running.stop()
    assert (code, seconds < 10) == (0, True)
    assert not (folder / "_runnel" / "spark.log").exists()


# Last on its server: a cancelled task looks up only now and then, and keeps its core until then.
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("whose", ["own", "server"])
def test_asked_to_end_in_the_middle_of_a_refresh(
    number: signal.Signals, whose: str, own_server: ConnectServer, tmp_path: Path
) -> None:
    """Whether its Spark is that of a server or its own, which then ends with it."""
    folder = tmp_path / "lake"
    base(folder, 200_000, f"many_{number}_{whose}")
    query = _ENDLESS.format(f"many_{number}_{whose}")
    with own_server.lake(folder) as lake:
        lake.create_stream_table("endless", query, schedule="1s", initialize=False)
        table = lake._find("endless")
        running = daemon(own_server if whose == "server" else None, folder)
        wait_until(lambda: _runs(lake, "endless"), (folder.parent / "daemon.log").read_text())
        family = psutil.Process(running.process.pid).children(recursive=True)
        assert any("java" in process.name() for process in family) == (whose == "own")
        # Else it may be planning still, with nothing to cancel.
        sleep(2)
        asked = monotonic()
        running.process.send_signal(number)
        assert running.process.wait(60) == 0
        assert monotonic() - asked < 10
        assert not psutil.wait_procs(family, timeout=10)[1], "its Spark outlived it"
        # It was due again meanwhile, which is noted, too.
        done = [e.outcome for e in lake.history("endless") if e.action is not RefreshAction.SKIP]
        assert done == [Outcome.INTERRUPTED]
        assert lake.status("endless").consecutive_errors == 0
        assert not lake._workspace.leases.is_held(f"table:{table.id}")
