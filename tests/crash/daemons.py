"""Daemons for the crash tests: a base table for them to follow, and what the catalog says they did."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from time import monotonic, sleep

from bench.soak.daemon import Daemon
from deltalake import DeltaTable, write_deltalake

from kit.connect_server import ConnectServer
from kit.lake_backend import arrow_rows
from runnel.api import Lake
from runnel.catalog import Attempt, Owner
from runnel.model.refresh import Outcome, RefreshAction

_STARTED: list[Daemon] = []
_COLUMNS = {"id": "bigint", "cust": "int", "amount": "int"}
_ELSEWHERE = """
import socket, time
clock = time.time
time.time = lambda: clock() + {ahead}
socket.gethostname = lambda: "elsewhere"
"""


def base(folder: Path, count: int = 3, name: str = "orders") -> str:
    """A table; lakes on one server need different names for theirs."""
    path = str(folder / "warehouse" / name)
    write_deltalake(path, arrow_rows(_COLUMNS, [(i, i % 7, i) for i in range(count)]))
    return path


def append(path: str, *rows: tuple[int, int, int]) -> None:
    write_deltalake(DeltaTable(path), arrow_rows(_COLUMNS, rows), mode="append")


def daemon(server: ConnectServer | None, folder: Path, **environment: str) -> Daemon:
    """`runnel run` on a server, or with a Spark of its own."""
    master = {"RUNNEL_MASTER": server.url} if server else {}
    made = Daemon(folder, folder.parent / "daemon.log", 2, {**master, **environment})
    made.start()
    _STARTED.append(made)
    return made


def end_all() -> None:
    """Kill what a test that failed has left."""
    while _STARTED:
        if (left := _STARTED.pop()).ended_with is None:
            left.kill(with_spark=True)


def elsewhere(folder: Path, ahead: float) -> dict[str, str]:
    """What makes a process one of another machine, whose clock is ahead of this one's."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_ELSEWHERE.format(ahead=ahead))
    return {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}


def attempts(lake: Lake, names: Iterable[str]) -> list[Attempt]:
    catalog = lake._workspace.catalog
    return [attempt for name in names for attempt in catalog.history(f"default.{name}", 1000)]


def at_work(lake: Lake, names: list[str], pid: int | None = None) -> list[Attempt]:
    """What is being refreshed now, by one process or by any: asked often, so in one question."""
    return [
        a
        for a in lake._workspace.catalog.history(None, 50)
        if a.outcome is Outcome.RUNNING
        and a.table_name in names
        and pid in (None, Owner.parse(a.owner).pid)
    ]


def workers(lake: Lake, names: list[str]) -> set[int]:
    """The processes that have refreshed something."""
    return {
        Owner.parse(a.owner).pid
        for a in attempts(lake, names)
        if a.outcome is Outcome.OK and a.action is RefreshAction.DIFFERENTIAL
    }


def until_all_worked(lake: Lake, path: str, names: list[str], wanted: set[int]) -> int:
    """Commit to the base until every process has refreshed something; the next number."""
    number = 100
    deadline = monotonic() + 120
    while not wanted <= workers(lake, names):
        assert monotonic() < deadline, "one of them did nothing"
        append(path, (number, number % 7, 1))
        number += 1
        sleep(0.5)
    return number


def check_nothing_twice(lake: Lake, names: list[str]) -> None:
    """No epoch was made twice, and no table was worked on by two at one time."""
    for name in names:
        found = attempts(lake, [name])
        assert {a.outcome for a in found} <= {Outcome.OK, Outcome.INTERRUPTED}, found
        work = [a for a in found if a.action is RefreshAction.DIFFERENTIAL]
        epochs = [a.epoch for a in work]
        assert len(epochs) == len(set(epochs)), f"{name}: {epochs}"
        spans = sorted((a.started_at, a.finished_at) for a in work if a.finished_at is not None)
        for (_, end), (begin, _) in pairwise(spans):
            assert begin >= end, f"{name} was refreshed twice at once"
