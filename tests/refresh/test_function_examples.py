"""The examples in Spark's own descriptions of its functions mean the same as our compiler writes them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pyspark.sql import SparkSession

from runnel.compile.dialect import SparkSql
from runnel.compile.parse import parse
from runnel.errors import InvalidQuery

pytestmark = pytest.mark.spark

_EXAMPLE = re.compile(r"> (.*?);\n", re.DOTALL)
# Not the same twice: chance, the time, who asks, the order of rows, what a sketch looks like inside.
_OPEN = re.compile(
    r"\b(rand\w*|uuid|shuffle|uniform|cur\w+|current_\w+|now|localtimestamp|unix_timestamp|user"
    r"|session_user|version|input_file\w+|monotonically_increasing_id|spark_partition_id|aes_encrypt"
    r"|java_method|reflect|try_reflect|any_value|first|last|first_value|last_value|\w*sketch\w*"
    r"|theta_\w+|tuple_\w+|hll_\w+|kll_\w+|collect_\w+|array_agg)\b",
    re.IGNORECASE,
)
# What our parser does not read is refused with its place, and not read as something else.
_NOT_READ = (">>>", "X '")


def _examples(spark: SparkSession) -> list[str]:
    names = [row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    found: dict[str, None] = {}
    for name in names:
        described = spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect()
        text = "\n".join(row[0] for row in described)
        found.update(dict.fromkeys(_EXAMPLE.findall(text.partition("Examples:")[2])))
    return [q for q in found if not q.startswith("SET ") and not _OPEN.search(q)]


def _plain(text: str) -> str:
    return re.sub(r"\s+", "", text).lower()


def _answer(spark: SparkSession, query: str) -> Any:
    """Types and rows; the names of columns show how the query was written."""
    try:
        frame = spark.sql(query)
        types = [field.dataType for field in frame.schema.fields]
        return types, [repr(tuple(row)) for row in frame.collect()]
    except Exception as error:
        return re.split(r"[\]\s.]", str(error))[0]


def test_every_example_gives_the_same(spark: SparkSession) -> None:
    differing, examples = [], _examples(spark)
    assert len(examples) > 800
    for query in examples:
        try:
            written = parse(query).sql(SparkSql)
        except InvalidQuery:
            assert any(mark in query for mark in _NOT_READ), query
            continue
        if _plain(written) == _plain(query):
            continue
        expected, found = _answer(spark, query), _answer(spark, written)
        # Spark takes TIME '...' but not yet the type: an error, and no other answer.
        if expected != found and "UNSUPPORTED_TIME_TYPE" not in found:
            differing.append(f"{query}\n  {written}\n  {expected}\n  {found}")
    assert not differing, "\n".join(differing)
