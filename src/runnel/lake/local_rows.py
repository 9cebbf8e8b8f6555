"""A few rows fetched to the driver and given back to Spark as a relation known when planning.

Reading such a relation, or sending it to every task, takes no job, and an empty one takes whatever
is joined with it out of the plan. Only for what is known to be little: the driver holds all of it,
whatever the size of the tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from runnel.model.columns import Column
from runnel.model.names import quote

_FEW = 50_000
# Of files, which are compressed: several times as much in memory.
_MOST_BYTES = 8 * 2**20
# What comes back from Arrow exactly as it was.
_PLAIN = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|string|date|timestamp|timestamp_ntz"
    r"|decimal\(\d+,\d+\)"
)


def few(row_bytes: int) -> int:
    """How many rows are few, of so many bytes each in files."""
    return min(_FEW, _MOST_BYTES // max(1, row_bytes))


def measure(frame: DataFrame, columns: Iterable[Column]) -> tuple[int, bool]:
    """How many rows a frame has, and whether their texts are short enough for the driver."""
    lengths = [f"octet_length({column.name})" for column in columns if column.type == "string"]
    total = " + ".join(f"coalesce({length}, 0)" for length in lengths) or "0"
    row = frame.selectExpr("count(*)", f"coalesce(sum(CAST({total} AS BIGINT)), 0)").first()
    assert row is not None
    return int(row[0]), int(row[1]) <= _MOST_BYTES


def can_be_fetched(columns: Iterable[Column]) -> bool:
    return all(_PLAIN.fullmatch(column.type) for column in columns)


def fetched(frame: DataFrame) -> tuple[DataFrame, int]:
    """The rows of a frame, computed now, and how many there are."""
    rows = frame.toArrow()
    return frame.sparkSession.createDataFrame(rows, schema=frame.schema), rows.num_rows


def fetched_if_few(frame: DataFrame, most: int) -> tuple[DataFrame, int] | None:
    """The rows of a frame in one job, if there are at most so many and their texts are short."""
    rows = rows_if_few(frame, frame.dtypes, most)
    if rows is None:
        return None
    return frame.sparkSession.createDataFrame(rows, schema=frame.schema), rows.num_rows


def rows_if_few(frame: DataFrame, columns: Sequence[tuple[str, str]], most: int) -> pa.Table | None:
    """The rows of a frame with these columns and types, under the same conditions.

    What the driver gets is bounded whatever the frame holds: texts that are too long stay away.
    """
    longest = _MOST_BYTES // max(1, most)
    sizes = [f"octet_length({quote(n)}) > {longest}" for n, type_ in columns if type_ == "string"]
    items = [_short(name, type_, longest) for name, type_ in columns]
    is_long = " OR ".join(f"coalesce({size}, FALSE)" for size in sizes) or "FALSE"
    rows = frame.selectExpr(*items, f"{is_long} AS __is_long").limit(most + 1).toArrow()
    if rows.num_rows > most or pc.any(rows.column("__is_long")).as_py():
        return None
    return rows.drop_columns(["__is_long"])


def _short(name: str, type_: str, longest: int) -> str:
    text = quote(name)
    if type_ != "string":
        return text
    return f"CASE WHEN octet_length({text}) <= {longest} THEN {text} END AS {text}"
