"""`runnel run` without Spark: what is due, what fails, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic

from cli.conftest import Run
from cli.screen import interrupt, started
from runnel.catalog import Writer, open_catalog


def test_once_with_nothing_due(run: Run, folder: Path) -> None:
    open_catalog(f"sqlite:///{folder}/_runnel/catalog.db").close()
    done = run("run", "--once", "--lake", folder)
    assert (done.code, done.out.strip()) == (0, "nothing was due")
    assert run("run", "--once", "--json", "--lake", folder).json == []


def test_once_tells_what_failed_and_records_it(run: Run, folder: Path, catalog: Writer) -> None:
    done = run("run", "--once", "--lake", folder)
    assert done.code == 1
    assert done.out.strip() == "nothing was refreshed"
    assert "sales" in done.err
    last = catalog.history("default.sales")[0]
    assert (last.outcome.value, last.error_code) == ("FAILED", "SOURCE_ERROR")
    table = catalog.find("default.sales")
    assert table is not None
    assert (table.consecutive_errors, table.retry_at is not None) == (1, True)
    again = run("run", "--once", "--lake", folder)
    assert (again.code, again.out.strip()) == (0, "nothing was due"), "it is left alone for a while"


def test_a_scheduler_that_is_switched_off_says_so(run: Run, folder: Path, catalog: Writer) -> None:
    (folder / "runnel.toml").write_text("enabled = false")
    done = run("run", "--lake", folder)
    assert done.code == 1
    assert "the scheduler is switched off" in done.err
    assert "enabled = false (runnel.toml)" in done.err


def test_sigterm_ends_it_cleanly(folder: Path) -> None:
    open_catalog(f"sqlite:///{folder}/_runnel/catalog.db").close()
    command = [sys.executable, "-m", "runnel.cli.main", "run", "--lake", str(folder)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("running")
    asked = monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert monotonic() - asked < 10
    assert process.stderr.read().strip() == "stopped"


def test_the_live_view_on_a_terminal(folder: Path, catalog: Writer, tmp_path: Path) -> None:
    with started(tmp_path, "run", lake=folder) as screen:
        seen = screen.wait_for("failed in a row")
        assert "lag" in seen
        assert "target" in seen
        assert "sales" in seen
        assert "SUSPENDED" in seen + screen.wait_for("ended (UTC)")
        interrupt(screen)
        screen.wait_for("stopped")
        assert screen.process.wait(60) == 0
