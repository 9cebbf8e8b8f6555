"""Groups and snapshots in the catalog: everything of a group at once, holds as long as someone lives."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta

import pytest

from runnel.catalog import (
    Advance,
    Lease,
    Leases,
    Owner,
    StreamTable,
    Writer,
    advance_together,
    holding,
    holds_on,
    migrate,
    open_catalog,
    set_grouped,
)
from runnel.catalog.engine import writing
from runnel.catalog.owner import started_at
from runnel.catalog.schema import meta
from runnel.errors import Busy
from runnel.model.frontier import Frontier
from runnel.model.refresh import Outcome, RefreshAction, TableState

Make = Callable[..., StreamTable]
Members = tuple[StreamTable, StreamTable]


@pytest.fixture
def members(catalog: Writer, make_table: Make, frontier: Frontier) -> Members:
    tables = (
        make_table("b", frontier=frontier, epoch=3, reinitialize="it must"),
        make_table("c", state=TableState.UNINITIALIZED),
    )
    for table in tables:
        catalog.add_table(table)
    return tables


def later(frontier: Frontier) -> Frontier:
    return replace(frontier, data_timestamp=frontier.data_timestamp + timedelta(minutes=1))


def steps(catalog: Writer, members: Members, to: Frontier) -> list[Advance]:
    return [
        Advance(
            table, to, table.epoch + 1, table.since, 9, catalog.start_attempt(table.id, "h/1/2/i"),
            {"action": RefreshAction.DIFFERENTIAL, "epoch": table.epoch + 1, "frontier": to},
        )
        for table in members
    ]  # fmt: skip


def leases_of(catalog: Writer) -> Leases:
    return Leases(catalog.engine, Owner.current())


def hold_all(stack: ExitStack, leases: Leases, members: Members) -> list[Lease]:
    return [stack.enter_context(leases.hold(f"table:{table.id}")) for table in members]


def test_all_members_become_visible_at_once(
    catalog: Writer, members: Members, frontier: Frontier
) -> None:
    before = catalog.revision()
    with ExitStack() as stack:
        held = hold_all(stack, leases_of(catalog), members)
        advance_together(catalog, steps(catalog, members, later(frontier)), held)
    b, c = catalog.tables()
    assert (b.epoch, b.trace_version, b.frontier, b.reinitialize) == (4, 9, later(frontier), None)
    assert (c.epoch, c.state) == (1, TableState.ACTIVE)
    assert {a.outcome for a in catalog.history()} == {Outcome.OK}
    assert catalog.revision() > before, "other processes must renew their views"


@pytest.mark.parametrize("loss", ["lease", "table moved", "table replaced"])
def test_none_becomes_visible_when_one_is_lost(
    catalog: Writer, members: Members, frontier: Frontier, loss: str
) -> None:
    advances = steps(catalog, members, later(frontier))
    with ExitStack() as stack:
        held = hold_all(stack, leases_of(catalog), members)
        if loss == "lease":
            held[1].token = "someone else's"
        elif loss == "table moved":
            catalog.record_progress(members[1].id, frontier, 5, 0, 1)
        else:
            catalog.redefine_table(replace(members[1], incarnation="other"))
        before = catalog.tables()
        with pytest.raises(Busy):
            advance_together(catalog, advances, held)
    assert catalog.tables() == before
    assert {a.outcome for a in catalog.history()} == {Outcome.RUNNING}


def test_nothing_changed_for_all_or_for_none(
    catalog: Writer, members: Members, frontier: Frontier
) -> None:
    catalog.record_progress(members[1].id, frontier, 1, 0, 1)
    tables = catalog.tables()
    moves = [(table, later(frontier)) for table in tables]
    catalog.record_progress(members[1].id, frontier, 2, 0, 1)
    assert not catalog.record_all_no_data(moves, "h/1/2/i", 0.1, "why")
    assert catalog.find("default.b").frontier == frontier  # type: ignore[union-attr]
    moves = [(table, later(frontier)) for table in catalog.tables()]
    assert catalog.record_all_no_data(moves, "h/1/2/i", 0.1, "why")
    assert [table.frontier for table in catalog.tables()] == [later(frontier)] * 2
    assert [(a.action, a.reason) for a in catalog.history()] == [(RefreshAction.NO_DATA, "why")] * 2


def test_being_grouped_is_noticed(catalog: Writer, members: Members) -> None:
    before = catalog.revision()
    set_grouped(catalog, [members[0].id], True)
    assert [table.grouped for table in catalog.tables()] == [True, False]
    assert catalog.revision() > before


def test_a_catalog_of_before_groups_is_read(url: str, make_table: Make) -> None:
    table = make_table()
    with open_catalog(url) as catalog:
        catalog.add_table(table)
        with writing(catalog.engine) as connection:
            schema = migrate._schema(connection)
            place = f'"{schema}".' if schema else ""
            connection.exec_driver_sql(f"ALTER TABLE {place}stream_tables DROP COLUMN grouped")
            connection.exec_driver_sql(f"DROP TABLE {place}holds")
            version = migrate.MIGRATIONS.index(migrate._add_groups) + 1
            connection.execute(
                meta.update().where(meta.c.key == migrate.VERSION_KEY).values(value=version)
            )
    with open_catalog(url) as catalog:
        assert catalog.tables() == (table,)
        with holding(catalog, leases_of(catalog), {"k": (table, 1)}):
            assert len(holds_on(catalog, leases_of(catalog), table)) == 1


def test_an_epoch_is_held_while_its_snapshot_is_open(catalog: Writer, members: Members) -> None:
    leases, other = leases_of(catalog), leases_of(catalog)
    b = members[0]
    with holding(catalog, leases, {"b": (b, 3)}), holding(catalog, leases, {"b": (b, 2)}):
        assert sorted(hold.epoch for hold in holds_on(catalog, other, b)) == [2, 3]
        assert holds_on(catalog, other, members[1]) == []
        assert holds_on(catalog, other, replace(b, incarnation="another")) == []
    assert holds_on(catalog, other, b) == []


def test_a_hold_ends_with_its_process(catalog: Writer, members: Members) -> None:
    dead = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    owner = replace(Owner.current(), pid=dead.pid, started=started_at(dead.pid) or 0.0)
    stack = ExitStack()
    resource = stack.enter_context(
        holding(catalog, Leases(catalog.engine, owner), {"b": (members[0], 3)})
    )
    try:
        assert len(holds_on(catalog, leases_of(catalog), members[0])) == 1
    finally:
        dead.kill()
        dead.wait()
    assert holds_on(catalog, leases_of(catalog), members[0]) == []
    assert leases_of(catalog).look(resource) is None, "its rows are gone as well"
    stack.close()


def test_a_hold_of_another_machine_ends_when_it_is_not_renewed(
    catalog: Writer, members: Members
) -> None:
    elsewhere = replace(Owner.current(), host="elsewhere", pid=os.getpid())
    late = Leases(catalog.engine, Owner.current(), clock=lambda: time.time() + 3600)
    with holding(catalog, Leases(catalog.engine, elsewhere), {"b": (members[0], 3)}):
        assert len(holds_on(catalog, leases_of(catalog), members[0])) == 1
        assert holds_on(catalog, late, members[0]) == []


def test_a_reason_to_start_over_that_came_up_meanwhile_stays(
    catalog: Writer, members: Members, frontier: Frontier
) -> None:
    """Of a member that was to start over, and of one that was not."""
    with ExitStack() as stack:
        held = hold_all(stack, leases_of(catalog), members)
        for table in members:
            catalog.update_table(table.id, reinitialize="it must again")
        advance_together(catalog, steps(catalog, members, later(frontier)), held)
    assert [t.reinitialize for t in catalog.tables()] == ["it must again"] * 2
