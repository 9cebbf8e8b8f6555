"""A Connect server that goes away and comes back: a daemon goes on with the new one by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from crash.daemons import append, attempts, base, daemon
from kit.connect_server import ConnectServer
from runnel.model.refresh import Outcome, RefreshAction, TableState
from schedule.gates import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

_TABLES = {
    "sales": "SELECT cust, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY cust",
    "big": "SELECT cust, total FROM sales WHERE total > 5",
}


def test_a_daemon_goes_on_with_the_new_server(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    path = base(folder)
    server = ConnectServer(tmp_path)
    with server:
        with server.lake(folder) as lake:
            for name, query in _TABLES.items():
                lake.create_stream_table(name, query, schedule="2s", refresh_mode="DIFFERENTIAL")
        running = daemon(server, folder)
        append(path, (100, 99, 7))
        wait_until(lambda: running.has_worked, "it has worked", 180)
    with server, server.lake(folder) as lake:
        before = {name: lake.status(name).epoch for name in _TABLES}
        append(path, (101, 1, 7))
        wait_until(
            lambda: all(lake.status(name).epoch > before[name] for name in _TABLES),
            "all go on",
            300,
        )
        assert running.stop()[0] == 0
        assert "the Spark session has ended" in (tmp_path / "daemon.log").read_text()
        for name in _TABLES:
            assert lake.status(name).state is TableState.ACTIVE
            assert lake.verify(name).ok
        done = [a for a in attempts(lake, _TABLES) if a.outcome is Outcome.OK]
        actions = {a.action for a in done} - {RefreshAction.NO_DATA, RefreshAction.SKIP}
        assert actions <= {RefreshAction.FULL, RefreshAction.DIFFERENTIAL}
