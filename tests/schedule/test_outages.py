"""Outages: everything that needs a disk, a store or Spark fails for a while, and then goes on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from runnel.catalog import StreamTable
from runnel.cli.listing import listed
from runnel.errors import ErrorClass, RunnelError, SystemFault
from runnel.model.alerts import AlertKind
from runnel.model.refresh import Outcome, RefreshAction, TableState
from runnel.refresh.recording import Begun, fail
from runnel.schedule import seeing
from runnel.schedule.alerting import AlertBook
from runnel.schedule.lake_book import LakeBook
from runnel.schedule.machine import Limits, Machine
from runnel.schedule.retry import back_off
from runnel.schedule.views import Ending, Finished, instant
from schedule.by_hand import T0, ByHand, table
from schedule.lake import FakeLake

HOUR = 3600.0
DISK_FULL = SystemFault("the disk is full", hint="free some space")


def fail_until(lake: ByHand, end: float, name: str = "a") -> list[float]:
    """Let every try of a table fail until a time; when they were."""
    tries = []
    now = lake.view(name).retry_at or T0
    while now < end and lake.view(name).state is not TableState.SUSPENDED:
        assert lake.tick(now) == [name]
        lake.fail(name, now)
        tries.append(now - T0)
        now = lake.view(name).retry_at or now
    return tries


def test_an_outage_is_tried_again_ever_more_rarely_and_is_over_by_itself() -> None:
    lake = ByHand(table("a", "1m", "x"), table("b", "1m", "a"))
    tries = fail_until(lake, T0 + HOUR)
    assert 10 < len(tries) < 25
    pauses = [later - earlier for earlier, later in pairwise(tries)]
    assert pauses[0] < 7
    assert max(pauses) <= 375
    assert lake.view("a").state is TableState.UNINITIALIZED
    retry_at = lake.view("a").retry_at
    assert retry_at is not None
    assert lake.run_all(retry_at) == ["a", "b"]
    assert (lake.view("a").errors, lake.view("a").retry_at) == (0, None)


def test_it_is_told_when_it_begins_and_when_it_is_over() -> None:
    lake = ByHand(table("a", "1m", "x"))
    fail_until(lake, T0 + 10)
    assert lake.ears.kinds("a") == [], "so far nothing that the refreshes did not tell"
    fail_until(lake, T0 + 20)
    ((kind, _, message),) = lake.ears.heard
    assert kind is AlertKind.OUTAGE
    assert message.startswith("failed 3 times in a row, next try at ")
    assert message.endswith(" UTC: no such luck")
    lake.run_all(lake.view("a").retry_at or T0)
    lake.tick(T0 + 60)
    assert lake.ears.kinds("a") == [AlertKind.OUTAGE, AlertKind.OUTAGE_OVER]


def test_an_outage_that_lasts_too_long_suspends() -> None:
    lake = ByHand(table("a", "1m", "x"), outage=600.0)
    tries = fail_until(lake, T0 + HOUR)
    assert 600 < tries[-1] < 600 + 375
    assert tries[-2] <= 600
    assert lake.view("a").state is TableState.SUSPENDED
    kind, _, message = lake.ears.heard[-1]
    assert kind is AlertKind.AUTO_SUSPENDED
    assert message.startswith(f"failed {len(tries)} times in a row, for ")


def test_without_patience_the_number_of_errors_decides() -> None:
    lake = ByHand(table("a", "1m", "x"), outage=0.0)
    assert len(fail_until(lake, T0 + HOUR)) == 3


def test_few_tries_are_not_enough_however_long_it_lasts() -> None:
    """A process that slept for a night has tried once before and once after it."""
    lake = ByHand(table("a", "1m", "x"))
    for now in (T0, T0 + 8 * HOUR):
        lake.tick(now)
        lake.fail("a", now)
    assert lake.view("a").state is TableState.UNINITIALIZED


def test_an_outage_does_not_count_as_an_error_of_the_query() -> None:
    lake = ByHand(table("a", "1m", "x"))
    fail_until(lake, T0 + 600)
    now = T0 + HOUR / 2
    for _ in range(3):
        assert lake.view("a").state is TableState.UNINITIALIZED
        lake.tick(now)
        lake.fail("a", now, ErrorClass.USER)
        now += HOUR
    assert lake.view("a").state is TableState.SUSPENDED


def test_errors_of_the_query_do_not_make_an_outage_longer() -> None:
    lake = ByHand(table("a", "1m", "x"))
    for now in (T0, T0 + 10 * HOUR):
        lake.tick(now)
        lake.fail("a", now, ErrorClass.USER)
    now = T0 + 20 * HOUR
    for _ in range(5):
        lake.tick(now)
        lake.fail("a", now)
        now = lake.view("a").retry_at or now
    assert lake.view("a").state is TableState.UNINITIALIZED


def test_another_process_goes_on_with_what_the_first_found() -> None:
    lake = ByHand(table("a", "1m", "x"), outage=600.0)
    tries = fail_until(lake, T0 + 500)
    assert lake.view("a").state is TableState.UNINITIALIZED
    lake.machine = lake.process(outage=600.0)
    now = T0 + 900
    assert lake.tick(now) == ["a"]
    lake.fail("a", now)
    assert lake.view("a").state is TableState.SUSPENDED
    assert lake.view("a").errors == len(tries) + 1


def test_the_pause_does_not_grow_beyond_all_bounds() -> None:
    assert back_off(100_000, Random(1)) <= 375


# -- with a real catalog ------------------------------------------------------------------------


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[FakeLake]:
    made = FakeLake(tmp_path)
    made.workspace.alerts = AlertBook(made.workspace.catalog, made.workspace.settings)
    yield made
    made.workspace.catalog.close()


def scheduler(lake: FakeLake, outage: float = HOUR) -> Machine:
    return Machine(
        LakeBook(lake.workspace), lake.workspace.alerts, Limits(outage=outage), Random(1)
    )


def one_try(
    lake: FakeLake, machine: Machine, table: StreamTable, now: float, error: RunnelError | None
) -> None:
    """A refresh that is due ends in an error, or well."""
    (start,) = machine.decide(now)
    catalog = lake.workspace.catalog
    attempt = catalog.start_attempt(table.id, lake.workspace.leases.owner, started_at=instant(now))
    if error is not None:
        fail(lake.workspace, lake.stored(table), Begun(attempt), error, 0.0)
        machine.finished(
            now,
            Finished(
                start, Ending.FAILED, error=str(error), error_class=error.error_class,
                is_retryable=error.retryable, failed=table.name.key,
            ),
        )  # fmt: skip
        return
    catalog.finish_attempt(attempt, Outcome.OK, action=RefreshAction.DIFFERENTIAL)
    catalog.update_table(table.id, consecutive_errors=0, last_error=None, retry_at=None)
    machine.finished(now, Finished(start, Ending.DONE))


def retry_at(lake: FakeLake, table: StreamTable) -> float:
    at = lake.stored(table).retry_at
    assert at is not None
    return at.timestamp()


def test_the_catalog_knows_since_when_a_table_fails(lake: FakeLake) -> None:
    """Through restarts: each try is another process, which knows nothing but the catalog."""
    table = lake.add("a", "1m", "x1", at=T0)
    lake.base("x1").version = 2
    now, tries = T0 + 24, 0
    while now < T0 + HOUR:
        one_try(lake, scheduler(lake), table, now, DISK_FULL)
        assert lake.stored(table).state is TableState.ACTIVE
        now, tries = retry_at(lake, table), tries + 1
    assert tries > 10
    last = scheduler(lake)
    one_try(lake, last, table, now, None)
    last.decide(now + 1)
    after = lake.stored(table)
    assert (after.state, after.consecutive_errors, after.retry_at) == (TableState.ACTIVE, 0, None)
    told = [alert.kind for alert in lake.workspace.catalog.alerts("default.a")]
    assert told.count(AlertKind.OUTAGE) == told.count(AlertKind.OUTAGE_OVER) == 1
    assert AlertKind.AUTO_SUSPENDED not in told


def test_the_catalog_knows_when_it_is_too_long(lake: FakeLake) -> None:
    table = lake.add("a", "1m", "x1", at=T0)
    lake.base("x1").version = 2
    now = T0 + 24
    while lake.stored(table).state is TableState.ACTIVE:
        assert now < T0 + 24 + 600 + 375
        one_try(lake, scheduler(lake, 600.0), table, now, DISK_FULL)
        now = retry_at(lake, table) if lake.stored(table).retry_at else now
    assert now > T0 + 24 + 600


def test_resume_forgets_how_long_it_lasted(lake: FakeLake) -> None:
    table = lake.add("a", "1m", "x1", at=T0)
    lake.base("x1").version = 2
    for now in (T0 + 24, T0 + 600, T0 + 1200):
        one_try(lake, scheduler(lake, 900.0), table, now, DISK_FULL)
    assert lake.stored(table).state is TableState.SUSPENDED
    lake.workspace.catalog.update_table(
        table.id, state=TableState.ACTIVE, consecutive_errors=0, retry_at=None
    )
    for now in (T0 + 2000, T0 + 2100, T0 + 2200):
        one_try(lake, scheduler(lake, 900.0), table, now, DISK_FULL)
    assert lake.stored(table).state is TableState.ACTIVE


def test_a_source_that_can_be_read_again_without_news_ends_it_too(lake: FakeLake) -> None:
    table = lake.add("a", "1m", "x1", at=T0)
    lake.base("x1").is_broken = True
    one_try(lake, scheduler(lake), table, T0 + 24, DISK_FULL)
    lake.base("x1").is_broken = False
    machine = scheduler(lake)
    assert machine.decide(T0 + 48) == []
    assert machine.tables["default.a"].errors == 0
    after = lake.stored(table)
    assert lake.at("a") == T0 + 48
    assert (after.consecutive_errors, after.last_error, after.retry_at) == (0, None, None)


def test_status_tells_the_error_and_the_next_try(lake: FakeLake) -> None:
    table = lake.add("a", "1m", "x1", at=T0)
    lake.base("x1").version = 2
    one_try(lake, scheduler(lake), table, T0 + 24, DISK_FULL)
    rows = seeing.status(lake.workspace.catalog, lake.workspace.settings, now=instant(T0 + 25))
    assert (rows[0].last_error, rows[0].next_due) == (str(DISK_FULL), lake.stored(table).retry_at)
    text = listed(rows)
    assert "failed once: the disk is full; next try 20" in text


def test_only_a_table_that_failed_often_is_asked_about(lake: FakeLake) -> None:
    table = lake.add("a", "1m", "x1", at=T0)
    lake.base("x1").version = 2
    machine = scheduler(lake)
    one_try(lake, machine, table, T0 + 24, DISK_FULL)
    asked = [text for text in lake.statements if "refresh_history" in text and "error_code" in text]
    assert not [text for text in asked if text.startswith("SELECT")]
