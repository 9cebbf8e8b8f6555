"""Parts of a query belong to its table: made, altered, suspended and dropped with it, and hidden."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import write_deltalake

import runnel
from kit.lake_backend import arrow_rows
from refresh.helpers import Source, check
from refresh.parts_kit import (
    ITEMS,
    JOINED,
    LINES,
    ROWS,
    actions_of_parts,
    folders,
    parts_in,
    rows_of,
)
from runnel.api import Lake
from runnel.errors import InUse, NotFound, RunnelError, UserError
from runnel.refresh import attempt, execute, recording

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, clean_names: None) -> Iterator[Lake]:
    """With parts of queries over tables of any size."""
    with runnel.connect(tmp_path / "lake", spark=spark, inner_trace_rows=0) as made:
        yield made


@pytest.fixture
def lines(lake: Lake, tmp_path: Path) -> Source:
    return Source(lake, tmp_path, "lines", LINES, ROWS)


@pytest.fixture
def items(lake: Lake, tmp_path: Path) -> Source:
    return Source(lake, tmp_path, "items", *ITEMS)


@pytest.fixture
def totals(lake: Lake, lines: Source, items: Source) -> None:
    lake.create_stream_table("totals", JOINED, refresh_mode="DIFFERENTIAL")


def test_a_part_is_not_seen(lake: Lake, lines: Source, totals: None) -> None:
    lines.append((5, 10, 1, "1.00"))
    (result,) = lake.refresh()
    assert (result.name, result.action) == ("totals", "DIFFERENTIAL")
    assert 0 < result.phases["parts"] < result.seconds
    assert [status.name for status in lake.status()] == ["totals"]
    assert lake.status("totals").sources == ("items", "lines")
    assert {str(edge) for edge in lake.graph().edges} == {"items -> totals", "lines -> totals"}
    assert [stats.name for stats in lake.stats()] == ["totals"]
    assert lake.refresh_order() == ("totals",)
    (part,) = parts_in(lake)
    with pytest.raises(NotFound):
        lake.status(part.name)
    with pytest.raises(UserError, match="reserved"):
        lake.create_stream_table("__part_mine", "SELECT * FROM lines")
    told = [entry for entry in lake.history() if entry.name == "part 1 of totals"]
    assert [entry.action for entry in told] == ["DIFFERENTIAL", "FULL"]
    assert {entry.name for entry in lake.history("totals")} == {"totals"}


def test_explain_shows_the_parts(lake: Lake, totals: None) -> None:
    told = lake.explain("totals")
    assert told.differentiable
    grouping = "SELECT item, SUM(n * price) AS total FROM lines GROUP BY item"
    assert [part.endswith(grouping) for part in told.parts] == [True]
    assert "parts kept in traces of their own\n  part 1 of totals" in str(told)
    assert lake.explain(query=JOINED).parts[0].startswith("part 1 of query")
    assert lake.explain(query=JOINED, refresh_mode="FULL").parts == ()


def test_what_is_not_cut(lake: Lake, lines: Source, items: Source) -> None:
    lake.sql("CREATE TEMPORARY VIEW costly AS SELECT * FROM lines WHERE price > 1")
    grouping = "SELECT item, SUM(n) AS total FROM lines GROUP BY item"
    lake.create_stream_table("by_full", JOINED, refresh_mode="FULL")
    lake.create_stream_table("by_view", JOINED.replace("lines", "costly"))
    lake.create_stream_table("by_time", f"{JOINED} WHERE current_date() > DATE '2020-01-01'")
    lake.create_stream_table("the_whole", f"SELECT item FROM ({grouping}) AS s WHERE total > 3")
    assert parts_in(lake) == []
    assert not any(table.is_cut for table in lake._workspace.catalog.tables())


def test_small_tables_and_the_setting(
    spark: SparkSession, tmp_path: Path, clean_names: None
) -> None:
    for rows in (1_000_000, 7, -1):
        with runnel.connect(tmp_path / f"lake{rows}", spark=spark, inner_trace_rows=rows) as lake:
            if rows == 1_000_000:
                Source(lake, tmp_path, "lines", LINES, ROWS)
                Source(lake, tmp_path, "items", *ITEMS)
            lake.create_stream_table("totals", JOINED)
            assert parts_in(lake) == []
            lake.drop_stream_table("totals")
    with runnel.connect(tmp_path / "lake6", spark=spark, inner_trace_rows=6) as lake:
        lake.create_stream_table("totals", JOINED)
        assert len(parts_in(lake)) == 1


def test_drop_takes_the_part(lake: Lake, lines: Source, totals: None) -> None:
    lake.create_stream_table("below", "SELECT SUM(total) AS t FROM totals")
    with pytest.raises(InUse, match="below"):
        lake.drop_stream_table("totals")
    assert len(folders(lake)) == 3
    assert lake.drop_stream_table("totals", cascade=True) == ("totals", "below")
    assert not lake._workspace.catalog.tables()
    assert folders(lake) == set()
    assert list((lake._workspace.path / "_runnel" / "definitions").glob("*.json")) == []


def test_what_is_read_through_a_part(lake: Lake, lines: Source, items: Source) -> None:
    lake.create_stream_table("cheap", "SELECT * FROM lines WHERE price < 3")
    lake.create_stream_table("goods", "SELECT * FROM items")
    query = JOINED.replace("lines", "cheap").replace("items", "goods")
    lake.create_stream_table("totals", query)
    with pytest.raises(InUse, match="depend on it: totals"):
        lake.drop_stream_table("cheap")
    # The part does not read what goes, but it goes with its table.
    assert lake.drop_stream_table("goods", cascade=True) == ("goods", "totals")
    assert [str(t.name) for t in lake._workspace.catalog.tables()] == ["cheap"]


def test_a_cycle_takes_the_table_whole(
    spark: SparkSession, lake: Lake, lines: Source, items: Source
) -> None:
    with runnel.connect(
        lake._workspace.path, spark=spark, inner_trace_rows=0, allow_circular=True
    ) as circular:
        lake.create_stream_table("goods", "SELECT DISTINCT id, name FROM items")
        query = JOINED.replace("items", "goods").replace("s.total", "CAST(s.item AS INT) AS item")
        lake.create_stream_table("totals", query)
        assert len(parts_in(lake)) == 1
        around = "SELECT id, name FROM items UNION SELECT item + 1, name FROM totals"
        circular.alter_stream_table("goods", query=around)
        assert parts_in(lake) == []
        lines.append((9, 13, 30, "1.00"))
        circular.refresh()
        assert circular.verify("totals").ok
        assert folders(lake) == {t.incarnation for t in lake._workspace.catalog.tables()}
        circular.alter_stream_table("goods", query="SELECT DISTINCT id, name FROM items")
        assert len(parts_in(lake)) == 1
        circular.refresh()
        assert circular.verify("totals").ok


def test_a_create_that_fails_leaves_nothing(lake: Lake, lines: Source, items: Source) -> None:
    with pytest.raises(RunnelError):
        lake.create_stream_table("broken", JOINED.replace("s.total", "1 / (s.total - 13.50) AS x"))
    assert not lake._workspace.catalog.tables()
    assert folders(lake) == set()


def test_alter_cuts_anew(lake: Lake, lines: Source, totals: None) -> None:
    (before,) = parts_in(lake)
    lake.alter_stream_table("totals", query=JOINED.replace("SUM(n * price)", "MAX(n)"))
    (after,) = parts_in(lake)
    assert after.id != before.id
    assert folders(lake) == {t.incarnation for t in lake._workspace.catalog.tables()}
    lines.append((9, 10, 30, "1.00"))
    check(lake, "totals", "DIFFERENTIAL")
    lake.create_stream_table("totals", "SELECT name FROM items", or_replace=True)
    assert parts_in(lake) == []
    assert len(folders(lake)) == 1
    lake.alter_stream_table("totals", query=JOINED, refresh_mode="AUTO")
    assert len(parts_in(lake)) == 1
    assert lake.verify("totals").ok


def test_the_mode_is_that_of_the_table(lake: Lake, lines: Source, totals: None) -> None:
    lake.alter_stream_table("totals", refresh_mode="FULL")
    lines.append((9, 10, 30, "1.00"))
    check(lake, "totals", "FULL")
    assert actions_of_parts(lake) == ["FULL"]
    lake.alter_stream_table("totals", refresh_mode="IMMEDIATE")
    assert [part.mode for part in parts_in(lake)] == ["DIFFERENTIAL"]
    lake.sql("INSERT INTO lines VALUES (9, 11, 2, 1.00)")
    assert lake.history("totals")[0].action == "DIFFERENTIAL"
    assert lake.verify("totals").ok
    lines.append((9, 12, 2, "1.00"))
    assert ("screw", 15.5) in [(name, float(total)) for name, total in rows_of(lake, "totals")]


def test_suspended_and_resumed_together(lake: Lake, lines: Source, totals: None) -> None:
    lake.create_stream_table("below", "SELECT SUM(total) AS t FROM totals")
    lake.suspend("totals")
    lines.append((9, 10, 30, "1.00"))
    done = {result.name: result for result in lake.refresh()}
    assert done["totals"].reason == "the table is suspended"
    assert done["below"].reason == "totals, which it is computed from, is suspended"
    assert actions_of_parts(lake) == ["SKIP"]
    lake.resume("totals")
    assert {part.state for part in parts_in(lake)} == {"ACTIVE"}
    check(lake, "totals", "DIFFERENTIAL")


def test_not_filled_at_first(lake: Lake, lines: Source, items: Source) -> None:
    lake.create_stream_table("totals", JOINED, refresh_mode="DIFFERENTIAL", initialize=False)
    check(lake, "totals", "FULL")
    lines.append((9, 10, 30, "1.00"))
    check(lake, "totals", "DIFFERENTIAL")


def test_another_process_goes_on(
    spark: SparkSession, lake: Lake, lines: Source, totals: None
) -> None:
    with runnel.connect(lake._workspace.path, spark=spark) as other:
        lines.append((9, 10, 30, "1.00"))
        check(other, "totals", "DIFFERENTIAL")
        assert actions_of_parts(other) == ["DIFFERENTIAL"]
    check(lake, "totals", "NO_DATA")


def test_several_tables_at_once(lake: Lake, lines: Source, items: Source) -> None:
    lake.create_stream_tables(
        {"totals": JOINED, "best": "SELECT MAX(total) AS most FROM totals"},
        refresh_mode="DIFFERENTIAL",
    )
    assert [part.label for part in parts_in(lake)] == ["part 1 of totals"]
    lines.append((9, 10, 30, "1.00"))
    check(lake, "best", "DIFFERENTIAL")
    assert lake.verify("totals").ok


def test_verify_finds_a_part_that_is_wrong(
    lake: Lake, lines: Source, totals: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It evaluates the whole query over the user's tables, not over what the part holds."""
    work = execute._differential

    def forgetful(bound: Any, plan: Any, *others: Any) -> None:
        if plan.table.part_of is None:
            work(bound, plan, *others)

    monkeypatch.setattr(execute, "_differential", forgetful)
    lines.append((9, 10, 30, "1.00"))
    assert lake.refresh("totals").action == "NO_DATA"
    verified = lake.verify("totals")
    assert (verified.ok, verified.missing, verified.unexpected) == (False, 1, 1)


