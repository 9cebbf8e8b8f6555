"""Atomic groups on Spark: readers see all members of a group advance at once, or none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refresh.helpers import Source, check, orders
from runnel.api import Lake
from runnel.catalog import StreamTable
from runnel.errors import Busy, QueryFailed
from runnel.refresh import attempt, execute, group
from runnel.refresh.attempt import lease_of, recovered, refresh_table
from runnel.refresh.pins import Pins

pytestmark = pytest.mark.spark

SUMS = "SELECT cust, SUM(amount) AS total FROM orders GROUP BY cust"
COUNTS = "SELECT cust, COUNT(*) AS n, 100 DIV MIN(cust) AS part FROM orders GROUP BY cust"
RATIO = "SELECT s.cust, s.total, c.n FROM sums s JOIN counts c ON s.cust = c.cust"
OLD = {10: ("12.50", 2), 11: ("1.25", 1)}
NEW = {10: ("12.50", 2), 11: ("1.25", 1), 12: ("9.00", 1)}


@pytest.fixture
def source(lake: Lake, tmp_path: Path) -> Source:
    made = orders(lake, tmp_path)
    lake.create_stream_table("sums", SUMS, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("counts", COUNTS, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table(
        "ratio", RATIO, refresh_mode="DIFFERENTIAL", diamond_consistency="atomic"
    )
    return made


def at_point(monkeypatch: pytest.MonkeyPatch, point: str, act: Callable[[], Any]) -> list[str]:
    """Act whenever a refresh reaches a point; the points that were reached are noted."""
    reached: list[str] = []

    def reach(name: str) -> None:
        reached.append(name)
        if name == point:
            act()

    for module in (attempt, execute, group):
        monkeypatch.setattr(module, "reach", reach)
    return reached


def by_view(lake: Lake) -> dict[int, tuple[str, int]]:
    """Sums and counts, joined by the reader."""
    rows = lake.sql("SELECT cust, total, n FROM sums s FULL JOIN counts c USING (cust)").collect()
    return {row["cust"]: (str(row["total"]), row["n"]) for row in rows}


def by_plan(lake: Lake) -> dict[int, tuple[str, int]]:
    totals = {row["cust"]: str(row["total"]) for row in lake.table("sums").collect()}
    return {row["cust"]: (totals[row["cust"]], row["n"]) for row in lake.table("counts").collect()}


def in_ratio(lake: Lake) -> dict[int, tuple[str, int]]:
    rows = lake.sql("SELECT * FROM ratio").collect()
    return {row["cust"]: (str(row["total"]), row["n"]) for row in rows}


def table(lake: Lake, name: str) -> StreamTable:
    found = lake._workspace.catalog.find(f"default.{name}")
    assert found is not None
    return found


def test_readers_see_the_whole_group_advance_at_once(
    lake: Lake, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.refresh()
    source.append((4, 12, "9.00"))
    seen: list[Any] = []

    def look() -> None:
        seen.append((by_view(lake), by_plan(lake), in_ratio(lake)))
        seen.append({s.name: s.epoch for s in lake.status()})

    reached = at_point(monkeypatch, "group.appended", look)
    results = {result.name: str(result.action) for result in lake.refresh()}
    assert results == dict.fromkeys(("sums", "counts", "ratio"), "DIFFERENTIAL")
    assert reached.count("group.appended") == 3
    assert seen == [(OLD, OLD, OLD), dict.fromkeys(("counts", "ratio", "sums"), 1)] * 3
    assert (by_view(lake), by_plan(lake), in_ratio(lake)) == (NEW, NEW, NEW)
    assert {s.epoch for s in lake.status()} == {2}
    for name in results:
        assert lake.verify(name).ok


def test_a_member_brings_its_group(lake: Lake, source: Source) -> None:
    source.append((4, 12, "9.00"))
    assert lake.refresh_order("sums") == ("counts", "sums", "ratio")
    assert lake.refresh("sums").action == "DIFFERENTIAL"
    assert in_ratio(lake) == NEW
    rows = [(row.name, row.is_convergence, str(row.consistency)) for row in lake.diamond_groups()]
    assert rows == [
        ("counts", False, "atomic"),
        ("sums", False, "atomic"),
        ("ratio", True, "atomic"),
    ]


def test_the_fan_in_never_sees_two_versions(
    lake: Lake, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.append((4, 12, "9.00"))
    more = iter(range(5, 100))
    at_point(monkeypatch, "group.appended", lambda: source.append((next(more), 12, "1.00")))
    check(lake, "ratio", "DIFFERENTIAL")
    assert in_ratio(lake) == NEW, "all members were pinned before the first of them was refreshed"
    assert check(lake, "ratio", "DIFFERENTIAL").data_timestamp is not None
    assert in_ratio(lake)[12] == ("12.00", 4)


def test_a_failing_member_leaves_the_others_where_they_were(lake: Lake, source: Source) -> None:
    source.append((4, 0, "9.00"), (5, 10, "1.00"))
    with pytest.raises(QueryFailed, match="zero"):
        lake.refresh()
    assert (by_view(lake), by_plan(lake), in_ratio(lake)) == (OLD, OLD, OLD)
    assert {s.epoch for s in lake.status()} == {1}
    assert {s.name for s in lake.status() if s.last_error} == {"counts"}
    for name in ("sums", "counts", "ratio"):
        assert lake.verify(name).ok
    source.delete("id = 4")
    results = {result.name: str(result.action) for result in lake.refresh()}
    assert results == dict.fromkeys(("sums", "counts", "ratio"), "DIFFERENTIAL")
    assert in_ratio(lake)[10] == ("13.50", 3)
    for name in results:
        assert lake.verify(name).ok


def test_the_last_member_failing_takes_back_what_the_others_appended(
    lake: Lake, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.append((4, 12, "9.00"))
    carry_out = group.carry_out

    def failing(workspace: Any, table: StreamTable, *rest: Any) -> Any:
        if str(table.name) == "ratio":
            raise QueryFailed("made to fail")
        return carry_out(workspace, table, *rest)

    monkeypatch.setattr(group, "carry_out", failing)
    with pytest.raises(QueryFailed, match="made to fail"):
        lake.refresh()
    assert (by_view(lake), by_plan(lake), in_ratio(lake)) == (OLD, OLD, OLD)
    assert lake.history("sums")[0].action == "SKIP"
    monkeypatch.setattr(group, "carry_out", carry_out)
    check(lake, "ratio", "DIFFERENTIAL")
    assert (by_view(lake), by_plan(lake), in_ratio(lake)) == (NEW, NEW, NEW)


class Killed(BaseException):
    pass


def half_committed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process "dies" between the commits of two members."""

    def die() -> None:
        raise Killed

    with monkeypatch.context() as patched:
        at_point(patched, "group.appended", die)
        patched.setattr(group._GroupRun, "_give_up", lambda self, error: None)
        with pytest.raises(Killed):
            lake.refresh()


