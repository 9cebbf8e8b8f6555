"""What the scheduler makes of the ways in which a refresh can end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runnel.catalog import StreamTable
from runnel.errors import (
    Abandoned,
    Busy,
    ErrorClass,
    InternalFault,
    NotFound,
    QueryFailed,
    RunnelError,
    SourceError,
    SystemFault,
)
from runnel.model.refresh import Outcome, RefreshAction
from runnel.model.results import RefreshResult
from runnel.refresh.attempt import note_failure
from runnel.schedule import executor
from runnel.schedule.executor import LakeExecutor
from runnel.schedule.lake_book import LakeBook
from runnel.schedule.units import Unit
from runnel.schedule.views import Ending, Start
from schedule.by_hand import T0
from schedule.lake import FakeLake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLake]:
    made = FakeLake(tmp_path)
    monkeypatch.setattr(executor, "tidy_when_due", lambda workspace, table_id: None)
    yield made
    made.workspace.catalog.close()


def start(lake: FakeLake, *names: str) -> Start:
    book = LakeBook(lake.workspace)
    snapshot = book.pin(T0 + 24, book.tables().values())
    return Start(1, Unit(tuple(f"default.{name}" for name in names)), snapshot)


def refreshing(monkeypatch: pytest.MonkeyPatch, outcome: RefreshResult | Exception) -> None:
    def refresh(*arguments: Any, **options: Any) -> RefreshResult:
        assert options["wait"] == 0.0, "a worker must not wait for another process"
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(executor, "refresh_table", refresh)


def result(action: RefreshAction, epoch: int = 2) -> RefreshResult:
    return RefreshResult("a", action, "test", epoch=epoch)


def test_the_epoch_of_a_pass_is_fixed_for_its_consumers(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.add("a", "1m", "x1", at=T0)
    order = start(lake, "a")
    refreshing(monkeypatch, result(RefreshAction.DIFFERENTIAL, epoch=7))
    event = LakeExecutor(lake.workspace)(order)
    assert (event.ending, event.results[0].epoch) == (Ending.DONE, 7)
    pin = order.snapshot.shared._pins["default.a"]  # type: ignore[attr-defined]
    assert (pin.identity, pin.version) == (table.incarnation, 7)


@pytest.mark.parametrize(
    ("action", "tidied"), [(RefreshAction.DIFFERENTIAL, True), (RefreshAction.NO_DATA, False)]
)
def test_what_has_grown_is_tidied_when_that_pays(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch, action: RefreshAction, tidied: bool
) -> None:
    table = lake.add("a", "1m", "x1", at=T0)
    refreshing(monkeypatch, result(action))
    asked: list[str] = []
    monkeypatch.setattr(executor, "tidy_when_due", lambda workspace, id_: asked.append(id_))
    execute = LakeExecutor(lake.workspace)
    event = execute(start(lake, "a"))
    assert asked == [], "its end is told first"
    execute.tidy(event)
    assert asked == ([table.id] if tidied else [])


@pytest.mark.parametrize(
    ("outcome", "ending"),
    [
        (Busy("someone has it"), Ending.BUSY),
        (Abandoned("the process ends"), Ending.ABANDONED),
        (NotFound("dropped"), Ending.OVERTAKEN),
        (result(RefreshAction.SKIP), Ending.OVERTAKEN),
        (result(RefreshAction.NO_DATA), Ending.DONE),
    ],
)
def test_what_is_no_error(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch, outcome: Any, ending: Ending
) -> None:
    lake.add("a", "1m", "x1", at=T0)
    refreshing(monkeypatch, outcome)
    assert LakeExecutor(lake.workspace)(start(lake, "a")).ending is ending


@pytest.mark.parametrize(
    ("error", "error_class", "is_retryable"),
    [
        (SystemFault("disk full"), ErrorClass.SYSTEM, True),
        (QueryFailed("division by zero"), ErrorClass.USER, False),
        (SourceError("a column is gone"), ErrorClass.SCHEMA, False),
        (InternalFault("negative weight"), ErrorClass.INTERNAL, False),
        (RunnelError("unknown"), ErrorClass.INTERNAL, False),
    ],
)
def test_errors_have_a_class(
    lake: FakeLake,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    error_class: ErrorClass,
    is_retryable: bool,
) -> None:
    lake.add("a", "1m", "x1", at=T0)
    refreshing(monkeypatch, error)
    event = LakeExecutor(lake.workspace)(start(lake, "a"))
    assert (event.ending, event.error_class, event.is_retryable, event.failed) == (
        Ending.FAILED, error_class, is_retryable, "default.a"
    )  # fmt: skip


def test_a_source_that_cannot_be_read_is_an_error_in_the_history(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    lake.base("x1").is_broken = True
    event = LakeExecutor(lake.workspace)(start(lake, "a"))
    assert (event.ending, event.error_class) == (Ending.FAILED, ErrorClass.SCHEMA)
    attempt = lake.workspace.catalog.history("default.a")[0]
    assert (attempt.outcome.value, attempt.error_code) == ("FAILED", "SOURCE_ERROR")


def test_a_unit_of_several_tables_is_handed_over_as_a_whole(lake: FakeLake) -> None:
    lake.add("a", "1m", "x1", at=T0)
    lake.add("b", "1m", "x1", at=T0)
    seen: list[list[str]] = []

    def together(workspace: Any, tables: Any, pins: Any) -> list[RefreshResult]:
        seen.append([str(table.name) for table in tables])
        return [RefreshResult(str(t.name), RefreshAction.FULL, "test", epoch=2) for t in tables]

    event = LakeExecutor(lake.workspace, together)(start(lake, "a", "b"))
    assert (event.ending, seen) == (Ending.DONE, [["a", "b"]])


def redefining(
    monkeypatch: pytest.MonkeyPatch, name: str, outcome: RunnelError | str
) -> list[dict[str, Any]]:
    """One of the tables turns out to read from another place, or does not fit any more."""
    asked: list[dict[str, Any]] = []

    def renew(
        workspace: Any, tables: dict[str, StreamTable], targets: Any, pins: Any, **options: Any
    ) -> dict[str, RunnelError]:
        assert options == {"wait": 0.0}, "a worker must not wait for another process"
        asked.append(dict(tables))
        table = tables[f"default.{name}"]
        if isinstance(outcome, RunnelError):
            return {table.name.key: note_failure(workspace, table, outcome)}
        sources = tuple(replace(source, location=outcome) for source in table.sources)
        tables[table.name.key] = replace(table, sources=sources)
        return {}

    monkeypatch.setattr(executor, "renew_views", renew)
    return asked


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_what_reads_from_another_place_belongs_to_another_pass(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    for name in names:
        lake.add(name, "1m", "x1", at=T0)
    asked = redefining(monkeypatch, names[-1], "w/elsewhere")
    assert LakeExecutor(lake.workspace)(start(lake, *names)).ending is Ending.OVERTAKEN
    assert [sorted(tables) for tables in asked] == [[f"default.{name}" for name in names]]


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_a_stream_table_that_is_read_since_belongs_to_another_pass(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    """After an ALTER between the decision and the refresh: the pass did not bring it along."""
    refreshing(monkeypatch, result(RefreshAction.DIFFERENTIAL))

    def together(workspace: Any, tables: Any, pins: Any) -> list[RefreshResult]:
        return [RefreshResult(str(t.name), RefreshAction.FULL, "test", epoch=2) for t in tables]

    execute = LakeExecutor(lake.workspace, together)
    lake.add("up", "1m", "x1", at=T0)
    order = start(lake, "up")
    for name in names:
        lake.add(name, "1m", "x1", "up", at=T0)
    below = replace(order, unit=Unit(tuple(f"default.{name}" for name in names)))
    assert execute(below).ending is Ending.OVERTAKEN
    assert execute(order).ending is Ending.DONE
    assert execute(below).ending is Ending.DONE


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_a_definition_that_no_longer_fits_fails_once(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    for name in names:
        lake.add(name, "1m", "x1", at=T0)
    redefining(monkeypatch, names[-1], SourceError("it no longer fits"))
    event = LakeExecutor(lake.workspace)(start(lake, *names))
    assert (event.ending, event.failed) == (Ending.FAILED, f"default.{names[-1]}")
    assert len(lake.workspace.catalog.history()) == 1


@pytest.mark.parametrize("names", [("a",), ("a", "b")])
def test_a_table_whose_storage_cannot_be_reached_has_failed(
    lake: FakeLake, names: tuple[str, ...]
) -> None:
    """Before its attempt began: it is counted and tried again like any other failure."""
    lake.add("a", "1m", "x1", at=T0)
    lake.add("b", "1m", "x1", at=T0)
    lake.base("x1").version = 2
    table = lake.workspace.catalog.find("default.a")
    assert table is not None
    trace = lake.workspace.traces_path / table.incarnation
    trace.mkdir(parents=True)
    (trace / "_delta_log").write_text("no folder")
    event = LakeExecutor(lake.workspace)(start(lake, *names))
    assert (event.ending, event.is_retryable, event.failed) == (Ending.FAILED, True, "default.a")
    (attempt,) = lake.workspace.catalog.history("default.a")
    assert (attempt.outcome, attempt.error_code) == (Outcome.FAILED, "SYSTEM_FAULT")
    assert lake.stored(table).consecutive_errors == 1


def test_a_group_whose_source_cannot_be_read_blames_the_member_that_reads_it(
    lake: FakeLake,
) -> None:
    for name, source in (("a", "x1"), ("b", "x2")):
        table = lake.add(name, "1m", source, at=T0)
        trace = lake.workspace.traces_path / table.incarnation / "_delta_log"
        trace.mkdir(parents=True)
        (trace / f"{0:020d}.json").write_text("")
    lake.base("x1").is_broken = True
    event = LakeExecutor(lake.workspace)(start(lake, "a", "b"))
    assert (event.ending, event.failed) == (Ending.FAILED, "default.a")
    assert [a.outcome for a in lake.workspace.catalog.history("default.a")] == [Outcome.FAILED]
