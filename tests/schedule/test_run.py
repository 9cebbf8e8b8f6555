"""What `run` looks after beside the refreshes; no Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from time import time

import pytest

from lake.traces import LAYOUT, append
from runnel.catalog import Owner, StreamTable
from runnel.errors import ErrorClass, SourceError, SparkEnded, UserError
from runnel.model.refresh import Outcome
from runnel.model.settings import Settings
from runnel.refresh.attempt import lease_of, note_failure
from runnel.refresh.scratch import new_scratch
from runnel.refresh.storage import storage_lease
from runnel.schedule import executor, loop, run
from runnel.schedule.machine import Limits
from runnel.schedule.run import limits_of, run_lake
from schedule.lake import FakeLake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[FakeLake]:
    made = FakeLake(tmp_path)
    yield made
    made.workspace.catalog.close()


def test_settings_are_what_the_scheduler_heeds() -> None:
    settings = Settings(
        max_concurrent_refreshes=7, max_consecutive_errors=2, scheduler_interval=3, max_outage=50
    )
    assert limits_of(settings, None) == Limits(concurrent=7, errors=2, interval=3, outage=50)
    assert limits_of(settings, 1).concurrent == 1
    with pytest.raises(UserError, match="0 workers"):
        limits_of(settings, 0)
    with pytest.raises(UserError, match="switched off"):
        limits_of(Settings(enabled=False), None)


def test_what_dead_processes_left_is_cleaned_up_at_the_start(lake: FakeLake) -> None:
    table = lake.add("a", "1d", "x1", at=time())
    catalog, traces = lake.workspace.catalog, lake.workspace.traces_path
    dead = Owner(Owner.current().host, 2**22 + 1, 1.0, "gone")
    catalog.start_attempt(table.id, dead)
    for name in (table.incarnation, "left_behind", "being_filled"):
        (traces / name).mkdir(parents=True)
    shared = new_scratch(lake.workspace)
    forgotten = shared.parent / f"{str(dead).replace('/', '~')}~0"
    for folder in (shared, forgotten):
        folder.mkdir(parents=True)
    with lake.workspace.leases.hold(storage_lease("being_filled")):
        assert list(run_lake(lake.workspace, once=True)) == []
    assert [a.outcome for a in catalog.history("default.a")] == [Outcome.INTERRUPTED]
    assert {p.name for p in traces.iterdir()} == {table.incarnation, "being_filled"}
    assert list(shared.parent.iterdir()) == [shared], "its pass may be running"


def left_behind(lake: FakeLake, table: StreamTable) -> Path:
    """A folder of files that a killed write left in a table, beside what it has committed."""
    trace = lake.workspace.trace(table)
    append(trace, 1, [(1, 1)])
    left = Path(trace.path, "run-0123456789abcdef")
    left.mkdir()
    (left / "part-0.parquet").write_bytes(b"half")
    return left


def test_files_of_killed_writes_are_removed_at_the_start(lake: FakeLake) -> None:
    tables = [lake.add(name, "1d", "x1", at=time(), layout=LAYOUT) for name in ("a", "b")]
    free, busy = [left_behind(lake, table) for table in tables]
    with lake.workspace.leases.hold(lease_of(tables[1].id)):
        assert list(run_lake(lake.workspace, once=True)) == []
    assert not free.exists()
    assert busy.exists(), "someone is writing there"
    assert lake.workspace.trace(tables[0]).log.snapshot(0).files


def test_many_tables_are_looked_through_little_by_little(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_TABLES_AT_ONCE", 2)
    tables = [lake.add(f"t{i}", "1d", "x1", at=time(), layout=LAYOUT) for i in range(5)]
    folders = [left_behind(lake, table) for table in tables]
    clock = [1000.0]
    house = run.House(lake.workspace, lambda: clock[0], lambda: None)
    left = []
    for _ in range(3):
        house.keep()
        left.append(sum(folder.exists() for folder in folders))
        clock[0] += 20
    assert left == [3, 1, 0]


def test_a_run_that_does_not_come_back_looks_through_all_of_them(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_TABLES_AT_ONCE", 2)
    tables = [lake.add(f"t{i}", "1d", "x1", at=time(), layout=LAYOUT) for i in range(5)]
    folders = [left_behind(lake, table) for table in tables]
    assert list(run_lake(lake.workspace, once=True)) == []
    assert not any(folder.exists() for folder in folders)


def test_what_sources_may_lose_is_watched(lake: FakeLake, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    monkeypatch.setattr(run, "watch_retention", lambda workspace, at: seen.append(at.timestamp()))
    house = run.House(lake.workspace, lambda: clock[0], lambda: None)
    clock = [1000.0]
    for now in (1000.0, 1020.0, 1580.0, 1610.0, 1700.0):
        clock[0] = now
        house.keep()
    assert seen == [1000.0, 1610.0]


class DeadSpark:
    """A session whose process is gone."""

    newSession = None  # noqa: N815

    @property
    def sparkContext(self) -> None:  # noqa: N802
        raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize("once", [True, False])
def test_when_its_spark_has_ended_no_table_is_to_blame(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch, once: bool
) -> None:
    """Whatever the refreshes say: these two find no storage of theirs."""
    monkeypatch.setattr(run, "watch_retention", lambda workspace, at: None)
    tables = [lake.add(name, "1m", "x1", at=time() - 1000) for name in ("a", "b")]
    lake.base("x1").version = 2
    lake.workspace.present_spark = DeadSpark  # type: ignore[assignment]
    left = lake.workspace.catalog.start_attempt(tables[0].id, lake.workspace.leases.owner)
    with pytest.raises(SparkEnded, match="the Spark process has ended") as caught:
        run_lake(lake.workspace, once=once)
    assert caught.value.error_class is ErrorClass.SYSTEM
    assert "start this program again" in (caught.value.hint or "")
    for table in tables:
        found = lake.workspace.catalog.history(table.name.key)
        assert {a.outcome for a in found} == {Outcome.INTERRUPTED}
        after = lake.stored(table)
        assert (after.consecutive_errors, after.last_error, after.retry_at) == (0, None, None)
    assert left in {a.id for a in lake.workspace.catalog.history("default.a")}


def test_a_refresh_that_hangs_leaves_the_lake_as_it_was(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails later, by hand, has failed; it was not interrupted by the end of that run."""
    monkeypatch.setattr(loop, "FINISH_SECONDS", 0.1)
    monkeypatch.setattr(loop, "ABANDON_SECONDS", 0.1)
    stop, go_on = threading.Event(), threading.Event()
    table = lake.add("a", "1m", "x1", at=time() - 1000)
    lake.base("x1").version = 2

    def hang(*arguments: object, **options: object) -> None:
        stop.set()
        go_on.wait(60)

    monkeypatch.setattr(executor, "refresh_table", hang)
    run_lake(lake.workspace, once=False, stop=stop)
    note_failure(lake.workspace, table, SourceError("it is gone"))
    assert [a.outcome for a in lake.workspace.catalog.history("default.a")] == [Outcome.FAILED]
    go_on.set()


def test_who_is_told_to_end_hears_nothing_of_a_spark_that_ended_too(lake: FakeLake) -> None:
    """A service manager may end the whole family at once."""
    lake.add("a", "1m", "x1", at=time() - 1000)
    lake.base("x1").version = 2
    stop, asked = threading.Event(), list[int]()

    def dying() -> DeadSpark:
        """There when the refresh begins, and gone when that asks for it."""
        asked.append(1)
        if len(asked) > 1:
            stop.set()
        return DeadSpark()

    lake.workspace.present_spark = dying  # type: ignore[assignment, return-value]
    assert list(run_lake(lake.workspace, once=False, stop=stop)) == []
    assert [a.outcome for a in lake.workspace.catalog.history("default.a")] == [Outcome.INTERRUPTED]
