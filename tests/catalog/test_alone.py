"""The step of one table: all that belongs to it at once, and nothing without its lease."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from runnel.catalog import Advance, Leases, Owner, StreamTable, Writer, advance_alone
from runnel.errors import Busy
from runnel.model.frontier import Frontier, Pin
from runnel.model.refresh import Outcome, RefreshAction, TableState

Make = Callable[..., StreamTable]


@pytest.fixture
def table(catalog: Writer, make_table: Make, frontier: Frontier) -> StreamTable:
    made = make_table(
        frontier=frontier, epoch=3, trace_version=5, reinitialize="it must", consecutive_errors=2,
        last_error="it did not",
    )  # fmt: skip
    catalog.add_table(made)
    return made


def later(frontier: Frontier, minutes: int = 1) -> Frontier:
    pins = {key: replace(pin, version=pin.version + 1) for key, pin in frontier.pins.items()}
    return Frontier(pins, frontier.data_timestamp + timedelta(minutes=minutes))


def step(catalog: Writer, table: StreamTable, to: Frontier) -> Advance:
    attempt = catalog.start_attempt(table.id, "h/1/2/i")
    fields = {"action": RefreshAction.DIFFERENTIAL, "epoch": 4, "frontier": to}
    return Advance(table, to, 4, 1, 6, attempt, fields, 0.5)  # type: ignore[arg-type]


def leases_of(catalog: Writer) -> Leases:
    return Leases(catalog.engine, Owner.current())


def test_everything_of_a_step_is_there_at_once(
    catalog: Writer, table: StreamTable, frontier: Frontier
) -> None:
    with leases_of(catalog).hold("table") as lease:
        advance_alone(catalog, step(catalog, table, later(frontier)), lease)
    assert catalog.get(table.id) == replace(
        table, frontier=later(frontier), epoch=4, since=1, trace_version=6, reinitialize=None,
        consecutive_errors=0, last_error=None, work_seconds=0.5,
    )  # fmt: skip
    assert [(a.outcome, a.epoch) for a in catalog.history()] == [(Outcome.OK, 4)]


def test_a_table_that_is_filled_for_the_first_time_is_noticed(
    catalog: Writer, make_table: Make, frontier: Frontier
) -> None:
    made = make_table(state=TableState.UNINITIALIZED)
    catalog.add_table(made)
    before = catalog.revision()
    with leases_of(catalog).hold("table") as lease:
        advance_alone(catalog, step(catalog, made, frontier), lease)
    assert catalog.tables()[0].state is TableState.ACTIVE
    assert catalog.revision() > before, "other processes must make its view"


@pytest.mark.parametrize("loss", ["lease", "let go", "table moved", "table replaced"])
def test_nothing_is_recorded_by_one_who_lost_the_lease_or_the_table(
    catalog: Writer, table: StreamTable, frontier: Frontier, loss: str
) -> None:
    leases = leases_of(catalog)
    advance = step(catalog, table, later(frontier))
    with leases.hold("table") as lease:
        if loss == "lease":
            lease.token = "someone else's"
        elif loss == "let go":
            leases._release(lease)
        elif loss == "table moved":
            catalog.record_progress(table.id, later(frontier, 2), 5, 1, 7)
        else:
            catalog.redefine_table(replace(table, incarnation="other"))
        before = catalog.tables()
        with pytest.raises(Busy):
            advance_alone(catalog, advance, lease)
    assert catalog.tables() == before
    assert {a.outcome for a in catalog.history()} == {Outcome.RUNNING}


def test_a_reader_that_was_quicker_is_no_loss(
    catalog: Writer, table: StreamTable, frontier: Frontier
) -> None:
    advance = step(catalog, table, later(frontier))
    with leases_of(catalog).hold("table") as lease:
        assert catalog.record_progress(table.id, later(frontier), 4, 1, 6, known_epoch=3)
        advance_alone(catalog, advance, lease)
    found = catalog.tables()[0]
    assert (found.epoch, found.frontier, found.reinitialize) == (4, later(frontier), None)


def test_the_data_timestamp_does_not_go_back(
    catalog: Writer, table: StreamTable, frontier: Frontier
) -> None:
    """Without news a table is moved on without its lease."""
    advance = step(catalog, table, later(frontier))
    ahead = replace(frontier, data_timestamp=later(frontier, 9).data_timestamp)
    with leases_of(catalog).hold("table") as lease:
        assert catalog.record_no_data(table, ahead, "h/1/2/i", 0.1, "quiet")
        advance_alone(catalog, advance, lease)
    found = catalog.tables()[0].frontier
    assert found == Frontier({"default.orders": Pin("delta", "d-1", 8)}, ahead.data_timestamp)


def test_a_definition_is_not_replaced_without_the_lease(
    catalog: Writer, table: StreamTable
) -> None:
    with leases_of(catalog).hold("table") as lease:
        lease.token = "someone else's"
        with pytest.raises(Busy):
            catalog.redefine_table(replace(table, incarnation="other"), [lease])
    assert catalog.tables() == (table,)
