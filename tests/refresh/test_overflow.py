"""Sums that do not fit their type: Spark's error, or its NULL, and right again when they do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from refresh.helpers import Source, check
from runnel.api import Lake
from runnel.errors import QueryFailed

pytestmark = pytest.mark.spark

_BIG = "9" + "0" * 37
_QUERY = "SELECT k, SUM(v) AS s FROM t GROUP BY k"


@pytest.fixture
def source(lake: Lake, tmp_path: Path) -> Source:
    rows = [(1, _BIG), (2, "1")]
    return Source(lake, tmp_path, "t", {"k": "int", "v": "decimal(38,0)"}, rows)


@pytest.fixture
def _without_ansi(lake: Lake) -> Iterator[None]:
    before = str(lake.spark.conf.get("spark.sql.ansi.enabled"))
    lake.spark.conf.set("spark.sql.ansi.enabled", "false")
    yield
    lake.spark.conf.set("spark.sql.ansi.enabled", before)


def _sums(lake: Lake) -> dict[int, str | None]:
    return {row["k"]: row["s"] and str(row["s"]) for row in lake.table("sums").collect()}


def test_the_refresh_fails_and_the_old_contents_stay(lake: Lake, source: Source) -> None:
    lake.create_stream_table("sums", _QUERY, refresh_mode="DIFFERENTIAL")
    source.append((1, _BIG), (2, "1"))
    with pytest.raises(QueryFailed, match="overflow") as caught:
        lake.refresh("sums")
    assert caught.value.hint
    assert _sums(lake) == {1: _BIG, 2: "1"}
    source.overwrite((1, _BIG), (2, "7"))
    check(lake, "sums", "DIFFERENTIAL")
    assert lake.status("sums").consecutive_errors == 0


@pytest.mark.usefixtures("_without_ansi")
def test_without_ansi_mode_it_is_null_until_it_fits_again(lake: Lake, source: Source) -> None:
    lake.create_stream_table("sums", _QUERY, refresh_mode="DIFFERENTIAL")
    source.append((1, _BIG))
    check(lake, "sums", "FULL", "overflowed")
    assert _sums(lake) == {1: None, 2: "1"}
    source.append((2, "1"))
    check(lake, "sums", "DIFFERENTIAL")
    source.overwrite((1, _BIG), (2, "2"))
    check(lake, "sums", "FULL", "overflowed")
    source.append((1, "5"))
    check(lake, "sums", "DIFFERENTIAL")
    assert _sums(lake) == {1: _BIG[:-1] + "5", 2: "2"}
