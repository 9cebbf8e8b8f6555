"""Compaction where little changed: the base is written anew in its order, without a shuffle.

What came later becomes a file of its own beside it. When such files hold too many of the rows, it
is time to put all of them in order again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from runnel.lake.commits import Run, TraceCommit
from runnel.lake.log import DataFile
from runnel.model.columns import EPOCH, KEY, Layout

# They are sent to every task, and the driver takes their keys.
_MOST_LATER = 500_000
# Of all rows: each look-up in a file that is out of order misses the processor's cache.
_MOST_APART = 0.25
# For each such lot of keys the later ones are hashed once more.
_AT_ONCE = 1_000_000
# What opening a file counts for, and how much a task reads at most.
_OPENING = "spark.sql.files.openCostInBytes"
_MOST_READ = "spark.sql.files.maxPartitionBytes"


@dataclass(frozen=True, slots=True)
class Parts:
    """The files on either side of the last compaction, and what netting them must come to."""

    base: Sequence[DataFile]
    later: Sequence[DataFile]
    rows: int
    apart: int


def parts_of(
    files: Sequence[DataFile], last: TraceCommit, layout: Layout, rows: int | None
) -> Parts | None:
    """The parts of files that may be compacted in their order; None where that would not do.

    The base must be such that no row is there twice, and the number of rows known: it is how a
    total that is wrong shows. `last` is the newest state, `rows` how many there will be.
    """
    is_unique = layout.is_state or last.is_unique
    if not (layout.key and is_unique and last.since and rows):
        return None
    base: list[DataFile] = []
    later: list[DataFile] = []
    for file in files:
        is_old = file.maximum.get(EPOCH, last.since + 1) <= last.since
        (base if is_old else later).append(file)
    if not base or any(file.minimum.get(EPOCH, 0) <= last.since for file in later):
        return None
    added = sum(file.rows or file.size for file in later)
    apart = last.apart + added
    return Parts(base, later, rows, apart) if _is_little(added, apart, rows) else None


def _is_little(added: int, apart: int, rows: int) -> bool:
    return added <= _MOST_LATER and apart <= _MOST_APART * rows


@contextmanager
def file_by_file(spark: SparkSession) -> Iterator[None]:
    """Every file is read by a task of its own: what is next to each other stays so."""
    before = spark.conf.get(_OPENING)
    spark.conf.set(_OPENING, str(spark.conf.get(_MOST_READ)))
    try:
        yield
    finally:
        spark.conf.set(_OPENING, str(before))


def has_unique_keys(kept: Run, added: Run) -> bool:
    """Whether no two rows have the same `__key`, when none of those that were kept have."""
    keys = pa.chunked_array(_keys(added), pa.int64()).combine_chunks()
    if pc.count_distinct(keys).as_py() < len(keys):
        return False
    return not any(pc.any(pc.is_in(some, value_set=keys)).as_py() for some in _keys(kept))


def _keys(run: Run) -> Iterator[pa.Array]:
    for path in run.paths():
        for batch in pq.ParquetFile(path).iter_batches(_AT_ONCE, columns=[KEY]):
            yield batch.column(0)
