"""Rows that were fetched come back as they were, and Spark knows them when it plans."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from kit.bags import bag
from runnel.lake.local_rows import can_be_fetched, fetched, fetched_if_few, measure
from runnel.lake.session import worker_session
from runnel.model.columns import Column

_ROWS = """
    SELECT CAST(b AS BOOLEAN) AS b, CAST(i AS TINYINT) AS i1, CAST(i AS SMALLINT) AS i2,
      CAST(i AS INT) AS i4, CAST(i AS BIGINT) AS i8, CAST(f AS FLOAT) AS f4, CAST(f AS DOUBLE) AS f8,
      s, CAST(d AS DATE) AS d, CAST(t AS TIMESTAMP) AS t, CAST(n AS TIMESTAMP_NTZ) AS n,
      CAST(x AS DECIMAL(38, 10)) AS x
    FROM VALUES
      (true, 127, 'NaN', 'ü \\u0000 🙂', '0001-01-01', '1890-07-01 00:00:00.000001', '2026-03-29 02:30:00', '-9999999999999999999999999999.9999999999'),
      (false, -128, '-0.0', '', '9999-12-31', '2026-10-25 02:30:00', '9999-12-31 23:59:59.999999', '0'),
      (false, 0, '-Infinity', ' ', '1582-10-15', '9999-12-31 23:59:59.999999', '1582-10-10 00:00:00', '0.0000000001'),
      (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
      AS v(b, i, f, s, d, t, n, x)
"""


@pytest.mark.parametrize("zone", ["UTC", "Europe/Amsterdam", "Pacific/Apia"])
def test_every_plain_type_comes_back_as_it_was(spark: SparkSession, zone: str) -> None:
    session = worker_session(spark, {"spark.sql.session.timeZone": zone}, adaptive=False)
    frame = session.sql(_ROWS)
    assert can_be_fetched(Column(n, t.replace("long", "bigint")) for n, t in frame.dtypes)
    # As text, since -0.0 and 0.0, and two instants of an odd hour, are equal otherwise.
    texts = [f"CAST({name} AS STRING)" for name in frame.columns]
    texts += ["unix_micros(t)", "CAST(sign(f8) AS STRING)"]
    expected = bag(frame.selectExpr(*texts).collect())
    for found in (fetched(frame), fetched_if_few(frame, 4)):
        assert found is not None
        local, rows = found
        assert rows == 4
        assert local.dtypes == frame.dtypes
        assert bag(local.selectExpr(*texts).collect()) == expected


def test_what_turns_out_to_be_much_is_not_fetched(spark: SparkSession) -> None:
    session = worker_session(spark, {}, adaptive=False)
    frame = session.sql("SELECT id, repeat('ü', 100) AS `a b` FROM range(0, 50, 1, 4)")
    found = fetched_if_few(frame, 50)
    assert found is not None
    assert bag(found[0].collect()) == bag(frame.collect())
    assert fetched_if_few(frame, 49) is None
    one_long = "SELECT id, CASE WHEN id = 7 THEN repeat('ü', 90000) END AS s FROM range(50)"
    assert fetched_if_few(session.sql(one_long), 50) is None


def test_no_rows_are_known_to_be_none(spark: SparkSession) -> None:
    session = worker_session(spark, {}, adaptive=False)
    local, rows = fetched(session.sql("SELECT id FROM range(5) WHERE id > 7"))
    assert rows == 0
    local.createOrReplaceTempView("runnel_none")
    try:
        joined = session.sql("SELECT * FROM range(9) r JOIN runnel_none n ON r.id = n.id")
        plan = str(joined._jdf.queryExecution().optimizedPlan()) if hasattr(joined, "_jdf") else ""
        assert "Join" not in plan
        assert joined.collect() == []
    finally:
        session.catalog.dropTempView("runnel_none")


def test_rows_and_the_length_of_their_texts_are_measured(spark: SparkSession) -> None:
    session = worker_session(spark, {}, adaptive=False)
    columns = (Column("id", "bigint"), Column("s", "string"))
    for length, is_short in ((10, True), (900_000, False)):
        text = f"CASE WHEN id > 0 THEN repeat('ü', {length}) END AS s"
        frame = session.sql(f"SELECT id, {text}, 1L AS __w FROM range(7)")
        assert measure(frame, columns) == (7, is_short)
    assert measure(session.sql("SELECT id FROM range(7) WHERE id > 9"), columns[:1]) == (0, True)


def test_what_arrow_may_change_is_not_fetched() -> None:
    for type_ in ("variant", "map<int,int>", "array<int>", "interval day to second", "binary"):
        assert not can_be_fetched([Column("c", type_)])
