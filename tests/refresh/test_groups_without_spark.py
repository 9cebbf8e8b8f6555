"""Groups through the real code, catalog and traces; only what a refresh computes is made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep
from typing import Any, NoReturn

import pytest

from lake.traces import LAYOUT, append, contents
from runnel.catalog import Leases, Owner, StreamTable, open_catalog
from runnel.errors import Busy, QueryFailed, RunnelError, SourceError
from runnel.model.alerts import AlertKind
from runnel.model.frontier import Frontier, Pin
from runnel.model.refresh import Outcome as AttemptOutcome
from runnel.model.refresh import RefreshAction, RefreshMode, TableState
from runnel.model.settings import Settings
from runnel.refresh import compaction, group, starting_over
from runnel.refresh.attempt import check_all, lease_of
from runnel.refresh.execute import Outcome
from runnel.refresh.group import refresh_group
from runnel.refresh.lifecycle import remove_orphans
from runnel.refresh.pins import Pins
from runnel.refresh.plan import RefreshPlan
from runnel.refresh.recovery import catch_up, recover
from runnel.refresh.storage import fresh_incarnation
from runnel.refresh.unfinished import remove_unfinished, unfinished_writes
from runnel.refresh.workspace import Workspace
from runnel.schedule.health import repair
from schedule.graphs import graph

READS = {"b": "orders", "c": "orders", "d": "b c"}
START = datetime(2026, 3, 1, tzinfo=UTC)


class Rig:
    """A catalog and traces in a folder; the base table is a number that is its version."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.catalog = open_catalog(f"sqlite:///{folder}/catalog.db")
        leases = Leases(self.catalog.engine, Owner.current())
        self.workspace = Workspace(
            folder, self.catalog, leases, Settings(busy_wait_seconds=0), _no_spark
        )
        self.version = 1
        self.before: dict[str, Callable[[], None]] = {}
        self.anew: set[str] = set()
        monkeypatch.setattr(group, "carry_out", self.carry_out)
        monkeypatch.setattr(starting_over, "execute", _filled)
        for table in graph(READS):
            self.fill(
                replace(table, mode=RefreshMode.AUTO, layout=LAYOUT, epoch=1, trace_version=0)
            )

    def fill(self, table: StreamTable) -> None:
        frontier = self.pins(START).frontier(table.sources)
        append(self.workspace.trace(table), 1, [(1, 1)], frontier=frontier.to_json())
        self.catalog.add_table(replace(table, frontier=frontier))

    def pins(self, at: datetime | None = None) -> Pins:
        pins = Pins(self.workspace, at or datetime.now(UTC))
        pins._pins["default.orders"] = Pin("delta", "o", self.version)
        return pins

    def carry_out(
        self,
        workspace: Workspace,
        table: StreamTable,
        frontier: Frontier,
        held: Any,
        begun: Any,
        group: str,
        near: Any = None,
        lives: Any = None,
    ) -> tuple[RefreshPlan, Outcome]:
        """Append the base's version as a row; a table over others appends what it read of them."""
        self.before.get(str(table.name), lambda: None)()
        check_all(held)
        trace = workspace.trace(table)
        epoch = trace.next_epoch()
        if str(table.name) in self.anew:
            new = replace(fresh_incarnation(table), incarnation=f"new {table.name}")
            reason = RefreshAction.REINITIALIZE
            plan = RefreshPlan(new, reason, "retyped", frontier, {}, {}, epoch, group)
            return plan, lives.fill(table, plan, {})
        upstream = [pin.version for pin in frontier.pins.values()]
        rows = [(100 * epoch + version, 1) for version in upstream]
        append(trace, epoch, rows, group=group, frontier=frontier.to_json())
        plan = RefreshPlan(table, RefreshAction.DIFFERENTIAL, "", frontier, {}, {}, epoch, group)
        return plan, Outcome(epoch, rows_inserted=len(rows))

    def refresh(self) -> dict[str, str]:
        """Refresh the group after a commit to its base; the actions by name."""
        self.version += 1
        ids = [table.id for table in self.catalog.tables()]
        results = refresh_group(self.workspace, ids, self.pins())
        return {result.name: str(result.action) for result in results.values()}

    def seen(self) -> dict[str, tuple[int, dict[int, int]]]:
        """What readers see: the epoch of each table, and its contents there."""
        return {
            str(t.name): (t.epoch, contents(self.workspace.trace(t), t.epoch))
            for t in (catch_up(self.workspace, table) for table in self.catalog.tables())
        }

    def pending(self) -> list[str]:
        found = []
        for table in self.catalog.tables():
            last = self.workspace.trace(table).last_commit()
            if last is not None and last.epoch > table.epoch:
                found.append(str(table.name))
        return found


