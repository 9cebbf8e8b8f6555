"""The real command in a real terminal: the prompt, Ctrl-C, Ctrl-D; slow, because Spark starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from cli.screen import PATIENCE, interrupt, started

pytestmark = [pytest.mark.slow, pytest.mark.spark]

_SLOW_TABLE = """
CREATE TABLE t (id BIGINT) USING delta;
INSERT INTO t SELECT id FROM range(10000);
CREATE STREAM TABLE slow WITH (initialize = false) AS
SELECT COUNT(*) AS n FROM t a, t b, t c WHERE sqrt(a.id + b.id + c.id) > 3;
"""


def test_a_conversation(tmp_path: Path) -> None:
    with started(tmp_path, "sql") as screen:
        assert "starting Spark" in screen.wait_for("runnel> ")
        screen.type("SELECT 40 +\n 2 AS answer;\n")
        assert "42" in screen.wait_for("(1 row, ")
        screen.wait_for("runnel> ")
        screen.type("SELECT nonsense;\n")
        assert "UNRESOLVED_COLUMN" in screen.wait_for("runnel> ")
        screen.type("SELECT count(*) FROM range(1000000000000) WHERE sqrt(id) > 3;\n")
        screen.wait_for("0:00:02")
        interrupt(screen)
        assert "Traceback" not in screen.wait_for("(cancelled)")
        screen.wait_for("runnel> ")
        screen.type("SELECT 'still here' AS x;\n")
        screen.wait_for("(1 row, ")
        screen.wait_for("runnel> ")
        screen.type("\x04")
        assert screen.process.wait(PATIENCE) == 0
    assert "still here" in (tmp_path / "runnel" / "sql_history").read_text()


@pytest.mark.parametrize("when", ["starting Spark", "SELECT count"])
def test_interrupted_nothing_stays_behind(tmp_path: Path, when: str) -> None:
    statement = "SELECT count(*) FROM range(1000000000000) WHERE sqrt(id) > 3"
    with started(tmp_path, "sql", "-e", statement) as screen:
        screen.wait_for(when)
        screen.wait_for("0:00:02")
        children = psutil.Process(screen.process.pid).children(recursive=True)
        interrupt(screen)
        assert "Traceback" not in screen.wait_for("interrupted")
        assert screen.process.wait(PATIENCE) == 130
        gone, alive = psutil.wait_procs(children, timeout=PATIENCE)
        assert gone
        assert not alive


_PROGRAM = """
import os, signal, sys, threading, time
import runnel

def interrupt_a_job(tracker):
    while not tracker.getActiveJobsIds():
        time.sleep(0.1)
    time.sleep(float(sys.argv[2]))
    os.kill(os.getpid(), signal.SIGINT)

# Many short tasks: a task that has begun is ended only where Spark looks.
conf = {"spark.sql.files.maxPartitionBytes": "4096"}
with runnel.connect(sys.argv[1], spark_conf=conf) as lake:
    lake.sql("CREATE TABLE t (id BIGINT) USING delta")
    lake.sql("INSERT INTO t SELECT /*+ REPARTITION(64) */ id FROM range(2000)")
    lake.create_stream_table("n", "SELECT COUNT(*) AS n FROM t")
    tracker = lake.spark.sparkContext.statusTracker()
    threading.Thread(target=interrupt_a_job, args=[tracker]).start()
    try:
        lake.create_stream_table(
            "slow", "SELECT COUNT(*) AS n FROM t a, t b, t c WHERE sqrt(a.id + b.id + c.id) > 3"
        )
    except KeyboardInterrupt:
        print("interrupted")
    print("running:", tracker.getActiveJobsIds())
    print("tables:", [row.name for row in lake.status()])
    lake.sql("INSERT INTO t VALUES (-1)")
    print("then:", lake.refresh("n").action.value, lake.verify("n").ok)
"""


@pytest.mark.parametrize("seconds", ["0", "2"])
def test_a_program_goes_on_after_ctrl_c(tmp_path: Path, seconds: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path / "lake"), seconds],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "interrupted",
        "running: []",
        "tables: ['n']",
        "then: DIFFERENTIAL True",
    ], done.stderr


def test_an_interrupted_refresh_is_told_and_done_again(tmp_path: Path) -> None:
    with started(tmp_path, "sql", "-e", _SLOW_TABLE) as screen:
        screen.wait_for("CREATE STREAM TABLE")
        assert screen.process.wait(PATIENCE) == 0
    with started(tmp_path, "refresh") as screen:
        screen.wait_for("0:00:05")
        interrupt(screen)
        assert "Traceback" not in screen.wait_for("interrupted")
        assert screen.process.wait(PATIENCE) == 130
    with started(tmp_path, "history", "slow") as screen:
        screen.wait_for("INTERRUPTED")
    with started(tmp_path, "sql", "-e", "DELETE FROM t WHERE id > 10") as screen:
        assert screen.process.wait(PATIENCE) == 0
    with started(tmp_path, "refresh", "slow") as screen:
        screen.wait_for("slow")
        assert screen.process.wait(PATIENCE) == 0
    with started(tmp_path, "verify", "slow") as screen:
        assert screen.process.wait(PATIENCE) == 0
