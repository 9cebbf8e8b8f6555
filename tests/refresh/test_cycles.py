"""Stream tables that read each other, on Spark: contents, definitions that open and close, errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import runnel
from refresh.helpers import Source, check
from runnel.api import Lake
from runnel.errors import (
    AlreadyExists,
    InUse,
    InvalidQuery,
    NotConverged,
    NotFound,
    RunnelError,
    UserError,
)
from runnel.refresh import plan
from runnel.refresh.cost import Prediction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_EDGE = {"a": "int", "b": "int"}
_REACH = {
    "reach_a": "SELECT DISTINCT e.a, rb.b FROM edge e JOIN reach_b rb ON e.b = rb.a",
    "reach_b": "SELECT a, b FROM edge UNION SELECT ra.a, e.b FROM reach_a ra JOIN edge e ON ra.b = e.a",
}
_TWICE = "SELECT a, b FROM edge UNION SELECT x.a, y.b FROM path x JOIN path y ON x.b = y.a"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, clean_names: None) -> Iterator[Lake]:
    with runnel.connect(tmp_path / "lake", spark=spark, allow_circular=True) as made:
        yield made


def _rows(lake: Lake, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.table(name).collect())


def _check_all(lake: Lake, action: str, *names: str) -> None:
    """Refresh everything; assert what was done to these tables, and that they hold their queries."""
    done = {result.name: result.action for result in lake.refresh()}
    assert {name: done[name] for name in names} == dict.fromkeys(names, action)
    for name in names:
        verified = lake.verify(name)
        assert verified.ok, str(verified)


def test_two_tables_that_read_each_other(lake: Lake, tmp_path: Path) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(1, 2), (2, 3)])
    made = lake.create_stream_tables(_REACH, refresh_mode="DIFFERENTIAL")
    assert [s.name for s in made] == ["reach_a", "reach_b"]
    assert _rows(lake, "reach_a") == [(1, 3)]
    assert _rows(lake, "reach_b") == [(1, 2), (2, 3)]
    edge.append((3, 4), (4, 2))
    check(lake, "reach_a", "DIFFERENTIAL")
    check(lake, "reach_b", "NO_DATA")
    edge.delete("a = 1")
    _check_all(lake, "DIFFERENTIAL", "reach_a", "reach_b")
    status = lake.scc_status()[0]
    assert status.members == ("reach_a", "reach_b")
    assert status.converged
    assert status.iterations
    assert status.action in ("DIFFERENTIAL", "FULL"), "what was measured decides"


@pytest.mark.parametrize(
    ("differential", "full", "action"), [(1.0, 9.0, "DIFFERENTIAL"), (9.0, 1.0, "FULL")]
)
def test_after_a_delete_the_cheaper_way_is_taken(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, differential: float, full: float,
    action: str,
) -> None:  # fmt: skip
    edge = Source(lake, tmp_path, "edge", _EDGE, [(1, 2), (2, 3), (3, 1), (7, 8)])
    lake.create_stream_tables(_REACH, refresh_mode="AUTO")
    planted = Prediction(differential, full, is_measured=True)
    monkeypatch.setattr(plan, "predict", lambda *_, **__: planted)
    edge.delete("a = 3")
    lake.refresh()
    newest = next(entry for entry in lake.history() if entry.name.startswith("cycle of"))
    assert newest.action == action
    assert f"differential {differential:.1f} s, full {full:.1f} s predicted" in newest.reason
    assert lake.scc_status()[0].action == action
    assert _rows(lake, "reach_b") == [(1, 2), (2, 3), (7, 8)]
    for name in _REACH:
        assert lake.verify(name).ok


@pytest.mark.slow
def test_a_strict_cycle_starts_from_empty_where_that_was_measured_to_be_cheaper(
    lake: Lake, tmp_path: Path
) -> None:
    """Filling it took no round, following a row that came twenty: so that would one that goes."""
    Source(lake, tmp_path, "edge", _EDGE, [(n, n + 1) for n in range(20)])
    node = Source(lake, tmp_path, "start", {"n": "int"}, [])
    lake.create_stream_tables(
        {
            "odd": "SELECT DISTINCT e.b AS n FROM even v JOIN edge e ON e.a = v.n",
            "even": "SELECT n FROM start UNION SELECT e.b FROM odd o JOIN edge e ON e.a = o.n",
        },
        refresh_mode="DIFFERENTIAL",
    )
    node.append((0,), (14,))
    _check_all(lake, "DIFFERENTIAL", "odd", "even")
    node.delete("n = 0")
    _check_all(lake, "DIFFERENTIAL", "odd", "even")
    newest = next(entry for entry in lake.history() if entry.name.startswith("cycle of"))
    assert (newest.action, "s predicted" in newest.reason) == ("FULL", True), newest.reason
    assert [n for (n,) in _rows(lake, "even")] == [14, 16, 18, 20]


def test_rows_that_only_support_each_other_go(lake: Lake, tmp_path: Path) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(0, 1), (1, 2), (2, 1)])
    node = Source(lake, tmp_path, "start", {"n": "int"}, [(0,)])
    lake.create_stream_tables(
        {
            "odd": "SELECT DISTINCT e.b AS n FROM even v JOIN edge e ON e.a = v.n",
            "even": "SELECT n FROM start UNION SELECT e.b FROM odd o JOIN edge e ON e.a = o.n",
        },
        refresh_mode="DIFFERENTIAL",
    )
    assert _rows(lake, "odd") == [(1,)]
    assert _rows(lake, "even") == [(0,), (2,)]
    node.delete("n = 0")
    _check_all(lake, "DIFFERENTIAL", "odd", "even")
    assert _rows(lake, "odd") == _rows(lake, "even") == []
    edge.append((2, 3))
    node.append((2,))
    check(lake, "even", "DIFFERENTIAL")
    assert _rows(lake, "even") == [(2,)]


def test_a_table_that_reads_itself_twice_in_every_mode(lake: Lake, tmp_path: Path) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(i, i + 1) for i in range(6)])
    lake.create_stream_table("path", _TWICE, refresh_mode="DIFFERENTIAL")
    assert len(_rows(lake, "path")) == 21
    edge.delete("a = 3")
    check(lake, "path", "DIFFERENTIAL")
    lake.alter_stream_table("path", refresh_mode="FULL")
    edge.append((3, 4))
    check(lake, "path", "FULL")
    assert len(_rows(lake, "path")) == 21
    assert lake.scc_status()[0].action == "FULL"
    lake.alter_stream_table("path", refresh_mode="AUTO")
    edge.append((6, 7))
    lake.refresh("path")
    assert lake.verify("path").ok


def test_a_bag_in_a_cycle_counts_its_rows(lake: Lake, tmp_path: Path) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(1, 2), (1, 3), (2, 4), (3, 4)])
    lake.create_stream_tables(
        {
            "hop": "SELECT r.a, e.b FROM reach r JOIN edge e ON r.b = e.a",
            "reach": "SELECT a, b FROM edge UNION SELECT a, b FROM hop",
        },
        refresh_mode="DIFFERENTIAL",
    )
    assert _rows(lake, "hop") == [(1, 4), (1, 4)]
    edge.append((4, 1), (2, 4))
    _check_all(lake, "DIFFERENTIAL", "hop", "reach")
    edge.delete("a = 3")
    _check_all(lake, "DIFFERENTIAL", "hop", "reach")


def test_what_reads_a_cycle_from_outside_gets_its_changes(lake: Lake, tmp_path: Path) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(1, 2), (2, 3)])
    lake.create_stream_tables(_REACH, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table(
        "fan", "SELECT a, COUNT(*) AS n FROM reach_b GROUP BY a", refresh_mode="DIFFERENTIAL"
    )
    edge.append((3, 4))
    check(lake, "fan", "DIFFERENTIAL")
    assert _rows(lake, "fan") == [(1, 2), (2, 1), (3, 1)]
    names = [s.name for s in lake.status()]
    assert names == ["fan", "reach_a", "reach_b"]
    assert lake.refresh_order() == ("reach_a", "reach_b", "fan")
    assert {r.name for r in lake.refresh()} == set(names)
    edges = {str(e) for e in lake.graph().edges}
    assert {"reach_b -> reach_a", "reach_a -> reach_b", "edge -> reach_a"} <= edges
    assert not any("__cycle" in e for e in edges)
    assert lake.status("reach_a").sources == ("edge", "reach_b")
    told = {h.name: h for h in lake.history(limit=50)}
    assert told["cycle of reach_a, reach_b"].iterations is not None


def test_tables_defined_together_without_a_cycle(lake: Lake, tmp_path: Path) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(1, 2)])
    lake.create_stream_tables(
        {"second": "SELECT COUNT(*) AS n FROM first", "first": "SELECT a FROM edge"},
        refresh_mode="DIFFERENTIAL",
    )
    edge.append((2, 3))
    check(lake, "second", "DIFFERENTIAL")
    assert not lake.scc_status()


def test_all_or_nothing(lake: Lake, tmp_path: Path) -> None:
    Source(lake, tmp_path, "edge", _EDGE, [(1, 2)])
    broken = {**_REACH, "zero": "SELECT 1 / (a - 1) AS x FROM edge"}
    with pytest.raises(RunnelError):
        lake.create_stream_tables(broken)
    assert not lake.status()
    assert not lake.scc_status()
    assert not any((lake._workspace.traces_path).glob("*"))


def test_a_name_that_is_taken_is_left_alone(lake: Lake, tmp_path: Path) -> None:
    Source(lake, tmp_path, "edge", _EDGE, [(1, 2)])
    lake.create_stream_table("reach_b", "SELECT a FROM edge")
    with pytest.raises(AlreadyExists, match="reach_b"):
        lake.create_stream_tables(_REACH)
    assert [s.name for s in lake.status()] == ["reach_b"]
    assert _rows(lake, "reach_b") == [(1,)]
    assert lake.verify("reach_b").ok


def test_without_the_setting_the_way_round_is_told(
    spark: SparkSession, tmp_path: Path, clean_names: None
) -> None:
    with runnel.connect(tmp_path / "lake", spark=spark) as strict:
        Source(strict, tmp_path, "edge", _EDGE, [(1, 2)])
        with pytest.raises(UserError, match="would depend on itself") as caught:
            strict.create_stream_tables(_REACH)
        assert caught.value.detail == "reach_a -> reach_b -> reach_a"
        assert "allow_circular" in (caught.value.hint or "")
        with pytest.raises(UserError, match="path would depend on itself"):
            strict.create_stream_table("path", _TWICE)
        assert not strict.status()


def test_alter_closes_and_opens_a_cycle(lake: Lake, tmp_path: Path) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(1, 2), (2, 3)])
    lake.create_stream_table("reach_b", "SELECT DISTINCT a, b FROM edge")
    lake.create_stream_table("reach_a", _REACH["reach_a"], refresh_mode="DIFFERENTIAL")
    lake.sql(f"ALTER STREAM TABLE reach_b AS {_REACH['reach_b']}")
    assert lake.scc_status()[0].members == ("reach_a", "reach_b")
    edge.append((3, 4))
    lake.refresh()
    assert lake.verify("reach_a").ok
    assert lake.verify("reach_b").ok
    assert (1, 4) in _rows(lake, "reach_b")
    lake.sql("ALTER STREAM TABLE reach_b AS SELECT a, b FROM edge")
    assert not lake.scc_status()
    assert lake.status("reach_a").sources == ("edge", "reach_b")
    edge.append((4, 5))
    for name in ("reach_a", "reach_b"):
        lake.refresh(name)
        assert lake.verify(name).ok
    lake.drop_stream_table("reach_a")
    lake.drop_stream_table("reach_b")
    assert not any((lake._workspace.traces_path).glob("*"))


def test_drop_takes_all_or_refuses(lake: Lake, tmp_path: Path) -> None:
    Source(lake, tmp_path, "edge", _EDGE, [(1, 2)])
    lake.create_stream_tables(_REACH)
    lake.create_stream_table("fan", "SELECT a FROM reach_b")
    with pytest.raises(InUse, match="reach_a"):
        lake.drop_stream_table("reach_b")
    dropped = lake.drop_stream_table("reach_b", cascade=True)
    assert set(dropped) == {"reach_a", "reach_b", "fan"}
    assert not lake.status()
    assert not any((lake._workspace.traces_path).glob("*"))
    lake.create_stream_table("path", _TWICE)
    assert lake.drop_stream_table("path") == ("path",)


def test_what_is_not_monotone_is_refused_by_name(lake: Lake, tmp_path: Path) -> None:
    Source(lake, tmp_path, "edge", _EDGE, [(1, 2)])
    with pytest.raises(InvalidQuery, match=r"path cannot read itself.* the aggregate MAX"):
        lake.create_stream_table(
            "path", "SELECT a, b FROM edge UNION SELECT a, MAX(b) FROM path GROUP BY a"
        )
    with pytest.raises(InvalidQuery, match="counted without end"):
        lake.create_stream_table("path", _TWICE.replace("UNION", "UNION ALL"))
    assert not lake.status()


def test_a_cycle_without_end_keeps_the_old_contents(
    spark: SparkSession, tmp_path: Path, clean_names: None
) -> None:
    settings: dict[str, Any] = {"allow_circular": True, "max_fixpoint_iterations": 8}
    with runnel.connect(tmp_path / "lake", spark=spark, **settings) as lake:
        seed = Source(lake, tmp_path, "seed", {"n": "int", "most": "int"}, [(1, 5)])
        query = (
            "SELECT n, most FROM seed UNION SELECT n + 1, most FROM counting WHERE n + 1 <= most"
        )
        lake.create_stream_table("counting", query, refresh_mode="DIFFERENTIAL")
        assert [n for n, _ in _rows(lake, "counting")] == [1, 2, 3, 4, 5]
        seed.append((1, 100))
        with pytest.raises(NotConverged, match="8 iterations"):
            lake.refresh("counting")
        assert [n for n, _ in _rows(lake, "counting")] == [1, 2, 3, 4, 5]
        assert lake.scc_status()[0].converged is False
        assert "8 iterations" in (lake.status("counting").last_error or "")
        seed.delete("most = 100")
        check(lake, "counting", "NO_DATA")
        assert lake.scc_status()[0].converged


def test_the_table_behind_a_cycle_is_not_the_users(lake: Lake, tmp_path: Path) -> None:
    Source(lake, tmp_path, "edge", _EDGE, [(1, 2)])
    lake.create_stream_tables(_REACH)
    hidden = next(t for t in lake._workspace.catalog.tables() if t.keeps_cycle)
    with pytest.raises(NotFound):
        lake.refresh(str(hidden.name))
    with pytest.raises(UserError, match="reserved"):
        lake.create_stream_table("__cycle_mine", "SELECT a FROM edge")


def test_a_source_that_is_replaced_starts_the_cycle_anew(lake: Lake, tmp_path: Path) -> None:
    lake.sql("CREATE TABLE edge (a INT, b INT) USING delta")
    lake.sql("INSERT INTO edge VALUES (1, 2), (2, 3)")
    lake.create_stream_tables(_REACH, refresh_mode="DIFFERENTIAL")
    lake.sql("DROP TABLE edge")
    lake.sql("CREATE TABLE edge (a INT, b INT) USING delta")
    lake.sql("INSERT INTO edge VALUES (5, 6), (6, 7)")
    lake.refresh()
    assert _rows(lake, "reach_a") == [(5, 7)]
    assert lake.verify("reach_a").ok
    assert lake.verify("reach_b").ok


def test_verify_finds_a_row_that_should_not_be_there(lake: Lake, tmp_path: Path) -> None:
    """What is stored is not asked: R is damaged, and both ways of reading it see the damage."""
    Source(lake, tmp_path, "edge", _EDGE, [(1, 2), (2, 3)])
    lake.create_stream_tables(_REACH, refresh_mode="DIFFERENTIAL")
    hidden = next(t for t in lake._workspace.catalog.tables() if t.keeps_cycle)
    member = next(t for t in lake._workspace.catalog.tables() if str(t.name) == "reach_a")
    assert member.frontier is not None
    names = [c.name for c in member.layout.stored]
    frame = lake.spark.sql("SELECT 7 AS a, 7 AS b, CAST(1 AS BIGINT) AS __weight")
    metadata = {"frontier": member.frontier.to_json()}
    lake._workspace.trace(member).append(
        lake.spark, frame.toDF(*names, "__weight"), member.epoch + 1, metadata
    )
    result = lake.verify("reach_a")
    assert (result.missing, result.unexpected) == (0, 1)
    assert lake.verify("reach_b").ok
    assert hidden.epoch == 1


def test_created_without_contents_and_filled_later(lake: Lake, tmp_path: Path) -> None:
    Source(lake, tmp_path, "edge", _EDGE, [(1, 2), (2, 3)])
    lake.create_stream_tables(_REACH, initialize=False)
    assert lake.status("reach_a").state == "UNINITIALIZED"
    lake.refresh()
    assert _rows(lake, "reach_a") == [(1, 3)]
    assert lake.status("reach_a").state == "ACTIVE"
    assert lake.verify("reach_b").ok


def test_a_cycle_through_a_view(lake: Lake, tmp_path: Path) -> None:
    """A table reads itself through a view; then the view, and so the recursion, becomes another."""
    edge = Source(lake, tmp_path, "edge", _EDGE, [(1, 2), (2, 3)])
    lake.create_stream_table("path", "SELECT DISTINCT a, b FROM edge")
    lake.sql("CREATE VIEW steps AS SELECT * FROM path WHERE a < 9")
    query = "SELECT a, b FROM edge UNION SELECT s.a, e.b FROM steps s JOIN edge e ON s.b = e.a"
    lake.alter_stream_table("path", query=query, refresh_mode="DIFFERENTIAL")
    assert [s.members for s in lake.scc_status()] == [("path",)]
    edge.append((3, 4))
    _check_all(lake, "DIFFERENTIAL", "path")
    assert (1, 4) in _rows(lake, "path")
    edge.delete("a = 2")
    _check_all(lake, "DIFFERENTIAL", "path")
    assert _rows(lake, "path") == [(1, 2), (3, 4)]
    edge.append((2, 3))
    lake.sql("CREATE OR REPLACE VIEW steps AS SELECT * FROM path WHERE a < 2")
    lake.refresh()
    assert lake.verify("path").ok
    assert _rows(lake, "path") == [(1, 2), (1, 3), (1, 4), (2, 3), (3, 4)]


def test_two_tables_that_read_each_other_through_views(lake: Lake, tmp_path: Path) -> None:
    edge = Source(lake, tmp_path, "edge", _EDGE, [(1, 2), (2, 3)])
    lake.create_stream_table("reach_b", "SELECT DISTINCT a, b FROM edge")
    lake.sql("CREATE VIEW seen_b AS SELECT b AS b, a AS a FROM reach_b")
    lake.create_stream_table("reach_a", _REACH["reach_a"].replace("reach_b", "seen_b"))
    lake.sql("CREATE VIEW seen_a AS SELECT * FROM reach_a")
    query = _REACH["reach_b"].replace("reach_a", "seen_a")
    lake.create_stream_table("reach_b", query, or_replace=True)
    assert [s.members for s in lake.scc_status()] == [("reach_a", "reach_b")]
    edge.append((3, 4), (4, 1))
    lake.refresh()
    assert lake.verify("reach_a").ok
    assert lake.verify("reach_b").ok
    assert (1, 4) in _rows(lake, "reach_b")


def test_a_cycle_through_a_view_that_cannot_be_made_is_refused(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    """Without the setting; by redefining a view; over a view of a table that is not there."""
    Source(lake, tmp_path, "edge", _EDGE, [(1, 2)])
    lake.create_stream_table("path", "SELECT DISTINCT a, b FROM edge")
    lake.create_stream_table("below", "SELECT a, b FROM path")
    lake.sql("CREATE VIEW steps AS SELECT a, b FROM below")
    query = "SELECT a, b FROM edge UNION SELECT a, b FROM steps"
    lake.sql("CREATE VIEW ends AS SELECT a, b FROM edge")
    lake.create_stream_table("first", "SELECT a, b FROM ends")
    lake.create_stream_table("second", "SELECT a, b FROM first")
    lake.sql("CREATE OR REPLACE VIEW ends AS SELECT a, b FROM second")
    with pytest.raises(RunnelError, match="first would depend on itself") as found:
        lake.refresh("first")
    assert "ALTER STREAM TABLE first AS SELECT a, b FROM ends" in (found.value.hint or "")
    lake.sql("CREATE OR REPLACE VIEW ends AS SELECT a, b FROM edge")
    lake.create_stream_table("other", "SELECT a, b FROM edge")
    lake.sql("CREATE VIEW others AS SELECT a, b FROM other")
    lake.drop_stream_table("other")
    with pytest.raises(RunnelError, match="other"):
        lake.create_stream_table("other", "SELECT a, b FROM edge UNION SELECT a, b FROM others")
    lake.close()
    with runnel.connect(tmp_path / "lake", spark=spark) as strict:
        with pytest.raises(UserError, match="path would depend on itself") as caught:
            strict.alter_stream_table("path", query=query)
        assert caught.value.detail == "path -> below -> path"
        assert "allow_circular=True" in (caught.value.hint or "")


def test_a_view_that_makes_another_recursion_of_a_cycle_says_how_to_go_on(
    lake: Lake, tmp_path: Path
) -> None:
    """A member that was a set, and is none any more."""
    edge = Source(lake, tmp_path, "edge", _EDGE, [(1, 2), (2, 3)])
    lake.create_stream_table("reach_b", "SELECT DISTINCT a, b FROM edge")
    joined = "e.a, rb.b FROM edge e JOIN reach_b rb ON e.b = rb.a"
    lake.sql(f"CREATE VIEW ways AS SELECT DISTINCT {joined}")
    lake.create_stream_table("reach_a", "SELECT a, b FROM ways")
    lake.alter_stream_table("reach_b", query=_REACH["reach_b"])
    lake.sql(f"CREATE OR REPLACE VIEW ways AS SELECT {joined}")
    with pytest.raises(RunnelError, match="no longer gives the stored columns") as found:
        lake.refresh()
    assert "ALTER STREAM TABLE reach_" in (found.value.hint or "")
    assert _rows(lake, "reach_a") == [(1, 3)], "it keeps what it holds"
    lake.sql("ALTER STREAM TABLE reach_a AS SELECT a, b FROM ways")
    edge.append((3, 4))
    lake.refresh()
    for name in _REACH:
        assert lake.verify(name).ok