@pytest.mark.parametrize(
    ("point", "times"),
    [
        # The slow ones are as for a table without parts.
        pytest.param("refresh.before_plan", 1, marks=pytest.mark.slow),
        ("refresh.before_plan", 2),
        ("refresh.before_record", 1),
        pytest.param("refresh.before_record", 2, marks=pytest.mark.slow),
    ],
)
def test_ended_between_the_part_and_the_table(
    point: str, times: int, lake: Lake, lines: Source, totals: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[str] = []

    def ending(name: str) -> None:
        reached.append(name)
        if reached.count(point) == times:
            raise KeyboardInterrupt

    for module in (attempt, recording):
        monkeypatch.setattr(module, "reach", ending)
    lines.append((9, 10, 30, "1.00"))
    with pytest.raises(KeyboardInterrupt):
        lake.refresh("totals")
    monkeypatch.undo()
    assert lake.verify("totals").ok
    lines.append((9, 11, 2, "1.00"))
    check(lake, "totals", "DIFFERENTIAL")
    assert actions_of_parts(lake) == ["DIFFERENTIAL"]


def test_a_source_of_another_type(lake: Lake, lines: Source, items: Source) -> None:
    """The part has other columns then; the table goes on if its own are the same."""
    query = JOINED.replace("s.total", "CAST(s.total AS DECIMAL(30,2)) AS total")
    lake.create_stream_table("totals", query, refresh_mode="DIFFERENTIAL")
    (before,) = parts_in(lake)
    retyped = {**LINES, "price": "decimal(9,2)"}
    rows = arrow_rows(retyped, [*ROWS, (9, 10, 30, "1.00")])
    write_deltalake(lines.path, rows, mode="overwrite", schema_mode="overwrite")
    check(lake, "totals", "REINITIALIZE")
    (after,) = parts_in(lake)
    assert after.layout != before.layout
    assert folders(lake) == {t.incarnation for t in lake._workspace.catalog.tables()}
    lines.columns = retyped
    lines.append((9, 11, 2, "1.00"))
    check(lake, "totals", "DIFFERENTIAL")


def test_a_source_that_no_longer_fits(lake: Lake, lines: Source, totals: None) -> None:
    before = rows_of(lake, "totals")
    fewer = {name: type_ for name, type_ in LINES.items() if name != "price"}
    rows = arrow_rows(fewer, [row[:3] for row in ROWS])
    write_deltalake(lines.path, rows, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(RunnelError, match="part 1 of totals no longer fits") as caught:
        lake.refresh("totals")
    assert "ALTER STREAM TABLE totals AS" in (caught.value.hint or "")
    assert "no longer fits" in (lake.status("totals").last_error or "")
    assert rows_of(lake, "totals") == before
    write_deltalake(
        lines.path, arrow_rows(LINES, ROWS), mode="overwrite", schema_mode="overwrite"
    )  # fmt: skip
    lake.refresh("totals")
    assert lake.verify("totals").ok


def test_statements_name_the_table(
    spark: SparkSession, lake: Lake, lines: Source, totals: None
) -> None:
    with (
        runnel.connect(lake._workspace.path, spark=spark, block_source_ddl=True) as strict,
        pytest.raises(InUse, match="stream tables read table lines: totals"),
    ):
        strict.sql("DROP TABLE lines")


def test_a_snapshot_and_the_scheduler(lake: Lake, lines: Source, items: Source) -> None:
    lake.create_stream_table("totals", JOINED, refresh_mode="DIFFERENTIAL", schedule="1s")
    lake.create_stream_table("counts", "SELECT COUNT(*) AS n FROM lines", schedule="1s")
    lines.append((9, 10, 30, "1.00"))
    lake.refresh("totals")
    with lake.snapshot(["totals", "counts"]) as snapshot:
        assert snapshot.table("counts").first() == (6,)
        assert snapshot.table("totals").count() == 3
    lines.append((9, 11, 2, "1.00"))
    done = {result.name: result.action for result in lake.run(once=True)}
    assert set(done) <= {"totals", "counts"}
    lake.refresh()
    assert lake.verify("totals").ok
