"""`runnel run` on two machines with one catalog on PostgreSQL: shared work, and one of them dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from time import monotonic, sleep, time

import pytest
from bench.soak.daemon import Daemon

from crash.daemons import (
    append,
    at_work,
    attempts,
    base,
    check_nothing_twice,
    daemon,
    elsewhere,
    until_all_worked,
)
from kit.connect_server import ConnectServer
from runnel.api import Lake
from runnel.catalog import Owner
from runnel.catalog.lease import Holding
from schedule.gates import wait_until

pytestmark = [
    pytest.mark.spark, pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(600)
]  # fmt: skip

_LEASE = 6.0
_AHEAD = 2.0
# How long a busy table is left alone at most, and a refresh on a machine that has other things to do.
_SLACK = 5.0 + 10.0
_NAMES = ["t0", "t1", "t2", "t3", "below"]


def test_work_is_shared_and_taken_over_within_the_lease(tmp_path: Path, postgres_url: str) -> None:
    folder = tmp_path / "lake"
    path = base(folder)
    common = {"RUNNEL_CATALOG": postgres_url, "RUNNEL_LEASE_SECONDS": str(_LEASE)}
    with ConnectServer(tmp_path) as server, server.lake(folder, catalog=postgres_url) as lake:
        _make(lake)
        doomed = daemon(server, folder, **common, **elsewhere(tmp_path / "elsewhere", _AHEAD))
        other = daemon(server, folder, **common)
        both = {doomed.process.pid, other.process.pid}
        number = until_all_worked(lake, path, _NAMES, both)
        owners = {Owner.parse(a.owner) for a in attempts(lake, _NAMES)}
        assert {o.is_local for o in owners if o.pid in both} == {True, False}
        name, held, number = _stopped_at_work(lake, path, doomed, number)
        doomed.kill(with_spark=True)
        _taken_over(lake, path, name, held, number)
        gone = doomed.process.pid
        wait_until(lambda: not at_work(lake, _NAMES, gone), "it is closed", 30)
        code, seconds = other.stop()
        assert (code, seconds < 10) == (0, True)
        check_nothing_twice(lake, _NAMES)
        _check_contents(lake, path, number + 1)
    assert not (folder / "_runnel" / "catalog.db").exists()


def _make(lake: Lake) -> None:
    for i in range(4):
        query = f"SELECT cust, SUM(amount) AS total FROM orders WHERE id >= {i} GROUP BY cust"
        lake.create_stream_table(f"t{i}", query, schedule="2s", refresh_mode="DIFFERENTIAL")
    query = "SELECT a.cust, a.total, b.total AS other FROM t0 a JOIN t1 b ON a.cust = b.cust"
    lake.create_stream_table("below", query, schedule="2s", refresh_mode="DIFFERENTIAL")


def _stopped_at_work(
    lake: Lake, path: str, doomed: Daemon, number: int
) -> tuple[str, Holding, int]:
    """Hold a process up in the middle of a refresh: the table, its lease, the next number."""
    deadline = monotonic() + 120
    while monotonic() < deadline:
        append(path, (number, number % 7, 1))
        number += 1
        for _ in range(20):
            if at_work(lake, _NAMES, doomed.process.pid):
                os.kill(doomed.process.pid, signal.SIGSTOP)
                if (found := _held_by(lake, doomed.process.pid)) is not None:
                    return *found, number
                os.kill(doomed.process.pid, signal.SIGCONT)
            sleep(0.05)
    raise AssertionError("it was never found at work")


def _held_by(lake: Lake, pid: int) -> tuple[str, Holding] | None:
    """A table that a process refreshes; nothing else may be read from a process that stands still."""
    for attempt in at_work(lake, _NAMES, pid):
        held = lake._workspace.leases.look(f"table:{attempt.table_id}")
        if held is not None and held.owner is not None and held.owner.pid == pid:
            return attempt.table_name, held
    return None


def _taken_over(lake: Lake, path: str, name: str, held: Holding, number: int) -> None:
    """Not before its lease has run out: nobody here can know that it is dead; but then soon."""
    append(path, (number, 1, 1))
    epoch = lake.status(name).epoch
    wait_until(lambda: lake.status(name).epoch > epoch, f"{name} is taken over", 60)
    assert held.expires_at - 0.5 <= time() <= held.expires_at + _SLACK


def _check_contents(lake: Lake, path: str, number: int) -> None:
    """Every table is right, and goes on as if nothing had happened."""
    lake.refresh()
    for name in _NAMES:
        assert lake.verify(name).ok
    append(path, (number, 1, 1), (number + 1, 2, 1))
    lake.refresh()
    for name in _NAMES:
        last = lake.history(name)[0]
        assert str(last.action) == "DIFFERENTIAL", str(last)
        assert lake.verify(name).ok
