"""Which IMMEDIATE tables a write concerns, and which are behind when they are read."""

from __future__ import annotations

import pytest

from guards.conftest import Bench
from runnel.errors import ImmediateRefreshFailed, QueryFailed, RunnelError, SystemFault
from runnel.model.refresh import RefreshMode, TableState
from runnel.refresh.attempt import note_failure
from runnel.refresh.workspace import Workspace
from runnel.schedule import immediate
from runnel.schedule.alerting import AlertBook
from runnel.schedule.immediate import catch_up, following_writes

NOW = RefreshMode.IMMEDIATE


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """What would have been refreshed."""
    asked: list[set[str]] = []
    monkeypatch.setattr(immediate, "refresh_pass", lambda workspace, keys: asked.append(keys) or {})
    return asked


def test_a_write_is_followed_through_other_stream_tables(
    bench: Bench, passes: list[set[str]]
) -> None:
    bench.base("orders"), bench.base("other")
    bench.stream("between", "orders")
    bench.stream("below", "between", mode=NOW)
    bench.stream("direct", "orders", mode=NOW)
    bench.stream("late", "orders")
    bench.stream("elsewhere", "other", mode=NOW)
    with following_writes(bench.workspace):
        bench.append("orders")
    assert passes == [{"default.below", "default.direct"}]


def test_what_writes_nothing_refreshes_nothing(bench: Bench, passes: list[set[str]]) -> None:
    bench.base("orders")
    bench.stream("direct", "orders", mode=NOW)
    bench.append("orders")
    with following_writes(bench.workspace):
        pass
    assert passes == []


def test_suspended_and_unfilled_tables_do_not_follow(bench: Bench, passes: list[set[str]]) -> None:
    bench.base("orders")
    bench.stream("resting", "orders", mode=NOW, state=TableState.SUSPENDED)
    bench.stream("new", "orders", mode=NOW, state=TableState.UNINITIALIZED, frontier=None, epoch=0)
    with following_writes(bench.workspace):
        bench.append("orders")
    assert passes == []


def test_a_failing_refresh_says_that_the_write_stays(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(workspace: object, keys: set[str]) -> None:
        raise QueryFailed("division by zero")

    monkeypatch.setattr(immediate, "refresh_pass", fail)
    bench.base("orders")
    bench.stream("direct", "orders", mode=NOW)
    with (
        pytest.raises(ImmediateRefreshFailed, match="orders was written") as caught,
        following_writes(bench.workspace),
    ):
        bench.append("orders")
    assert "the write is committed" in str(caught.value)
    assert "division by zero" in str(caught.value)
    assert isinstance(caught.value.__cause__, QueryFailed)
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("error", "is_given_up"),
    [(QueryFailed("division by zero"), True), (SystemFault("full"), False)],
)
def test_what_fails_write_after_write_is_suspended(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: RunnelError, is_given_up: bool
) -> None:
    """As by `run`: not because of an outage, and writes go on without it then."""
    workspace = bench.workspace
    workspace.alerts = AlertBook(workspace.catalog, workspace.settings)
    told: list[str] = []
    workspace.alerts.subscribe(lambda alert: told.append(str(alert.kind)))

    def fail(workspace: Workspace, keys: set[str]) -> None:
        found = workspace.catalog.find("default.direct")
        assert found is not None
        raise note_failure(workspace, found, error)

    monkeypatch.setattr(immediate, "refresh_pass", fail)
    bench.base("orders")
    table = bench.stream("direct", "orders", mode=NOW)
    bench.stream("healthy", "orders", mode=NOW)
    said = []
    for _ in range(workspace.settings.max_consecutive_errors):
        assert "auto_suspended" not in told
        with pytest.raises(ImmediateRefreshFailed) as caught, following_writes(workspace):
            bench.append("orders")
        said.append("direct failed too often in a row and is suspended" in str(caught.value))
    assert said == [False, False, is_given_up]
    assert ("auto_suspended" in told) is is_given_up
    after = workspace.catalog.get(table.id)
    assert after is not None
    assert after.state is (TableState.SUSPENDED if is_given_up else TableState.ACTIVE)
    asked: list[set[str]] = []
    monkeypatch.setattr(immediate, "refresh_pass", lambda workspace, keys: asked.append(keys) or {})
    with following_writes(workspace):
        bench.append("orders")
    assert asked == [{"default.healthy"} if is_given_up else {"default.direct", "default.healthy"}]


def test_an_error_of_the_write_itself_is_not_hidden(bench: Bench, passes: list[set[str]]) -> None:
    bench.base("orders")
    bench.stream("direct", "orders", mode=NOW)
    with pytest.raises(KeyError), following_writes(bench.workspace):
        raise KeyError("the write")
    assert passes == []


def test_a_read_catches_up_with_other_writers(bench: Bench, passes: list[set[str]]) -> None:
    bench.base("orders"), bench.base("other")
    bench.stream("between", "orders")
    bench.stream("below", "between", mode=NOW)
    bench.stream("elsewhere", "other", mode=NOW)
    bench.stream("late", "orders")
    keys = ["default.below", "default.elsewhere", "default.late", "default.unknown"]
    assert not catch_up(bench.workspace, keys)
    bench.append("orders")
    assert catch_up(bench.workspace, keys)
    assert passes == [{"default.below"}]


def test_a_suspended_table_shows_what_it_holds(bench: Bench, passes: list[set[str]]) -> None:
    bench.base("orders")
    bench.stream("resting", "orders", mode=NOW, state=TableState.SUSPENDED)
    bench.append("orders")
    assert not catch_up(bench.workspace, ["default.resting"])


def test_a_table_that_must_start_over_is_behind(bench: Bench, passes: list[set[str]]) -> None:
    bench.base("orders")
    bench.stream("direct", "orders", mode=NOW, reinitialize="a function was redefined")
    assert catch_up(bench.workspace, ["default.direct"])
