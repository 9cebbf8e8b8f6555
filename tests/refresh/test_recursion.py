"""WITH RECURSIVE on Spark: bounds that are errors, deep walks, modes, and what only Spark can judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from refresh.helpers import Source, check
from runnel.api import Lake
from runnel.errors import InvalidQuery, NotDifferentiable, QueryFailed

pytestmark = pytest.mark.spark

_EDGE = {"a": "int", "b": "int"}
_WALK = "WITH RECURSIVE r(n, d) MAX RECURSION LEVEL 8 AS (SELECT 1, 0 UNION ALL SELECT e.b, r.d + 1 FROM r JOIN edge e ON e.a = r.n) SELECT n, d FROM r"
_REACH = "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT e.b FROM r JOIN edge e ON e.a = r.n) SELECT n FROM r"
_PAIRS = "WITH RECURSIVE r AS (SELECT a, b FROM edge UNION SELECT x.a, y.b FROM r x JOIN r y ON x.b = y.a)"
_LEVELS = "spark.sql.cteRecursionLevelLimit"
_ROWS = "spark.sql.cteRecursionRowLimit"


def _rows(lake: Lake, name: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lake.table(name).collect())


def test_a_cycle_under_union_all_is_an_error_and_the_old_contents_stay(
    lake: Lake, tmp_path: Path
) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(1, 2)])
    lake.create_stream_table("walk", _WALK, refresh_mode="DIFFERENTIAL")
    edge.append((2, 1))
    with pytest.raises(QueryFailed, match="8 levels") as caught:
        lake.refresh("walk")
    assert "UNION" in (caught.value.hint or "")
    assert _rows(lake, "walk") == [(1, 0), (2, 1)]
    edge.delete("a = 2")
    check(lake, "walk", "NO_DATA")


def test_a_first_fill_without_end_creates_nothing(lake: Lake, tmp_path: Path) -> None:
    Source(lake, tmp_path, "edge", _EDGE, [(1, 2), (2, 1)])
    with pytest.raises(QueryFailed, match="levels"):
        lake.create_stream_table("walk", _WALK, refresh_mode="DIFFERENTIAL")
    assert lake.status() == [] or all(t.name != "walk" for t in lake.status())


def test_levels_of_the_text(lake: Lake, tmp_path: Path) -> None:
    Source(lake, tmp_path, "edge", _EDGE, [(i, i + 1) for i in range(1, 8)])
    short = _WALK.replace("LEVEL 8", "LEVEL 5")
    with pytest.raises(QueryFailed, match="5 levels"):
        lake.create_stream_table("short", short, refresh_mode="DIFFERENTIAL")
    enough = _WALK.replace("LEVEL 8", "LEVEL 20")
    lake.create_stream_table("enough", enough, refresh_mode="DIFFERENTIAL")
    assert lake.verify("enough").ok


@pytest.mark.parametrize(
    "query",
    [_WALK.replace("LEVEL 8", "LEVEL 50"), pytest.param(_REACH, marks=pytest.mark.slow)],
)
def test_a_bound_of_rows(lake: Lake, tmp_path: Path, query: str) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(i, i + 1) for i in range(1, 4)])
    lake.spark.conf.set(_ROWS, "5")
    try:
        lake.create_stream_table("bounded", query, refresh_mode="DIFFERENTIAL")
    finally:
        lake.spark.conf.unset(_ROWS)
    edge.append(*((i, i + 1) for i in range(4, 12)))
    with pytest.raises(QueryFailed, match="5 rows") as caught:
        lake.refresh("bounded")
    assert _ROWS in (caught.value.hint or "")
    assert len(_rows(lake, "bounded")) == 4


@pytest.mark.parametrize("few", [20_000, 0])
def test_levels_are_counted_from_the_anchor_on(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr("runnel.refresh.rounds._FEW", few)
    edge = Source(lake, tmp_path, "edge", _EDGE, [(i, i + 1) for i in range(1, 7)])
    lake.create_stream_table("walk", _WALK, refresh_mode="DIFFERENTIAL")
    edge.append((7, 8))
    check(lake, "walk", "DIFFERENTIAL")
    edge.append((8, 9))
    with pytest.raises(QueryFailed, match="8 levels"):
        lake.refresh("walk")
    assert len(_rows(lake, "walk")) == 8
    edge.delete("a = 3")
    edge.append((1, 4))
    check(lake, "walk", "DIFFERENTIAL")
    assert len(_rows(lake, "walk")) == 9


def test_levels_below_another_operator_are_counted_from_the_anchor_on(
    lake: Lake, tmp_path: Path
) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(i, i + 1) for i in range(1, 8)])
    query = _WALK.replace("SELECT n, d FROM r", "SELECT COUNT(*) AS c FROM r")
    lake.create_stream_table("walk", query, refresh_mode="DIFFERENTIAL")
    edge.append((8, 9))
    with pytest.raises(QueryFailed, match="8 levels"):
        lake.refresh("walk")
    assert _rows(lake, "walk") == [(8,)]


@pytest.mark.parametrize("query", [pytest.param(_WALK, marks=pytest.mark.slow), _REACH])
def test_stored_rows_count_for_a_bound_of_rows(lake: Lake, tmp_path: Path, query: str) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(i, i + 1) for i in range(1, 4)])
    lake.spark.conf.set(_ROWS, "6")
    try:
        lake.create_stream_table("bounded", query, refresh_mode="DIFFERENTIAL")
    finally:
        lake.spark.conf.unset(_ROWS)
    edge.append((4, 5))
    check(lake, "bounded", "DIFFERENTIAL")
    edge.append((5, 6))
    with pytest.raises(QueryFailed, match="6 rows"):
        lake.refresh("bounded")
    edge.delete("a = 4")
    check(lake, "bounded", "DIFFERENTIAL")
    assert len(_rows(lake, "bounded")) == 4


@pytest.mark.slow
def test_a_chain_deeper_than_the_limit_of_a_plan(lake: Lake, tmp_path: Path) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(i, i + 1) for i in range(1, 151)])
    lake.spark.conf.set(_LEVELS, "1000")
    try:
        lake.create_stream_table("deep", _REACH, refresh_mode="DIFFERENTIAL")
    finally:
        lake.spark.conf.unset(_LEVELS)
    assert lake.table("deep").count() == 151
    edge.append((151, 152))
    check(lake, "deep", "DIFFERENTIAL")
    edge.delete("a = 100")
    check(lake, "deep", "DIFFERENTIAL")
    assert lake.table("deep").count() == 100


def test_union_in_every_mode_and_verified(lake: Lake, tmp_path: Path) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(1, 2), (2, 1), (2, 3)])
    lake.create_stream_table("differential", _REACH, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("full", _REACH, refresh_mode="FULL")
    lake.create_stream_table(
        "downstream", "SELECT COUNT(*) AS c FROM differential", refresh_mode="DIFFERENTIAL"
    )
    edge.append((3, 4))
    edge.delete("a = 1")
    check(lake, "differential", "DIFFERENTIAL")
    check(lake, "full", "FULL")
    assert _rows(lake, "differential") == _rows(lake, "full") == [(1,)]
    check(lake, "downstream", "DIFFERENTIAL")
    assert _rows(lake, "downstream") == [(1,)]


def test_many_rows_a_round_stay_in_spark(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runnel.refresh.rounds._FEW", 2)
    edges = [(1, i) for i in range(2, 9)] + [(i, i + 10) for i in range(2, 9)] + [(12, 20), (20, 1)]
    edge = Source(lake, tmp_path, "edge", _EDGE, edges)
    lake.create_stream_table("many", _REACH, refresh_mode="DIFFERENTIAL")
    edge.delete("a = 1 AND b < 6")
    edge.append((20, 3))
    check(lake, "many", "DIFFERENTIAL")
    assert [n for (n,) in _rows(lake, "many")] == [1, 6, 7, 8, 16, 17, 18]


def test_nulls_may_come_where_the_anchor_has_none(lake: Lake, tmp_path: Path) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(1, None), (1, 2)])
    lake.create_stream_table("nulls", _REACH, refresh_mode="DIFFERENTIAL")
    assert lake.table("nulls").where("n IS NULL").count() == 1
    edge.delete("b IS NULL")
    check(lake, "nulls", "DIFFERENTIAL")


def test_rows_of_recursion_by_union_may_meet_each_other(lake: Lake, tmp_path: Path) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(1, 2), (2, 3), (3, 1)])
    joined = f"{_PAIRS} SELECT a, b FROM r"
    lake.create_stream_table("joined", joined, refresh_mode="DIFFERENTIAL")
    assert lake.table("joined").count() == 9
    edge.append((3, 4))
    check(lake, "joined", "DIFFERENTIAL")
    edge.delete("a = 3 AND b = 1")
    check(lake, "joined", "DIFFERENTIAL")
    assert _rows(lake, "joined") == [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]


def test_what_spark_cannot_run_has_no_way_out_by_full(lake: Lake, tmp_path: Path) -> None:
    Source(lake, tmp_path, "edge", _EDGE, [(1, 2)])
    open_order = f"{_PAIRS} SELECT a, APPROX_PERCENTILE(b, 0.5) OVER (PARTITION BY a) AS p FROM r"
    with pytest.raises(InvalidQuery, match="recursion by UNION"):
        lake.create_stream_table("joined", open_order)


@pytest.mark.parametrize(
    "step",
    [
        "SELECT MAX(e.b) FROM r JOIN edge e ON e.a = r.n",
        "SELECT e.b FROM edge e LEFT JOIN r ON e.a = r.n",
        "SELECT CAST(e.b AS BIGINT) FROM edge e JOIN r ON e.a = r.n",
    ],
)
def test_what_spark_refuses_is_refused(lake: Lake, tmp_path: Path, step: str) -> None:
    Source(lake, tmp_path, "edge", _EDGE, [(1, 2)])
    query = f"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL {step}) SELECT n FROM r"
    with pytest.raises((InvalidQuery, NotDifferentiable)):
        lake.create_stream_table("refused", query, refresh_mode="DIFFERENTIAL")
