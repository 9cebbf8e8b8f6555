"""The current time in a query is the data timestamp of the refresh."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession

from refresh.helpers import ORDERS, Source, check, orders
from runnel.api import Lake
from runnel.errors import InvalidQuery, NotDifferentiable

pytestmark = pytest.mark.spark

_RECENT = "SELECT id FROM events WHERE at >= current_timestamp() - INTERVAL 1 HOUR"


def _events(lake: Lake, folder: Path) -> Source:
    old, new = datetime(2020, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
    return Source(lake, folder, "events", {"id": "int", "at": "timestamp"}, [(1, old), (2, new)])


def test_every_refresh_computes_it_anew_and_says_so(lake: Lake, tmp_path: Path) -> None:
    source = _events(lake, tmp_path)
    status = lake.create_stream_table("recent", _RECENT)
    assert status.refresh_reason == "the query asks for the current time (current_timestamp())"
    assert "asks for the current time" in str(lake.explain("recent"))
    assert [row["id"] for row in lake.table("recent").collect()] == [2]
    check(lake, "recent", "FULL", "the query asks for the current time")
    source.append((3, datetime.now(UTC)))
    check(lake, "recent", "FULL", "the query asks for the current time")
    assert sorted(row["id"] for row in lake.table("recent").collect()) == [2, 3]


def test_consumers_get_the_difference_only(lake: Lake, tmp_path: Path) -> None:
    source = _events(lake, tmp_path)
    lake.create_stream_table("recent", _RECENT)
    lake.create_stream_table("n", "SELECT COUNT(*) AS n FROM recent", refresh_mode="DIFFERENTIAL")
    check(lake, "n", "NO_DATA", "no source changed")
    assert lake.history("recent")[0].action == "FULL"
    source.append((3, datetime.now(UTC)), (4, datetime(2020, 1, 1, tzinfo=UTC)))
    assert check(lake, "n", "DIFFERENTIAL").change_rows == 1


def test_differential_is_refused_with_a_way_out(lake: Lake, tmp_path: Path) -> None:
    _events(lake, tmp_path)
    with pytest.raises(NotDifferentiable, match=r"current_timestamp\(\)") as caught:
        lake.create_stream_table("recent", _RECENT, refresh_mode="DIFFERENTIAL")
    assert "AUTO or FULL" in (caught.value.hint or "")
    lake.create_stream_table("recent", _RECENT, refresh_mode="FULL")
    check(lake, "recent", "FULL")


def test_all_of_them_are_the_data_timestamp(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    query = (
        "SELECT current_timestamp() AS a, now() AS b, CURRENT_TIMESTAMP AS c, current_date() AS d, "
        "curdate() AS e, CURRENT_DATE AS f, localtimestamp() AS g, unix_timestamp() AS h, "
        "current_date(), max(id) AS i FROM orders"
    )
    lake.spark.conf.set("spark.sql.session.timeZone", "Pacific/Kiritimati")
    try:
        lake.create_stream_table("st", query)
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert lake.status("st").columns[:9] == (
        "a timestamp", "b timestamp", "c timestamp", "d date", "e date", "f date", "g timestamp_ntz",
        "h bigint", "current_date() date",
    )  # fmt: skip
    result = lake.refresh("st")
    at = result.data_timestamp
    assert at is not None
    there = at.astimezone(ZoneInfo("Pacific/Kiritimati"))
    shown = "SELECT *, unix_micros(a) AS ua, unix_micros(b) AS ub, CAST(g AS STRING) AS gs FROM st"
    row = lake.sql(shown).first()
    micros = round(at.timestamp() * 1_000_000)
    assert (row["ua"], row["ub"], row["h"]) == (micros, micros, micros // 1_000_000)
    assert {row[name] for name in ("d", "e", "f", "current_date()")} == {there.date()}
    assert row["g"] == there.replace(tzinfo=None)
    assert lake.verify("st").ok


def test_inside_views_ctes_and_groups(lake: Lake, tmp_path: Path) -> None:
    source = _events(lake, tmp_path)
    lake.sql("CREATE VIEW aged AS SELECT id, at < current_date() AS is_old FROM events")
    query = (
        "WITH c AS (SELECT is_old, current_date AS today FROM aged) SELECT is_old, today, COUNT(*) AS n "
        "FROM c WHERE today = current_date() GROUP BY is_old, today, current_date"
    )
    lake.create_stream_table("st", query)
    source.append((3, datetime(2021, 1, 1, tzinfo=UTC)))
    check(lake, "st", "FULL", "current time")
    assert {row["n"] for row in lake.table("st").collect()} == {1, 2}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT q.`current_date()` AS d FROM (SELECT current_date() FROM orders) q", "no name of its own"),
        ("SELECT id FROM orders WHERE id > limit_var", "limit_var is no column"),
        ("SELECT id FROM orders WHERE id > session.limit_var", "session.limit_var is no column"),
        ("SELECT id, user FROM orders", "user"),
        ("SELECT id, `current_date` FROM orders", "current_date is no column"),
        ("SELECT id, current_time() AS t FROM orders", "current_time"),
        ("SELECT id FROM orders WHERE DATE 'today' > DATE '2020-01-01'", "today"),
        ("SELECT id FROM dated WHERE current_date > DATE '2020-01-01'", "may be a column"),
    ],
)  # fmt: skip
def test_what_depends_on_the_session_is_refused_by_name(
    lake: Lake, tmp_path: Path, spark: SparkSession, query: str, words: str
) -> None:
    orders(lake, tmp_path)
    Source(lake, tmp_path, "dated", {"id": "int", "current_date": "date"})
    spark.sql("DECLARE OR REPLACE VARIABLE limit_var INT DEFAULT 1")
    try:
        with pytest.raises(InvalidQuery, match=words) as caught:
            lake.create_stream_table("st", query)
        assert caught.value.hint
    finally:
        spark.sql("DROP TEMPORARY VARIABLE limit_var")
    assert len(lake.status()) == 0


def test_an_unknown_name_is_still_an_unknown_column(lake: Lake, tmp_path: Path) -> None:
    Source(lake, tmp_path, "orders", ORDERS)
    with pytest.raises(InvalidQuery, match="nothing"):
        lake.create_stream_table("st", "SELECT nothing FROM orders")