def test_half_a_group_is_read_by_nobody(
    lake: Lake, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create_stream_table(
        "outside", "SELECT cust, n FROM counts WHERE n > 0", refresh_mode="DIFFERENTIAL"
    )
    source.append((4, 12, "9.00"))
    half_committed(lake, monkeypatch)
    workspace, outside = lake._workspace, table(lake, "outside")
    last = workspace.trace(table(lake, "counts")).last_commit()
    assert last is not None
    assert last.epoch == 2, "the first member has committed"
    result = refresh_table(workspace, outside.id, Pins(workspace).frontier(outside.sources))
    assert result.action == "NO_DATA", "its source shows nothing new"
    assert (by_view(lake), by_plan(lake), in_ratio(lake)) == (OLD, OLD, OLD)
    for name in ("sums", "counts", "ratio", "outside"):
        assert lake.verify(name).ok
    compacted = lake.compact("counts")
    assert compacted.since <= 1
    assert lake.verify("counts").ok
    results = {result.name: str(result.action) for result in lake.refresh()}
    assert set(results.values()) == {"DIFFERENTIAL"}
    for name in results:
        assert lake.verify(name).ok
    assert (by_view(lake), in_ratio(lake)) == (NEW, NEW)


def test_a_full_member_keeps_its_old_rows_until_the_group_is_seen(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sums", SUMS, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("counts", COUNTS, refresh_mode="FULL")
    lake.create_stream_table("ratio", RATIO, refresh_mode="FULL", diamond_consistency="atomic")
    source.append((4, 12, "9.00"))
    seen: list[Any] = []
    at_point(
        monkeypatch, "group.before_switch", lambda: seen.append((by_view(lake), in_ratio(lake)))
    )
    assert lake.refresh("ratio").action == "FULL"
    assert seen == [(OLD, OLD)]
    assert (by_view(lake), in_ratio(lake)) == (NEW, NEW)
    assert lake.verify("ratio").ok


def test_one_who_lost_a_member_takes_nothing_back(
    lake: Lake, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it finds pending is of those who hold the group now."""
    workspace, known = lake._workspace, table(lake, "sums")
    with workspace.leases.hold(lease_of(known.id)) as lost:
        pass
    told: list[str] = []

    def go_on() -> None:
        with pytest.raises(Busy) as caught:
            recovered(workspace, known.id, lost)
        told.append(caught.value.primary)

    source.append((4, 12, "9.00"))
    at_point(monkeypatch, "group.before_switch", go_on)
    check(lake, "ratio", "DIFFERENTIAL")
    assert len(told) == 1
    assert (by_view(lake), in_ratio(lake)) == (NEW, NEW)
    assert lake.status("sums").consecutive_errors == 0


def test_a_group_can_be_left_and_joined_again(lake: Lake, source: Source) -> None:
    source.append((4, 12, "9.00"))
    lake.refresh()
    assert [table(lake, name).grouped for name in ("sums", "counts", "ratio")] == [True] * 3
    lake.sql("ALTER STREAM TABLE ratio SET DIAMOND CONSISTENCY NONE")
    source.append((5, 13, "1.00"))
    assert lake.refresh("sums").action == "DIFFERENTIAL"
    assert [table(lake, name).grouped for name in ("sums", "counts", "ratio")] == [
        False,
        True,
        True,
    ]
    assert by_view(lake)[13] == ("1.00", None)
    check(lake, "ratio", "DIFFERENTIAL")
    lake.alter_stream_table("ratio", diamond_consistency="atomic")
    source.append((6, 13, "1.00"))
    check(lake, "counts", "DIFFERENTIAL")
    assert in_ratio(lake)[13] == ("2.00", 2)


def test_members_that_were_never_filled_are_filled_together(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    for name, query in (("sums", SUMS), ("counts", COUNTS), ("ratio", RATIO)):
        lake.create_stream_table(name, query, initialize=False, diamond_consistency="atomic")
    results = {result.name: str(result.action) for result in lake.refresh()}
    assert results == dict.fromkeys(("sums", "counts", "ratio"), "FULL")
    assert {str(s.state) for s in lake.status()} == {"ACTIVE"}
    assert (by_view(lake), in_ratio(lake)) == (OLD, OLD)
    assert lake.verify("ratio").ok


def test_members_that_are_made_in_one_call_are_a_group(lake: Lake, tmp_path: Path) -> None:
    source = orders(lake, tmp_path)
    queries = {"sums": SUMS, "counts": COUNTS, "ratio": RATIO}
    lake.create_stream_tables(queries, diamond_consistency="atomic")
    assert {g.name: str(g.consistency) for g in lake.diamond_groups()} == dict.fromkeys(
        queries, "atomic"
    )
    source.append((4, 12, "9.00"))
    lake.refresh("sums")
    assert (by_view(lake), in_ratio(lake)) == (NEW, NEW), "one member brings the others"
    with pytest.raises(Exception, match="'always' is not a diamond consistency"):
        lake.create_stream_tables({"x": "SELECT 1 AS n"}, diamond_consistency="always")


def test_an_option_that_is_none_of_them_is_refused(lake: Lake) -> None:
    with pytest.raises(Exception, match="'always' is not a diamond consistency"):
        lake.sql("CREATE STREAM TABLE x WITH (diamond_consistency = always) AS SELECT 1 AS n")


WIDENING = "ALTER TABLE orders SET TBLPROPERTIES (delta.enableTypeWidening = true)"


def test_a_member_that_keeps_something_else_starts_over_with_the_others(
    lake: Lake, tmp_path: Path
) -> None:
    """Groups are stored under their key: the columns are the same, what is kept for them is not."""
    orders(lake, tmp_path)
    lake.sql(WIDENING)
    query = "SELECT COUNT(*) AS n FROM orders GROUP BY cust"
    lake.create_stream_table("sizes", query, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("ids", "SELECT id AS n FROM orders", refresh_mode="DIFFERENTIAL")
    both = "SELECT s.n FROM sizes s JOIN ids i ON s.n = i.n"
    lake.create_stream_table(
        "both", both, refresh_mode="DIFFERENTIAL", diamond_consistency="atomic"
    )
    assert lake.diamond_groups()
    lake.sql("ALTER TABLE orders ALTER COLUMN cust TYPE BIGINT")
    lake.sql("INSERT INTO orders VALUES (4, 5000000000, 1.00)")
    check(lake, "sizes", "REINITIALIZE", "cust")
    for name in ("ids", "both"):
        assert lake.verify(name).ok
    assert sorted(row["n"] for row in lake.sql("SELECT * FROM sizes").collect()) == [1, 1, 2]
    lake.sql("INSERT INTO orders VALUES (5, 10, 1.00), (6, 6000000000, 1.00)")
    check(lake, "both", "DIFFERENTIAL")
    check(lake, "sizes", "NO_DATA")
    workspace = lake._workspace
    folders = {path.name for path in workspace.traces_path.iterdir()}
    assert folders == {table.incarnation for table in workspace.catalog.tables()}
