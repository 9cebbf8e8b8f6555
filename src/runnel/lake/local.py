"""Small frames brought to this process as Arrow tables, from which frames are made again."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

_PORTABLE = re.compile(
    r"(tinyint|smallint|int|bigint|float|double|string|boolean|date|binary|decimal\(\d+,\d+\)"
    r"|timestamp|timestamp_ntz|array<(tinyint|smallint|int|bigint|double|string|boolean|date)>)"
)


def is_portable(type_: str) -> bool:
    """Whether values of the type come back from Arrow as they were."""
    return _PORTABLE.fullmatch(type_) is not None


def to_table(frame: DataFrame, most: int) -> Any:
    """The rows as an Arrow table; None when there are more than `most`."""
    table = frame.limit(most + 1).toArrow()
    return table if table.num_rows <= most else None


def to_frame(spark: SparkSession, tables: list[Any], schema: StructType) -> DataFrame:
    """A frame of the rows of all tables; what is never NULL in one may be in another."""
    nullable = StructType([StructField(f.name, f.dataType, True) for f in schema])
    if not tables:
        return spark.createDataFrame([], nullable)
    fields = [f.with_nullable(True) for f in tables[0].schema]
    return spark.createDataFrame(
        pa.concat_tables([table.cast(pa.schema(fields)) for table in tables]), nullable
    )
