"""Two processes refresh, compact and read the same tables at once: only committed states are seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from kit.connect_server import ConnectServer
from kit.lake_backend import arrow_rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

_COLUMNS = {"id": "bigint", "cust": "int", "amount": "int"}
_WORKER = """
import json, sys
import runnel
from runnel.errors import Busy, UserError

done = dict.fromkeys(["refreshes", "compactions", "busy", "reads", "snapshots"], 0)

def attempt(kind, work):
    try:
        work()
        done[kind] += 1
    except Busy:
        done["busy"] += 1

def read(lake):
    # Every commit of the source adds rows in pairs that cancel: no state may show half of one.
    row = lake.sql("SELECT COALESCE(SUM(total), 0) AS t, COUNT(*) AS n FROM accounts").first()
    assert row["t"] == 0 and row["n"] > 1, row
    best = [row["best"] for row in lake.sql("SELECT best FROM top").collect()]
    assert len(best) == 1 and best[0] >= 0, best
    done["reads"] += 1

def look_closely(lake):
    for name in ("accounts", "whole"):
        row = lake.table(name).selectExpr("SUM(total) AS t", "COUNT(*) AS n").first()
        assert row["t"] == 0 and row["n"] > 1, row
        verified = lake.verify(name)
        assert verified.ok, verified

def compare(lake):
    # Together as of one instant they must agree.
    try:
        with lake.snapshot(["accounts", "top"]) as seen:
            row = seen.sql("SELECT (SELECT MAX(total) FROM accounts) AS m, best FROM top").first()
            assert row["m"] == row["best"], row
            done["snapshots"] += 1
    except UserError as error:
        assert "in common" in str(error), error

with runnel.connect(sys.argv[1], busy_wait_seconds=0.2, compact_after_epochs=3) as lake:
    for turn in range(int(sys.argv[2])):
        attempt("refreshes", lake.refresh)
        for name in ("accounts", "top"):
            attempt("compactions", lambda: lake.compact(name))
        read(lake)
        compare(lake)
        if int(sys.argv[2]) > 1:
            look_closely(lake)
print(json.dumps(done))
"""


@pytest.mark.parametrize("turns", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_side_by_side(turns: int, server: ConnectServer, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    # Lakes on one server need different names for their tables.
    base = f"ledger_{turns}"
    path = str(folder / "warehouse" / base)
    write_deltalake(path, arrow_rows(_COLUMNS, [(0, 0, 5), (0, 1, -5)]))
    with server.lake(folder) as lake:
        lake.create_stream_table(
            "accounts", f"SELECT cust, SUM(amount) AS total FROM {base} GROUP BY cust",
            refresh_mode="DIFFERENTIAL",
        )  # fmt: skip
        lake.create_stream_table(
            "top", "SELECT MAX(total) AS best FROM accounts", refresh_mode="DIFFERENTIAL"
        )
        lake.create_stream_table(
            "whole", f"SELECT cust, amount AS total FROM {base}", refresh_mode="FULL"
        )
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(folder), str(turns)],
            env={**os.environ, "RUNNEL_MASTER": server.url},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    number = 1
    while any(worker.poll() is None for worker in workers):
        rows = [(number, number % 7, number), (number, (number + 1) % 7, -number)]
        write_deltalake(DeltaTable(path), arrow_rows(_COLUMNS, rows), mode="append")
        number += 1
        for worker in workers:
            try:
                worker.wait(timeout=0.25)
            except subprocess.TimeoutExpired:
                continue
    done = [_done(worker) for worker in workers]
    assert [counts["reads"] for counts in done] == [turns, turns]
    # In one turn either may find the other busy; not both.
    together = [sum(counts[kind] for counts in done) for kind in ("refreshes", "compactions")]
    assert min(together) > 0, done
    if turns > 1:
        kinds = ("refreshes", "compactions", "snapshots")
        assert min(counts[kind] for counts in done for kind in kinds) > 0, done
    with server.lake(folder) as lake:
        lake.refresh()
        assert lake.verify("accounts").ok
        assert lake.verify("top").ok
        assert lake.verify("whole").ok


def _done(worker: subprocess.Popen[str]) -> dict[str, int]:
    """What a process that has ended says that it did."""
    out, error = worker.communicate()
    # Spark's errors say at the end where they were, and at the beginning what they are.
    assert worker.returncode == 0, f"{error[:6000]}\n...\n{error[-6000:]}"
    counts: dict[str, int] = json.loads(out.splitlines()[-1])
    return counts
