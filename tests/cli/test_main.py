"""Where the lake is, what is wrong usage, and which exit code says what."""

from __future__ import annotations

from pathlib import Path

import pytest

import runnel
from cli.conftest import Run
from runnel.catalog import Leases, Owner, Writer
from runnel.errors import SourceError
from runnel.refresh.attempt import lease_of

COMMANDS = (
    "demo sql create alter drop suspend resume refresh verify compact explain status history stats "
    "alerts graph doctor"
).split()


def test_version_and_help(run: Run) -> None:
    assert run("--version").out == f"runnel {runnel.__version__}\n"
    out = run("--help").out
    assert all(command in out for command in COMMANDS)
    assert "Exit codes" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(run: Run, command: str) -> None:
    assert run(command, "--help").code == 0


def test_the_lake_is_named_before_or_after_the_command(
    run: Run, catalog: Writer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--lake", folder, "status").code == 0
    assert run("status", "--lake", folder).code == 0
    assert run("--lake", "/wrong", "status", "--lake", folder).code == 0
    monkeypatch.setenv("RUNNEL_LAKE", str(folder))
    assert run("status").code == 0
    assert run("--lake", "/wrong", "status").code == 1
    monkeypatch.delenv("RUNNEL_LAKE")
    monkeypatch.chdir(folder)
    assert run("status").code == 0


def test_the_catalog_may_be_elsewhere(
    run: Run, catalog: Writer, folder: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{folder}/_runnel/catalog.db"
    done = run("--catalog", url, "status", "--lake", tmp_path)
    assert "sales" in done.out


def test_no_lake_here_says_what_to_do(run: Run, tmp_path: Path) -> None:
    for command in (
        ["status"],
        ["refresh"],
        ["sql", "-e", "SELECT 1"],
        ["create", "a", "SELECT 1"],
    ):
        done = run(*command)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("error: this folder is not a lake\ndetail: ")
        assert "--lake PATH" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_lake_is_not_made_one(run: Run, tmp_path: Path) -> None:
    for command in (
        ["refresh"],
        ["drop", "a"],
        ["verify"],
        ["alter", "a", "--suspend"],
        ["status"],
    ):
        assert "is not a lake" in run(*command, "--lake", tmp_path).err
        assert "there is no folder" in run(*command, "--lake", tmp_path / "new").err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["status", "--nonsense"],
        ["create", "a"],
        ["create", "a", "SELECT 1", "--file", "x.sql"],
        ["alter", "a"],
        ["alter", "a", "--suspend", "--resume"],
        ["alter", "a", "--schedule", "1m", "--no-schedule"],
        ["drop"],
        ["explain"],
        ["explain", "a", "--query", "SELECT 1"],
        ["sql", "-e", "SELECT 1", "-f", "x.sql"],
        ["history", "--limit", "0"],
    ],
)
def test_wrong_usage(run: Run, catalog: Writer, folder: Path, arguments: list[str]) -> None:
    done = run("--lake", folder, *arguments)
    assert (done.code, done.out) == (2, "")
    assert "Usage: " in done.err


def test_a_mistyped_command_is_suggested(run: Run) -> None:
    assert "Did you mean 'history'?" in run("histroy").err


def test_busy_is_4(
    run: Run, catalog: Writer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNNEL_BUSY_WAIT_SECONDS", "0")
    table = catalog.find("default.sales")
    assert table is not None
    with Leases(catalog.engine, Owner.current()).hold(lease_of(table.id)):
        done = run("compact", "sales", "--lake", folder)
    assert done.code == 4
    assert done.err.startswith("error: ")
    assert "busy" in done.err
    assert "hint: try again" in done.err


def test_interrupted_is_130(
    run: Run, catalog: Writer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    closed: list[object] = []

    def close(lake: object) -> None:
        closed.append(lake)

    monkeypatch.setattr("runnel.api.Lake.refresh", interrupted)
    monkeypatch.setattr("runnel.api.Lake.close", close)
    # The JVM of the shared session is a child of this process, too.
    monkeypatch.setattr("runnel.cli.place._end", lambda new: closed.append("children"))
    done = run("refresh", "--lake", folder)
    assert (done.code, done.out, done.err) == (130, "", "interrupted\n")
    assert len(closed) == 2
    assert closed[1] == "children"


def test_an_error_is_told_without_traceback(
    run: Run, catalog: Writer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise SourceError("orders is gone", detail="first\nsecond", hint="restore it")

    monkeypatch.setattr("runnel.api.Lake.refresh", failing)
    done = run("refresh", "--lake", folder)
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        "error: orders is gone", "detail: first", "  second", "hint: restore it",
    ]  # fmt: skip


def test_a_bad_setting_is_told(
    run: Run, catalog: Writer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNNEL_LEASE_SECONDS", "soon")
    done = run("refresh", "--lake", folder)
    assert done.code == 1
    assert "lease_seconds = 'soon' (environment) is not valid" in done.err
