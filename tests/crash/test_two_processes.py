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

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

_COLUMNS = {"id": "bigint", "cust": "int", "amount": "int"}
_WORKER = """
import json, sys
import runnel
from runnel.errors import Busy

done = {"refreshes": 0, "busy": 0, "reads": 0, "compactions": 0}
with runnel.connect(sys.argv[1], busy_wait_seconds=0.2, compact_after_epochs=3) as lake:
    for turn in range(int(sys.argv[2])):
        try:
            lake.refresh()
            done["refreshes"] += 1
            if turn % 3 == 2:
                lake.compact("pairs")
                done["compactions"] += 1
        except Busy:
            done["busy"] += 1
        # Every commit of the source adds rows in pairs that cancel: no state may show half of one.
        row = lake.sql("SELECT COALESCE(SUM(total), 0) AS t, COUNT(*) AS n FROM pairs").first()
        assert row["t"] == 0, row
        done["reads"] += 1
print(json.dumps(done))
"""


def test_side_by_side(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    path = str(folder / "warehouse" / "orders")
    write_deltalake(path, arrow_rows(_COLUMNS, [(0, 0, 5), (0, 1, -5)]))
    with ConnectServer(tmp_path) as server:
        with server.lake(folder) as lake:
            lake.create_stream_table(
                "pairs", "SELECT cust, SUM(amount) AS total FROM orders GROUP BY cust",
                refresh_mode="DIFFERENTIAL",
            )  # fmt: skip
            lake.create_stream_table(
                "top", "SELECT MAX(total) AS best FROM pairs", refresh_mode="DIFFERENTIAL"
            )
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", _WORKER, str(folder), "8"],
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
        for worker in workers:
            out, error = worker.communicate()
            assert worker.returncode == 0, error[-3000:]
            assert json.loads(out.splitlines()[-1])["reads"] == 8
        with server.lake(folder) as lake:
            lake.refresh()
            assert lake.verify("pairs").ok
            assert lake.verify("top").ok
