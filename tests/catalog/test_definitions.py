"""Definitions: what goes in comes out, and the rules between tables hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from runnel.catalog import BaseTable, StreamTable, Writer, open_catalog
from runnel.errors import AlreadyExists, InUse, NotFound
from runnel.model.frontier import Frontier
from runnel.model.names import TableName
from runnel.model.refresh import RefreshMode, TableState
from runnel.model.schedule import Schedule
from runnel.model.views import Resolution

Make = Callable[..., StreamTable]


def test_table_comes_back_as_it_went_in(catalog: Writer, make_table: Make, frontier: Frontier):
    catalog.add_table(make_table("base"))
    table = make_table(
        "`odd name`",
        reads=("base",),
        frontier=frontier,
        comment='näme\'s "quote"',
        options={"a": "b"},
        not_differential="because",
    )
    catalog.add_table(table)
    assert catalog.find("default.odd name") == table
    assert catalog.get(table.id) == table
    assert [t.name.name for t in catalog.tables()] == ["base", "odd name"]


def test_unknown_table_is_none(catalog: Writer):
    assert catalog.find("default.nothing") is None
    assert catalog.get("nothing") is None
    assert catalog.tables() == ()


def test_name_is_taken_in_any_case(catalog: Writer, make_table: Make):
    catalog.add_table(make_table("Sales"))
    with pytest.raises(AlreadyExists, match="SALES already exists"):
        catalog.add_table(make_table("SALES"))
    assert len(catalog.tables()) == 1


def test_one_of_many_racing_creators_wins(url: str, make_table: Make):
    def create(_: int) -> bool:
        with open_catalog(url) as catalog:
            try:
                catalog.add_table(make_table("sales"))
            except AlreadyExists:
                return False
            return True

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(create, range(8))) == [False] * 7 + [True]


def test_redefining_replaces_everything(catalog: Writer, make_table: Make):
    catalog.add_table(make_table("base"))
    old = make_table("sales", reads=("base",))
    catalog.add_table(old)
    new = dataclasses.replace(
        old, query="SELECT 1", incarnation="new", sources=old.sources[:1], schedule=None
    )
    catalog.redefine_table(new)
    assert catalog.get(old.id) == new
    base = catalog.find("default.base")
    assert base is not None
    assert catalog.dependents(base.id) == ()


def test_renewing_a_definition_leaves_the_progress(
    catalog: Writer, make_table: Make, frontier: Frontier
):
    """Without news a table is moved on without its lease, also while it is being compiled."""
    table = make_table(frontier=frontier, epoch=3)
    catalog.add_table(table)
    later = dataclasses.replace(frontier, data_timestamp=frontier.data_timestamp.replace(hour=13))
    assert catalog.record_no_data(table, later, "owner", 0.0, "quiet")
    renewed = dataclasses.replace(
        table, reinitialize="view v was redefined", resolution=Resolution("SELECT 1"), sources=()
    )
    catalog.renew_definition(renewed)
    assert catalog.get(table.id) == dataclasses.replace(renewed, frontier=later)


def test_redefining_a_dropped_table_is_refused(catalog: Writer, make_table: Make):
    with pytest.raises(NotFound):
        catalog.redefine_table(make_table())
    assert catalog.tables() == ()


def test_update_sets_only_what_is_given(catalog: Writer, make_table: Make):
    table = make_table()
    catalog.add_table(table)
    catalog.update_table(
        table.id, schedule=Schedule.parse("5m"), mode=RefreshMode.FULL, state=TableState.SUSPENDED
    )
    catalog.update_table(table.id, schedule=None, comment="c", reinitialize="schema changed")
    found = catalog.get(table.id)
    assert found is not None
    assert found.altered_at > table.altered_at
    assert found == dataclasses.replace(
        table,
        schedule=None,
        mode=RefreshMode.FULL,
        state=TableState.SUSPENDED,
        comment="c",
        reinitialize="schema changed",
        altered_at=found.altered_at,
    )


def test_update_of_a_dropped_table_is_refused(catalog: Writer):
    with pytest.raises(NotFound):
        catalog.update_table("gone", comment="x")


def test_dependents_are_the_direct_readers(catalog: Writer, make_table: Make):
    a, b, c = make_table("a"), make_table("b", reads=("A",)), make_table("c", reads=("b",))
    for table in (a, b, c):
        catalog.add_table(table)
    assert catalog.dependents(a.id) == (b,)
    assert catalog.dependents(c.id) == ()


def test_a_table_that_is_read_cannot_be_removed_alone(catalog: Writer, make_table: Make):
    a, b = make_table("a"), make_table("b", reads=("a",))
    catalog.add_table(a)
    catalog.add_table(b)
    with pytest.raises(InUse, match="b"):
        catalog.remove_tables([a.id])
    assert len(catalog.tables()) == 2
    catalog.remove_tables([a.id, b.id])
    assert catalog.tables() == ()


def test_upstream_dropped_meanwhile_is_noticed(catalog: Writer, make_table: Make):
    with pytest.raises(NotFound, match="a does not exist"):
        catalog.add_table(make_table("b", reads=("a",)))
    assert catalog.tables() == ()


def test_revision_grows_with_definitions_only(
    catalog: Writer, make_table: Make, frontier: Frontier
):
    table = make_table()
    seen = [catalog.revision()]
    for change in (
        lambda: catalog.add_table(table),
        lambda: catalog.update_table(table.id, comment="x"),
        lambda: catalog.redefine_table(table),
        lambda: catalog.register_base_table(TableName.parse("ext"), "/x"),
        lambda: catalog.remove_tables([table.id]),
    ):
        change()
        seen.append(catalog.revision())
    assert seen == sorted(set(seen))
    catalog.add_table(table)
    before = catalog.revision()
    catalog.update_table(table.id, consecutive_errors=1, last_error="e")
    catalog.record_progress(table.id, frontier, 1, 0, 1)
    assert catalog.revision() == before


def test_a_failed_change_leaves_the_revision(catalog: Writer, make_table: Make):
    catalog.add_table(make_table("a"))
    before = catalog.revision()
    with pytest.raises(AlreadyExists):
        catalog.add_table(make_table("a"))
    assert catalog.revision() == before


def test_base_tables_move_and_go(catalog: Writer):
    name = TableName.parse("ext.Orders")
    catalog.register_base_table(name, "/a")
    catalog.register_base_table(name, "/b")
    assert catalog.base_tables() == (BaseTable(name, "/b"),)
    catalog.forget_base_table(TableName.parse("EXT.orders"))
    assert catalog.base_tables() == ()


def test_progress_of_an_old_incarnation_is_not_recorded(
    catalog: Writer, make_table: Make, frontier: Frontier
):
    table = make_table()
    catalog.add_table(table)
    assert not catalog.record_progress(table.id, frontier, 3, 1, 9, incarnation="old")
    assert catalog.get(table.id) == table
    assert catalog.record_progress(table.id, frontier, 3, 1, 9, incarnation=table.incarnation)
    assert catalog.get(table.id) == dataclasses.replace(
        table, frontier=frontier, epoch=3, since=1, trace_version=9
    )


def test_options_are_changed_one_by_one(catalog: Writer, make_table: Make):
    """Each change is made to the row as it is then, not as someone read it before."""
    table = make_table(options={"dialect": "postgres", "old": "1"})
    catalog.add_table(table)
    catalog.update_table(table.id, options={"diamond_consistency": "atomic"})
    catalog.update_table(table.id, options={"old": None, "dialect": "spark"}, comment="c")
    found = catalog.get(table.id)
    assert found is not None
    assert found.options == {"dialect": "spark", "diamond_consistency": "atomic"}
