"""What the scheduler reads and writes in bulk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from runnel.catalog import Owner, Progress, QuietMove, StreamTable, Writer
from runnel.model.frontier import Frontier
from runnel.model.refresh import Outcome, RefreshAction, TableState

Make = Callable[..., StreamTable]
LATER = timedelta(seconds=48)


def known(catalog: Writer) -> dict[str, Progress]:
    return {progress.id: progress for progress in catalog.progress()}


def move(catalog: Writer, table: StreamTable, by: timedelta = LATER, **more: int) -> QuietMove:
    assert table.frontier is not None
    frontier = replace(table.frontier, data_timestamp=table.frontier.data_timestamp + by)
    return QuietMove(table.id, known(catalog)[table.id], frontier, **more)


def test_progress_is_what_the_table_says(
    catalog: Writer, make_table: Make, frontier: Frontier
) -> None:
    table = make_table(frontier=frontier, epoch=4, consecutive_errors=2, work_seconds=1.5)
    catalog.add_table(table)
    catalog.update_table(table.id, retry_at=table.created_at)
    found = known(catalog)[table.id]
    assert (found.state, found.incarnation, found.epoch) == (
        TableState.ACTIVE,
        table.incarnation,
        4,
    )
    assert (found.consecutive_errors, found.retry_at, found.work_seconds) == (
        2,
        table.created_at,
        1.5,
    )
    stored = catalog.get(table.id)
    assert stored is not None
    assert (stored.retry_at, stored.work_seconds) == (table.created_at, 1.5)


def test_a_note_about_running_is_no_change_of_definitions(
    catalog: Writer, make_table: Make
) -> None:
    table = make_table()
    catalog.add_table(table)
    before = catalog.revision()
    catalog.update_table(table.id, retry_at=table.created_at, work_seconds=2.0, wait_seconds=3.0)
    assert catalog.revision() == before


def test_quiet_tables_move_and_leave_one_entry(
    catalog: Writer, make_table: Make, frontier: Frontier
) -> None:
    table = make_table(frontier=frontier, epoch=4)
    catalog.add_table(table)
    owner = Owner.current()
    assert catalog.record_quiet([move(catalog, table)], owner) == {table.id}
    entries = catalog.quiet_attempts([table.id])
    again = move(catalog, table, 2 * LATER, attempt=entries[table.id])
    assert catalog.record_quiet([again], owner) == {table.id}
    stored = catalog.get(table.id)
    assert stored is not None
    assert stored.frontier is not None
    assert stored.frontier == replace(frontier, data_timestamp=frontier.data_timestamp + 2 * LATER)
    (entry,) = catalog.history(table.name.key)
    assert (entry.outcome, entry.action, entry.epoch) == (Outcome.OK, RefreshAction.NO_DATA, 4)
    assert entry.data_timestamp == frontier.data_timestamp + 2 * LATER


def test_what_moves_without_news_has_no_errors_any_more(
    catalog: Writer, make_table: Make, frontier: Frontier
) -> None:
    tables = [make_table(name, frontier=frontier, epoch=4) for name in ("a", "b")]
    for table in tables:
        catalog.add_table(table)
        catalog.update_table(
            table.id, consecutive_errors=2, last_error="no", retry_at=table.created_at
        )
    catalog.record_quiet([move(catalog, tables[0])], Owner.current())
    failing = catalog.get(tables[1].id)
    assert failing is not None
    assert failing.consecutive_errors == 2
    catalog.record_no_data(failing, frontier, Owner.current(), 0.0, "no news")
    for table in catalog.tables():
        assert (table.consecutive_errors, table.last_error, table.retry_at) == (0, None, None)


def test_a_table_that_moved_or_was_suspended_is_left_where_it_is(
    catalog: Writer, make_table: Make, frontier: Frontier
) -> None:
    tables = [make_table(name, frontier=frontier, epoch=4) for name in ("a", "b", "c")]
    for table in tables:
        catalog.add_table(table)
    moves = [move(catalog, table) for table in tables]
    catalog.record_progress(tables[0].id, frontier, 5, 0, 0)
    catalog.update_table(tables[1].id, state=TableState.SUSPENDED)
    assert catalog.record_quiet(moves, Owner.current()) == {tables[2].id}
    assert catalog.history("default.a") == catalog.history("default.b") == ()


def test_a_table_that_worked_last_has_no_quiet_entry(catalog: Writer, make_table: Make) -> None:
    table = make_table()
    catalog.add_table(table)
    attempt = catalog.start_attempt(table.id, Owner.current())
    catalog.finish_attempt(attempt, Outcome.OK, action=RefreshAction.FULL)
    assert catalog.quiet_attempts([table.id]) == {}


def test_a_skip_is_an_entry_of_its_own(catalog: Writer, make_table: Make) -> None:
    table = make_table()
    catalog.add_table(table)
    catalog.record_skip(table.id, Owner.current(), "late")
    (entry,) = catalog.history(table.name.key)
    assert (entry.outcome, entry.action, entry.reason) == (Outcome.OK, RefreshAction.SKIP, "late")
    catalog.record_skip(table.id, Owner.current(), "late", once=True)
    catalog.record_skip(table.id, Owner.current(), "suspended", once=True)
    catalog.record_skip(table.id, Owner.current(), "late", once=True)
    reasons = [entry.reason for entry in catalog.history("default.sales")]
    assert reasons == ["late", "suspended", "late"]
