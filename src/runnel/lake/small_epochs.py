"""A small epoch fetched and written here: Spark's own writing takes longer than most of them."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from runnel.lake.commits import Run, TraceCommit, new_run
from runnel.lake.local_rows import can_be_fetched, rows_if_few
from runnel.lake.log import DeltaLog
from runnel.model.columns import EPOCH, KEY, WEIGHT, Column

# Few enough that their texts may be long.
_MOST = 10_000

# Spark takes days and times before 1582 for what they say only in files that name a version of it.
_FOOTER = {"org.apache.spark.version": "4.2.0"}


def is_expected(last: TraceCommit | None, stored: Sequence[Column], changed: int | None) -> bool:
    """Whether the next epoch may well be small: as the last one was, if the change is.

    `changed` is how many rows changed in the sources, if that bounds anything.
    """
    if last is None or (changed is not None and changed > _MOST * 10):
        return False
    return last.rows_inserted + last.rows_deleted <= _MOST // 2 and can_be_fetched(stored)


def is_few(rows: int) -> bool:
    """Whether an epoch of so many rows is fetched, unless its texts are long."""
    return rows <= _MOST


def fetched_epoch(frame: DataFrame, stored: Sequence[Column]) -> pa.Table | None:
    """The rows of an epoch, if they are few and short; else Spark has to write them."""
    columns = [
        *((name, "bigint") for name in (KEY, WEIGHT, EPOCH)),
        *((c.name, c.type) for c in stored),
    ]
    return rows_if_few(frame, columns, _MOST)


def write_rows(rows: pa.Table, log: DeltaLog) -> Run:
    """Rows in a new folder inside the table, in one file; until committed it is invisible."""
    run = new_run(log)
    if rows.num_rows:
        os.makedirs(run.folder)
        file = os.path.join(run.folder, "part-0.snappy.parquet")
        pq.write_table(rows.replace_schema_metadata(_FOOTER), file, store_decimal_as_integer=True)
    return run


def weights_of(rows: pa.Table) -> tuple[int, int]:
    """How many rows come and how many go."""
    weights = rows.column(WEIGHT)
    coming, going = (
        pc.sum(weights.filter(found)).as_py() or 0
        for found in (pc.greater(weights, 0), pc.less(weights, 0))
    )
    return coming, -going