def _filled(workspace: Workspace, plan: RefreshPlan, **more: Any) -> Outcome:
    """The new life of a table: one row."""
    note = {"frontier": plan.frontier.to_json(), "group": plan.group}
    append(workspace.trace(plan.table), plan.epoch, [(7, 1)], **note)
    return Outcome(plan.epoch, rows_inserted=1)


def _no_spark() -> NoReturn:
    raise AssertionError("this needs no Spark")


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(tmp_path, monkeypatch)


class Heard:
    """Remembers alerts."""

    def __init__(self) -> None:
        self.told: list[tuple[AlertKind, str]] = []

    def emit(self, kind: AlertKind, table: Any, message: str, **facts: Any) -> None:
        self.told.append((kind, str(table)))


class Killed(BaseException):
    pass


def dying(rig: Rig, monkeypatch: pytest.MonkeyPatch, point: str, times: int = 1) -> None:
    """The refresh stops at a point without any cleaning up, as a killed process does."""
    left = [times]

    def reach(name: str) -> None:
        if name == point:
            left[0] -= 1
            if left[0] == 0:
                raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(group, "reach", reach)
        patched.setattr(group._GroupRun, "_give_up", lambda self, error: None)
        with pytest.raises(Killed):
            rig.refresh()


def failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_all_members_advance_and_the_last_one_reads_the_others_new_epochs(rig: Rig) -> None:
    assert rig.refresh() == dict.fromkeys("bcd", "DIFFERENTIAL")
    assert rig.seen() == {
        "b": (2, {1: 1, 202: 1}), "c": (2, {1: 1, 202: 1}), "d": (2, {1: 1, 202: 2}),
    }  # fmt: skip
    d = rig.catalog.find("default.d")
    assert d is not None
    assert d.frontier is not None
    assert {pin.version for pin in d.frontier.pins.values()} == {2}
    assert d.grouped
    assert {a.outcome for a in rig.catalog.history()} == {AttemptOutcome.OK}


def test_members_note_what_they_take_forget_errors_and_tell_what_they_did(rig: Rig) -> None:
    heard = rig.workspace.alerts = Heard()
    late = datetime(2026, 3, 1, 1, tzinfo=UTC)
    for table in rig.catalog.tables():
        rig.catalog.update_table(table.id, retry_at=late, consecutive_errors=1)
    rig.before["c"] = lambda: sleep(0.05)
    rig.refresh()
    after = {str(t.name): t for t in rig.catalog.tables()}
    assert all(t.retry_at is None and t.consecutive_errors == 0 for t in after.values())
    taken = {name: t.work_seconds or 0.0 for name, t in after.items()}
    assert taken["c"] >= 0.05
    assert 0 < taken["b"] < 10
    assert heard.told == [(AlertKind.REFRESH_COMPLETED, name) for name in "bcd"]


@pytest.mark.parametrize("name", ["b", "c", "d"])
def test_a_member_that_fails_leaves_the_others_where_they_were(rig: Rig, name: str) -> None:
    rig.refresh()
    before = rig.seen()
    rig.before[name] = failing(QueryFailed("division by zero"))
    with pytest.raises(QueryFailed):
        rig.refresh()
    assert rig.seen() == before
    assert rig.pending() == [], "what the others appended is taken back"
    errors = {str(t.name): t.consecutive_errors for t in rig.catalog.tables()}
    assert errors == {**dict.fromkeys("bcd", 0), name: 1}
    given_up = [a for a in rig.catalog.history() if a.action is RefreshAction.SKIP]
    assert {a.table_name for a in given_up} == {n for n in "bcd" if n < name}
    assert all("division by zero" in (a.reason or "") for a in given_up)
    rig.before.clear()
    assert rig.refresh() == dict.fromkeys("bcd", "DIFFERENTIAL")
    assert {epoch for epoch, _ in rig.seen().values()} <= {3, 4}
    assert rig.seen()["d"][1].keys() >= {1, 202}


