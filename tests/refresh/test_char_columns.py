"""CHAR(n) columns mean in a stream table what they mean to Spark when it reads the table by name."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from refresh.helpers import check
from runnel.api import Lake
from runnel.errors import NotDifferentiable

pytestmark = pytest.mark.spark

_COMPARING = (
    "SELECT t.id, CASE t.c WHEN 'p' THEN 1 ELSE 0 END AS x, t.c IN ('q') AS y, t.s.f = 'p' AS z, "
    "u.id AS uid FROM t LEFT JOIN u ON t.c = u.e WHERE t.c <> 'z'"
)
_OTHERS = (
    "SELECT c, s, rtrim(c) = 'p' AS is_p, COUNT(*) AS n, MAX(c) AS m FROM t GROUP BY c, s, rtrim(c)"
)


@pytest.fixture
def tables(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT, c CHAR(4), s STRUCT<f: CHAR(5)>) USING delta")
    lake.sql("CREATE TABLE u (id INT, e CHAR(6)) USING delta")
    lake.sql(
        "INSERT INTO t VALUES (1, 'p', named_struct('f', 'p')), (2, 'q', NULL), (3, 'z', NULL)"
    )
    lake.sql("INSERT INTO u VALUES (7, 'p'), (8, NULL)")


def _bag(frame: Any) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, frame.collect()))


@pytest.mark.usefixtures("tables")
def test_compared_and_shown_as_spark_does(lake: Lake) -> None:
    lake.create_stream_table("compared", _COMPARING)
    lake.create_stream_table("others", _OTHERS, refresh_mode="DIFFERENTIAL")
    lake.sql("INSERT INTO t VALUES (4, 'p', named_struct('f', 'q'))")
    lake.sql("DELETE FROM t WHERE id = 1")
    check(lake, "compared", "FULL", "CHAR(n)")
    check(lake, "others", "DIFFERENTIAL")
    assert _bag(lake.table("compared")) == _bag(lake.spark.sql(_COMPARING))
    assert _bag(lake.table("others")) == _bag(lake.spark.sql(_OTHERS))
    found = {
        (row["id"], row["x"], row["y"], row["uid"]) for row in lake.table("compared").collect()
    }
    assert found == {(2, 0, True, None), (4, 1, False, 7)}
    with pytest.raises(NotDifferentiable, match=r"t\.c = u\.e"):
        lake.create_stream_table(
            "strict", "SELECT t.id FROM t JOIN u ON t.c = u.e", refresh_mode="DIFFERENTIAL"
        )
