"""The history of refreshes and verifications."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from runnel.catalog import Owner, StreamTable, Verification, Writer, pruning, recorder
from runnel.errors import NotFound
from runnel.model.frontier import Frontier
from runnel.model.refresh import Outcome, RefreshAction

Make = Callable[..., StreamTable]
OWNER = Owner("elsewhere", 1, 2.0, "i")
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def table(catalog: Writer, make_table: Make) -> StreamTable:
    table = make_table()
    catalog.add_table(table)
    return table


def test_an_attempt_runs_and_finishes(catalog: Writer, table: StreamTable, frontier: Frontier):
    attempt = catalog.start_attempt(table.id, OWNER, predicted={"FULL": 2.5})
    (running,) = catalog.history("default.sales")
    assert (running.outcome, running.finished_at, running.owner) == (
        Outcome.RUNNING, None, str(OWNER)
    )  # fmt: skip
    catalog.finish_attempt(
        attempt,
        Outcome.OK,
        action=RefreshAction.DIFFERENTIAL,
        reason="few changes",
        rows_inserted=3,
        rows_deleted=0,
        seconds=0.5,
        phases={"plan": 0.1},
        frontier=frontier,
        epoch=4,
    )
    (done,) = catalog.history()
    assert (done.id, done.table_name, done.outcome) == (attempt, "sales", Outcome.OK)
    assert (done.action, done.reason) == (RefreshAction.DIFFERENTIAL, "few changes")
    assert (done.rows_inserted, done.rows_deleted, done.change_rows) == (3, 0, None)
    assert (done.phases, done.predicted) == ({"plan": 0.1}, {"FULL": 2.5})
    assert (done.frontier, done.data_timestamp) == (frontier, frontier.data_timestamp)
    assert done.finished_at is not None
    assert done.finished_at >= done.started_at


def test_history_is_newest_first_and_limited(catalog: Writer, table: StreamTable):
    attempts = [catalog.start_attempt(table.id, OWNER) for _ in range(5)]
    assert [a.id for a in catalog.history("default.sales", limit=3)] == attempts[:1:-1]
    assert catalog.history("default.other") == ()


def test_history_is_pruned_by_table(
    catalog: Writer, table: StreamTable, make_table: Make, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pruning, "HISTORY_LEAST", 3)
    other = make_table("other")
    catalog.add_table(other)
    kept = catalog.start_attempt(other.id, OWNER, started_at=LONG_AGO)
    attempts = [catalog.start_attempt(table.id, OWNER, started_at=LONG_AGO) for _ in range(6)]
    assert kept_of(catalog) == attempts[:2:-1]
    assert kept_of(catalog, "other") == [kept]


def test_what_is_young_is_kept_as_long_as_it_is_not_too_much(
    catalog: Writer, table: StreamTable, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pruning, "HISTORY_LEAST", 3)
    monkeypatch.setattr(pruning, "HISTORY_MOST", 8)
    old = [catalog.start_attempt(table.id, OWNER, started_at=LONG_AGO) for _ in range(3)]
    catalog.finish_attempt(old[1], Outcome.OK)
    young = [catalog.start_attempt(table.id, OWNER) for _ in range(5)]
    assert kept_of(catalog) == [*young[::-1], old[1]], "its end counts"
    young += [catalog.start_attempt(table.id, OWNER) for _ in range(7)]
    assert kept_of(catalog) == young[:3:-1]


def test_how_long_is_kept_is_what_is_set(
    catalog: Writer, table: StreamTable, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pruning, "HISTORY_LEAST", 1)
    catalog.history_age = timedelta(days=9000)
    for _ in range(3):
        catalog.start_attempt(table.id, OWNER, started_at=LONG_AGO)
    assert len(kept_of(catalog)) == 3


def kept_of(catalog: Writer, name: str = "sales") -> list[int]:
    return [attempt.id for attempt in catalog.history(f"default.{name}", 99)]


def test_costs_are_those_of_successful_work(catalog: Writer, table: StreamTable):
    expected = []
    for action, outcome in (
        (RefreshAction.FULL, Outcome.OK),
        (RefreshAction.DIFFERENTIAL, Outcome.OK),
        (RefreshAction.NO_DATA, Outcome.OK),
        (RefreshAction.FULL, Outcome.FAILED),
        (RefreshAction.REINITIALIZE, Outcome.OK),
    ):
        attempt = catalog.start_attempt(table.id, OWNER)
        catalog.finish_attempt(attempt, outcome, action=action)
        expected.append(attempt)
    looked = catalog.start_attempt(table.id, OWNER)
    catalog.finish_attempt(looked, Outcome.OK, action=RefreshAction.NO_DATA, change_rows=5)
    assert [a.id for a in catalog.recent_costs(table.id)] == [looked, *expected[1::-1]]


def test_failures_are_those_since_it_last_went_well(catalog: Writer, table: StreamTable):
    def attempt(outcome: Outcome, action: RefreshAction | None = None, code: str | None = None):
        number = catalog.start_attempt(table.id, OWNER)
        catalog.finish_attempt(number, outcome, action=action, error_code=code)

    assert catalog.failures(table.id, 10) == ()
    for code in ("A", "B"):
        attempt(Outcome.FAILED, code=code)
    assert [f.code for f in catalog.failures(table.id, 10)] == ["B", "A"]
    attempt(Outcome.OK, RefreshAction.NO_DATA)
    assert catalog.failures(table.id, 10) == ()
    attempt(Outcome.FAILED, code="C")
    catalog.record_skip(table.id, OWNER, "left out")
    attempt(Outcome.INTERRUPTED)
    attempt(Outcome.FAILED, code="D")
    assert [f.code for f in catalog.failures(table.id, 10)] == ["D", "C"]
    (newest,) = catalog.failures(table.id, 1)
    assert newest.at == catalog.history("default.sales")[0].started_at


def test_attempts_of_dead_owners_are_closed(catalog: Writer, table: StreamTable):
    dead = Owner("elsewhere", 2, 2.0, "d")
    alive, lost = (catalog.start_attempt(table.id, owner) for owner in (OWNER, dead))
    done = catalog.start_attempt(table.id, dead)
    catalog.finish_attempt(done, Outcome.OK)
    assert catalog.close_interrupted(lambda owner: owner == OWNER) == (lost,)
    outcomes = {a.id: a.outcome for a in catalog.history()}
    assert outcomes == {alive: Outcome.RUNNING, lost: Outcome.INTERRUPTED, done: Outcome.OK}


def test_history_goes_with_its_table(catalog: Writer, table: StreamTable, frontier: Frontier):
    attempt = catalog.start_attempt(table.id, OWNER)
    catalog.remove_tables([table.id])
    assert catalog.history() == ()
    catalog.finish_attempt(attempt, Outcome.OK)
    with pytest.raises(NotFound):
        catalog.start_attempt(table.id, OWNER)
    with pytest.raises(NotFound):
        catalog.record_verification(Verification(table.id, frontier.data_timestamp, True, 0, 0))


def test_last_verification(
    catalog: Writer, table: StreamTable, frontier: Frontier, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(recorder, "VERIFICATION_LIMIT", 2)
    assert catalog.last_verification(table.id) is None
    for i in range(4):
        result = Verification(
            table.id,
            frontier.data_timestamp + timedelta(seconds=i),
            ok=False,
            missing=i,
            unexpected=2,
            sample=[{"id": 1}],
            frontier=frontier,
            seconds=0.1,
        )
        catalog.record_verification(result)
    assert catalog.last_verification(table.id) == result
