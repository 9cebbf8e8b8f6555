"""`runnel run` whose Spark has ended begins anew by itself, but not for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Run
from runnel.api import Lake
from runnel.catalog import open_catalog
from runnel.cli import again
from runnel.cli.again import MOST, RESTARTS, WITHIN_SECONDS, start_again
from runnel.errors import SparkEnded

GONE = SparkEnded("the Spark process has ended", hint="start this program again")
_PROGRAM = """
import os, sys
from runnel.cli.again import RESTARTS, start_again
from runnel.errors import SparkEnded
print(os.getpid(), *sys.argv[1:], len(os.environ.get(RESTARTS, "").split()))
start_again(SparkEnded("it is gone"))
"""


class Begun(Exception):
    """Instead of another program in this process."""


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []

    def execve(path: str, command: list[str], environment: dict[str, str]) -> None:
        assert (path, command[1:]) == (sys.executable, sys.orig_argv[1:])
        found.append(environment)
        raise Begun

    monkeypatch.setattr(again.os, "execve", execve)
    monkeypatch.delenv(RESTARTS, raising=False)
    return found


def test_the_same_command_is_run_again_in_the_same_process() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    environment.pop(RESTARTS, None)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "run", "a b"],
        check=False, capture_output=True, text=True, env=environment, timeout=120,
    )  # fmt: skip
    process, *_ = done.stdout.split()
    assert done.stdout.splitlines() == [f"{process} run a b {times}" for times in range(MOST + 1)]
    assert done.stderr.count("it is gone; starting again with a new one") == MOST
    assert done.returncode == 1
    assert "it is gone 4 times within 10 minutes" in done.stderr


def test_what_was_long_ago_does_not_count(
    begun: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(0, 5000, 250):
        with pytest.raises(Begun):
            start_again(GONE, float(at))
        monkeypatch.setenv(RESTARTS, begun[-1][RESTARTS])
    assert len(begun[-1][RESTARTS].split()) <= WITHIN_SECONDS / 250 + 1
    for at in (5000.0, 5001.0):
        monkeypatch.setenv(RESTARTS, f"{begun[-1][RESTARTS]} {at}")
    with pytest.raises(SparkEnded, match="times within 10 minutes"):
        start_again(GONE, 5002.0)


def test_what_does_not_belong_there_is_no_hindrance(
    begun: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RESTARTS, "yes")
    with pytest.raises(Begun):
        start_again(GONE, 100.0)
    assert begun[0][RESTARTS] == "100"


@pytest.fixture
def lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake whose Spark ends whenever it runs."""
    open_catalog(f"sqlite:///{folder}/_runnel/catalog.db").close()

    def run(lake: Lake, **options: Any) -> None:
        raise GONE

    monkeypatch.setattr(Lake, "run", run)
    return folder


def test_run_begins_anew(run: Run, lost: Path, begun: list[dict[str, str]]) -> None:
    with pytest.raises(Begun):
        run("run", "--lake", lost)
    assert len(begun) == 1


def test_run_gives_up_in_the_end(
    run: Run, lost: Path, begun: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(again, "MOST", 0)
    done = run("run", "--lake", lost)
    assert (done.code, begun) == (1, [])
    assert "error: the Spark process has ended 1 times within 10 minutes" in done.err
    assert "hint:" in done.err


def test_once_is_not_begun_anew(run: Run, lost: Path, begun: list[dict[str, str]]) -> None:
    done = run("run", "--once", "--lake", lost)
    assert (done.code, begun) == (1, [])
    assert "error: the Spark process has ended\n" in done.err
