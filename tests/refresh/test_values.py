"""Names and values that break naive engines: kept exactly, or refused with a reason."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from refresh.helpers import Source, check
from runnel.api import Lake
from runnel.errors import InvalidQuery

pytestmark = pytest.mark.spark

_ODD = [
    "two words",
    'quo"te',
    "it's",
    "sel`ect",
    "__weight",
    "__epoch",
    "__key",
    "__w",
    "c0",
    "größe",
    "order",
]


def test_columns_called_anything(lake: Lake) -> None:
    """Spaces and quotes need column mapping in the source; the trace has names of its own."""
    columns = ", ".join(f"`{name.replace('`', '``')}` INT" for name in _ODD)
    lake.sql(
        f"CREATE TABLE odd ({columns}) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    lake.sql(f"INSERT INTO odd VALUES ({', '.join(str(i) for i in range(len(_ODD)))})")
    lake.create_stream_table("plain", "SELECT * FROM odd", refresh_mode="DIFFERENTIAL")
    lake.create_stream_table(
        "grouped", "SELECT `two words`, SUM(`__weight`) AS `sum of it`, MAX(`c0`) AS `__epoch` "
        "FROM odd GROUP BY `two words`", refresh_mode="DIFFERENTIAL",
    )  # fmt: skip
    assert lake.table("plain").columns == _ODD
    lake.sql(f"INSERT INTO odd VALUES ({', '.join('5' for _ in _ODD)})")
    check(lake, "plain", "DIFFERENTIAL")
    check(lake, "grouped", "DIFFERENTIAL")
    assert lake.sql("SELECT `sum of it` FROM grouped").count() == 2


def test_all_types_and_nulls(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE kinds (a TINYINT, b SMALLINT, c INT, d BIGINT, e FLOAT, f DOUBLE, g STRING, "
        "h BINARY, i BOOLEAN, j DATE, k TIMESTAMP, l TIMESTAMP_NTZ, m DECIMAL(38,10), "
        "n STRUCT<x: INT, y: ARRAY<STRING>>, o ARRAY<STRUCT<z: DOUBLE>>, p MAP<STRING, INT>) USING delta"
    )
    values = (
        "1Y, 2S, 3, 4L, 1.5F, 2.5D, 'text', X'00FF', true, DATE'2024-02-29', "
        "TIMESTAMP'1900-01-01 00:00:00 Asia/Kolkata', TIMESTAMP_NTZ'2024-03-31 02:30:00', "
        "1234567890123456789012345678.0123456789BD, named_struct('x', 1, 'y', array('p', null)), "
        "array(named_struct('z', -0.0D)), map('k', 1)"
    )
    lake.sql(f"INSERT INTO kinds VALUES ({values})")
    lake.create_stream_table("copy", "SELECT * FROM kinds", refresh_mode="DIFFERENTIAL")
    lake.sql(f"INSERT INTO kinds VALUES ({', '.join('NULL' for _ in range(16))}), ({values})")
    check(lake, "copy", "DIFFERENTIAL")
    lake.sql("DELETE FROM kinds WHERE a = 1")
    check(lake, "copy", "DIFFERENTIAL")
    assert [tuple(row) for row in lake.table("copy").collect()] == [(None,) * 16]


def test_fields_called_like_types_that_cannot_be_stored(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE odd (id INT, variant STRING, s STRUCT<interval: INT, void_reason: STRING>, "
        "a ARRAY<STRUCT<variant: INT>>) USING delta"
    )
    lake.create_stream_table("copy", "SELECT * FROM odd", refresh_mode="DIFFERENTIAL")
    row = "'v', named_struct('interval', 1, 'void_reason', 'r'), array(named_struct('variant', 2))"
    lake.sql(f"INSERT INTO odd VALUES (1, {row}), (2, {row})")
    check(lake, "copy", "DIFFERENTIAL")
    lake.sql("DELETE FROM odd WHERE id = 1")
    check(lake, "copy", "DIFFERENTIAL")
    assert lake.table("copy").count() == 1


def test_negative_zero_nan_and_infinity(lake: Lake, tmp_path: Path) -> None:
    rows = [(1, -0.0), (2, 0.0), (3, math.nan), (4, math.inf), (5, -math.inf), (6, None)]
    source = Source(lake, tmp_path, "numbers", {"id": "int", "x": "double"}, rows)
    lake.create_stream_table(
        "text", "SELECT CAST(x AS STRING) AS t FROM numbers", refresh_mode="DIFFERENTIAL"
    )
    lake.create_stream_table(
        "sums", "SELECT id % 2 AS g, SUM(x) AS s, MIN(x) AS low, MAX(x) AS high FROM numbers GROUP BY 1",
        refresh_mode="DIFFERENTIAL",
    )  # fmt: skip
    lake.create_stream_table(
        "keys", "SELECT x, COUNT(*) AS n FROM numbers GROUP BY x", refresh_mode="DIFFERENTIAL"
    )
    DeltaTable(source.path).delete("id IN (1, 4)")
    source.append((7, math.nan), (8, 2.0))
    for name in ("text", "sums", "keys"):
        check(lake, name, "DIFFERENTIAL")
    DeltaTable(source.path).delete("id IN (3, 7)")
    for name in ("text", "sums", "keys"):
        check(lake, name, "DIFFERENTIAL")


def test_decimals_up_to_38_digits(lake: Lake, tmp_path: Path) -> None:
    big = "99999999999999999999999999.99"
    columns = {"g": "int", "w": "decimal(28,2)", "m": "decimal(20,4)"}
    source = Source(lake, tmp_path, "money", columns, [(1, big, "0.0001"), (1, "-1.00", "2.5000")])
    lake.create_stream_table(
        "sums", "SELECT g, SUM(w) AS sw, AVG(w) AS aw, SUM(m) AS sm, AVG(m) AS am FROM money GROUP BY g",
        refresh_mode="DIFFERENTIAL",
    )  # fmt: skip
    source.append((1, big, "3.3333"), (2, None, None))
    check(lake, "sums", "DIFFERENTIAL")
    DeltaTable(source.path).delete("m = 0.0001")
    check(lake, "sums", "DIFFERENTIAL")


@pytest.mark.parametrize(
    "query", ["SELECT parse_json('1') AS v FROM t", "SELECT NULL AS nothing FROM t"]
)
def test_what_cannot_be_stored_is_refused(lake: Lake, tmp_path: Path, query: str) -> None:
    Source(lake, tmp_path, "t", {"id": "int"}, [(1,)])
    with pytest.raises(InvalidQuery, match="cannot be stored"):
        lake.create_stream_table("bad", query)


def test_parts_of_a_variant_column(lake: Lake) -> None:
    """The column itself has no equality, so that only what is taken out of it can be stored."""
    lake.sql("CREATE TABLE papers (id INT, v VARIANT) USING delta")
    values = [(1, '{"a": 1, "b": {"c": "x"}}'), (2, '{"a": 2}'), (3, "[1]")]
    lake.sql(
        "INSERT INTO papers VALUES "
        + ", ".join(f"({number}, parse_json('{text}'))" for number, text in values)
    )
    lake.create_stream_table(
        "parts", "SELECT id, v:a::int AS a, variant_get(v, '$.b.c', 'string') AS c FROM papers",
        refresh_mode="DIFFERENTIAL",
    )  # fmt: skip
    lake.sql("INSERT INTO papers VALUES (4, NULL), (5, parse_json('{\"a\": 5}'))")
    check(lake, "parts", "DIFFERENTIAL")
    lake.sql("UPDATE papers SET v = parse_json('{\"a\": 7}') WHERE id = 1")
    lake.sql("DELETE FROM papers WHERE id = 2")
    check(lake, "parts", "DIFFERENTIAL")
    rows = sorted(map(tuple, lake.table("parts").collect()))
    assert rows == [(1, 7, None), (3, None, None), (4, None, None), (5, 5, None)]
    with pytest.raises(InvalidQuery, match="cannot be stored"):
        lake.create_stream_table("whole", "SELECT * FROM papers")


def test_the_sessions_time_zone_does_not_matter(lake: Lake, tmp_path: Path) -> None:
    """The settings a query was created under are kept with it."""
    columns: dict[str, Any] = {"id": "int", "at": "timestamp"}
    source = Source(lake, tmp_path, "events", columns, [])
    lake.create_stream_table(
        "days",
        "SELECT DATE(at) AS day, COUNT(*) AS n FROM events GROUP BY 1",
        refresh_mode="DIFFERENTIAL",
    )
    lake.sql("INSERT INTO events VALUES (1, TIMESTAMP'2024-01-01 23:30:00 UTC')")
    before = lake.spark.conf.get("spark.sql.session.timeZone")
    lake.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        check(lake, "days", "DIFFERENTIAL")
        assert str(lake.table("days").first()["day"]) == "2024-01-01"
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", before)
    assert source.name == "events"


def test_tables_with_different_settings_take_turns(lake: Lake, tmp_path: Path) -> None:
    """Each refresh has the settings of its own table, whoever was refreshed before it."""
    zone, ansi = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
    before = {key: str(lake.spark.conf.get(key)) for key in (zone, ansi)}
    assert before == {zone: "UTC", ansi: "true"}
    Source(lake, tmp_path, "events", {"id": "int", "at": "timestamp", "text": "string"}, [])
    query = "SELECT id, DATE(at) AS day, {} AS n FROM events"
    lake.create_stream_table("a", query.format("CAST(text AS INT)"), refresh_mode="DIFFERENTIAL")
    try:
        lake.spark.conf.set(zone, "Asia/Tokyo")
        lake.spark.conf.set(ansi, "false")
        lake.create_stream_table(
            "b", query.format("CAST(text || 'x' AS INT)"), refresh_mode="DIFFERENTIAL"
        )
    finally:
        for key, value in before.items():
            lake.spark.conf.set(key, value)
    for turn, name in enumerate("aba"):
        lake.sql(f"INSERT INTO events VALUES ({turn}, TIMESTAMP'2024-01-01 23:30:00 UTC', '7')")
        check(lake, name, "DIFFERENTIAL")
        assert {key: lake.spark.conf.get(key) for key in before} == before
    found = {name: {(str(r["day"]), r["n"]) for r in lake.table(name).collect()} for name in "ab"}
    assert found == {"a": {("2024-01-01", 7)}, "b": {("2024-01-02", None)}}
