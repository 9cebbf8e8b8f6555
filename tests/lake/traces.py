"""Traces written without Spark: files by pyarrow, commits by delta-rs."""

from __future__ import annotations

import json
import os
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from runnel.lake.appending import AppendStats, NewEpoch
from runnel.lake.commits import Proposal, Run, TraceCommit, commit
from runnel.lake.trace import Trace
from runnel.model.columns import EPOCH, KEY, WEIGHT, Column, Layout

LAYOUT = Layout((Column("c0", "bigint"),), ("c0",), ((Column("id", "bigint"), "c0"),))
_SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": name, "type": "long", "nullable": True, "metadata": {}}
        for name in (KEY, WEIGHT, EPOCH, "c0")
    ],
}


def make_trace(path: str, incarnation: str = "i") -> Trace:
    return Trace(path, incarnation, LAYOUT)


def append(
    trace: Trace, epoch: int, rows: list[tuple[int, int]], group: str | None = None, **metadata: Any
) -> bool:
    """Add an epoch of (value, weight); False when the trace has its number already."""
    run = Run(os.path.join(trace.path, f"run-{uuid.uuid4().hex[:16]}"))
    os.makedirs(run.folder)
    columns = {
        KEY: [value for value, _ in rows], WEIGHT: [weight for _, weight in rows],
        EPOCH: [epoch] * len(rows), "c0": [value for value, _ in rows],
    }  # fmt: skip
    table = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    pq.write_table(table, f"{run.folder}/part-0.parquet")
    note = {**metadata, **({"group": group} if group else {})}
    new = NewEpoch(epoch, note, overwrite=False)
    stats = AppendStats(sum(w for _, w in rows if w > 0), -sum(w for _, w in rows if w < 0))

    def propose(last: TraceCommit | None) -> Proposal | None:
        if last is not None and last.newest >= epoch:
            return None
        return Proposal(run.adds(True), new.state(last, stats), app_id=trace.incarnation)

    return commit(trace.log, json.dumps(_SCHEMA), propose)


def contents(trace: Trace, epoch: int) -> dict[int, int]:
    """The values up to an epoch and how often each is there."""
    table = DeltaTable(trace.path).to_pyarrow_table()
    total: dict[int, int] = {}
    for row in table.to_pylist():
        if row[EPOCH] <= epoch:
            total[row["c0"]] = total.get(row["c0"], 0) + row[WEIGHT]
    return {value: weight for value, weight in total.items() if weight}