@pytest.mark.parametrize(
    ("point", "times"),
    [
        ("group.appended", 1),
        ("group.appended", 2),
        ("group.appended", 3),
        ("group.before_switch", 1),
    ],
)
def test_killed_before_the_switch_nothing_is_seen_and_the_next_refresh_cleans_up(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, point: str, times: int
) -> None:
    rig.refresh()
    before = rig.seen()
    dying(rig, monkeypatch, point, times)
    assert len(rig.pending()) == min(times, 3) if point == "group.appended" else 3
    assert rig.seen() == before, "readers stay where they were"
    assert rig.refresh() == dict.fromkeys("bcd", "DIFFERENTIAL")
    assert rig.pending() == []
    seen = rig.seen()
    d = rig.catalog.find("default.d")
    assert d is not None
    assert d.frontier is not None
    assert {k: p.version for k, p in d.frontier.pins.items()} == {
        "default.b": seen["b"][0], "default.c": seen["c"][0],
    }  # fmt: skip
    lost = {value for value in seen["b"][1] if value not in (1, 202)}
    assert lost == {100 * seen["b"][0] + rig.version}, "the abandoned epoch left no row"


def test_killed_after_the_switch_everything_is_seen(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying(rig, monkeypatch, "group.after_switch")
    assert rig.pending() == []
    assert {epoch for epoch, _ in rig.seen().values()} == {2}


def test_a_single_holder_of_a_lease_takes_back_what_is_left_over(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying(rig, monkeypatch, "group.appended", 2)
    b = rig.catalog.find("default.b")
    assert b is not None
    recovered = recover(rig.workspace, b, None)
    assert recovered.epoch == 1
    assert rig.pending() == ["c"]
    assert contents(rig.workspace.trace(b), 99) == {1: 1}


def test_what_a_killed_group_left_is_undone_without_a_refresh(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying(rig, monkeypatch, "group.appended", 2)
    seen = rig.seen()
    assert rig.pending() == ["b", "c"]
    assert {str(t.name) for t in unfinished_writes(rig.workspace)} == {"b", "c"}
    b = rig.catalog.find("default.b")
    assert b is not None
    with rig.workspace.leases.hold(lease_of(b.id)):
        assert [str(t.name) for t in remove_unfinished(rig.workspace)] == ["c"]
    assert rig.pending() == ["b"], "its group may be at it"
    (fixed,) = (f for f in repair(rig.workspace) if f.check == "writes")
    assert fixed.said.endswith("unfinished writes: b")
    assert rig.pending() == []
    assert not unfinished_writes(rig.workspace)
    assert rig.seen() == seen
    assert rig.refresh() == dict.fromkeys("bcd", "DIFFERENTIAL")


def test_two_refreshes_of_a_group_exclude_each_other(rig: Rig) -> None:
    errors: list[RunnelError] = []

    def again() -> None:
        rig.before.clear()
        try:
            refresh_group(rig.workspace, [t.id for t in rig.catalog.tables()], rig.pins())
        except Busy as error:
            errors.append(error)

    rig.before["c"] = again
    assert rig.refresh() == dict.fromkeys("bcd", "DIFFERENTIAL")
    assert len(errors) == 1
    assert {epoch for epoch, _ in rig.seen().values()} == {2}


def test_a_suspended_member_holds_up_the_whole_group(rig: Rig) -> None:
    c = rig.catalog.find("default.c")
    assert c is not None
    rig.catalog.update_table(c.id, state=TableState.SUSPENDED)
    before = rig.seen()
    assert rig.refresh() == dict.fromkeys("bcd", "SKIP")
    assert rig.seen() == before


def test_nothing_new_is_noticed_without_leases(rig: Rig) -> None:
    rig.refresh()
    rig.version -= 1
    ids = [table.id for table in rig.catalog.tables()]
    with rig.workspace.leases.hold(f"table:{ids[0]}"):
        assert set(rig.refresh().values()) == {"NO_DATA"}
    assert {t.frontier.data_timestamp for t in rig.catalog.tables() if t.frontier} != {START}
    assert len({t.frontier.data_timestamp for t in rig.catalog.tables() if t.frontier}) == 1


@pytest.mark.parametrize("tidied", ["compacted", "taken over"])
def test_tidying_does_not_move_a_table_back(rig: Rig, tidied: str) -> None:
    """Without news a table is moved on without its lease, also while it is being compacted."""
    before = rig.catalog.tables()[0]
    later = datetime(2026, 3, 2, tzinfo=UTC)
    moved = Frontier(before.frontier.pins if before.frontier else {}, later)
    assert rig.catalog.record_no_data(before, moved, rig.workspace.leases.owner, 0.0, "quiet")
    if tidied == "compacted":
        compaction._record(rig.workspace, before, is_noticed=False)
    else:
        catch_up(rig.workspace, replace(before, trace_version=-1))
    after = rig.catalog.get(before.id)
    assert after is not None
    assert after.frontier == moved


def test_an_older_pass_comes_too_late_for_all(rig: Rig) -> None:
    pins = rig.pins()
    rig.refresh()
    before = rig.seen()
    results = refresh_group(rig.workspace, [t.id for t in rig.catalog.tables()], pins)
    assert {str(r.action) for r in results.values()} == {"SKIP"}
    assert rig.seen() == before


def test_a_pass_that_is_later_by_its_clock_alone_takes_no_group_back(rig: Rig) -> None:
    """Another process, whose clock is ahead, pinned the base before the commit that was read."""
    ahead = rig.pins(datetime.now(UTC) + timedelta(seconds=5))
    rig.refresh()
    before = rig.seen()
    results = refresh_group(rig.workspace, [t.id for t in rig.catalog.tables()], ahead)
    assert {str(r.action) for r in results.values()} == {"SKIP"}
    assert {r.reason for r in results.values()} == {
        "b has already read newer versions of its sources"
    }
    assert rig.seen() == before


def test_a_source_that_cannot_be_read_is_the_error_of_who_reads_it(rig: Rig) -> None:
    pins = Pins(rig.workspace)
    with pytest.raises(SourceError, match="orders"):
        refresh_group(rig.workspace, [t.id for t in rig.catalog.tables()], pins)
    assert {str(t.name): t.consecutive_errors for t in rig.catalog.tables()} == {
        "b": 1, "c": 0, "d": 0,
    }  # fmt: skip
    assert [a.table_name for a in rig.catalog.history()] == ["b"]


# -- members that start over ------------------------------------------------------------------


def lives(rig: Rig) -> dict[str, str]:
    return {str(table.name): table.incarnation for table in rig.catalog.tables()}


def stored(rig: Rig) -> set[str]:
    return {path.name for path in rig.workspace.traces_path.iterdir()}


def test_a_member_that_starts_over_is_switched_to_with_the_others(rig: Rig) -> None:
    before = lives(rig)
    rig.anew = {"b"}
    assert rig.refresh() == {"b": "REINITIALIZE", "c": "DIFFERENTIAL", "d": "DIFFERENTIAL"}
    assert lives(rig) == {**before, "b": "new b"}
    assert stored(rig) == {*before.values(), "new b"} - {before["b"]}
    assert rig.seen()["b"] == (2, {7: 1})
    found = rig.catalog.find("default.d")
    assert found is not None
    assert found.frontier is not None
    assert found.frontier.pins["default.b"] == Pin("trace", "new b", 2)
    rig.anew = set()
    assert rig.refresh() == dict.fromkeys("bcd", "DIFFERENTIAL")
    assert rig.seen()["b"] == (3, {7: 1, 303: 1})


def test_a_member_that_starts_over_is_given_up_with_the_others(rig: Rig) -> None:
    before, seen = lives(rig), rig.seen()
    rig.anew = {"b"}
    rig.before["d"] = failing(QueryFailed("1 / 0"))
    with pytest.raises(QueryFailed):
        rig.refresh()
    assert (lives(rig), rig.seen(), rig.pending()) == (before, seen, [])
    assert stored(rig) == set(before.values())
    rig.before.clear()
    rig.refresh()
    assert lives(rig)["b"] == "new b"


def test_killed_before_the_switch_the_old_life_goes_on(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, seen = lives(rig), rig.seen()
    rig.anew = {"b"}
    with monkeypatch.context() as patched:
        patched.setattr(starting_over.NewLives, "close", lambda self: self._held.close())
        dying(rig, monkeypatch, "group.before_switch")
    assert (lives(rig), rig.seen()) == (before, seen)
    assert remove_orphans(rig.workspace) == ["new b"]
    rig.anew = set()
    rig.refresh()
    assert lives(rig) == before


def test_nobody_removes_a_new_life_before_it_is_switched_to(rig: Rig) -> None:
    rig.anew = {"b"}
    found: list[str] = []
    rig.before["d"] = lambda: found.extend(remove_orphans(rig.workspace))
    rig.refresh()
    assert (found, lives(rig)["b"]) == ([], "new b")
