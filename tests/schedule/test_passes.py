"""Passes by hand: nobody reads two instants at once, whatever is suspended or overtakes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time

import pytest

from runnel.errors import (
    Busy,
    ImmediateRefreshFailed,
    NotFound,
    QueryFailed,
    RunnelError,
    SourceError,
    SystemFault,
    UserError,
)
from runnel.model.frontier import Frontier
from runnel.model.refresh import RefreshMode
from runnel.model.schedule import Schedule
from runnel.refresh.attempt import refresh_table
from runnel.refresh.pins import Pins
from runnel.schedule.immediate import catch_up, following_writes
from runnel.schedule.passes import bring_up, refresh_pass
from schedule.made_up import MadeUp


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MadeUp]:
    made = MadeUp(tmp_path, monkeypatch)
    yield made
    made.workspace.catalog.close()


@pytest.fixture
def diamond(lake: MadeUp) -> MadeUp:
    """b and c read one base source, d reads both, e reads d; the source has news."""
    lake.make("b", "x1")
    lake.make("c", "x1")
    lake.make("d", "b", "c")
    lake.make("e", "d")
    lake.base("x1").version += 1
    return lake


def refresh(lake: MadeUp, *names: str) -> dict[str, str]:
    targets = {f"default.{name}" for name in names} or None
    results = refresh_pass(lake.workspace, targets)
    return {result.name: str(result.action) for result in results.values()}


def written_and_refreshed(lake: MadeUp, *names: str) -> None:
    """What another process does meanwhile."""
    lake.base("x1").version += 1
    refresh(lake, *names)


# -- suspended --------------------------------------------------------------------------------


def test_those_below_a_suspended_table_stay_where_it_stands(diamond: MadeUp) -> None:
    diamond.suspend("b")
    assert refresh(diamond) == {
        "b": "SKIP", "c": "DIFFERENTIAL", "d": "SKIP", "e": "SKIP",
    }  # fmt: skip
    assert diamond.versions("d") == {"x1": 1}
    assert diamond.skips("d") == ["b, which it is computed from, is suspended"]
    assert diamond.skips("e") == ["b, which it is computed from, is suspended"]
    diamond.resume("b")
    assert set(refresh(diamond, "e").values()) == {"DIFFERENTIAL", "NO_DATA"}
    assert diamond.versions("e") == {"x1": 2}


def test_those_below_a_group_with_a_suspended_member_wait_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = MadeUp(tmp_path, monkeypatch, diamond_consistency="atomic")
    for name, sources in {"b": ["x1"], "c": ["x1"], "d": ["b", "c"], "e": ["d"]}.items():
        lake.make(name, *sources)
    lake.base("x1").version += 1
    lake.suspend("c")
    assert refresh(lake) == dict.fromkeys("bcde", "SKIP")
    assert lake.skips("e") == ["c, which it is computed from, is suspended"]
    lake.resume("c")
    assert refresh(lake) == dict.fromkeys("bcde", "DIFFERENTIAL")
    lake.workspace.catalog.close()


def test_a_refresh_that_was_left_out_is_in_the_history_once(diamond: MadeUp) -> None:
    diamond.suspend("b")
    refresh(diamond)
    refresh(diamond)
    assert diamond.skips("b") == ["the table is suspended"]
    diamond.resume("b")
    refresh(diamond)
    diamond.suspend("b")
    refresh(diamond)
    assert diamond.skips("b") == ["the table is suspended"] * 2, "something was done in between"


def test_a_consumer_that_is_held_up_by_a_failure_has_that_in_its_history(diamond: MadeUp) -> None:
    def fail() -> None:
        raise QueryFailed("division by zero")

    diamond.before["b"] = fail
    with pytest.raises(QueryFailed):
        refresh(diamond)
    assert diamond.skips("d") == ["b, which it reads, could not be refreshed"]
    assert diamond.versions("c") == {"x1": 2}


# -- overtaken --------------------------------------------------------------------------------


def test_who_reads_an_overtaken_table_is_refreshed_once_more(diamond: MadeUp) -> None:
    diamond.before["b"] = lambda: written_and_refreshed(diamond, "c")
    assert refresh(diamond) == {
        "b": "DIFFERENTIAL", "c": "NO_DATA", "d": "DIFFERENTIAL", "e": "DIFFERENTIAL",
    }  # fmt: skip
    assert diamond.versions("d") == diamond.versions("e") == {"x1": 3}
    assert len({diamond.instant(name) for name in "bcde"}) == 1


def test_a_table_that_nobody_reads_may_be_overtaken(diamond: MadeUp) -> None:
    diamond.make("f", "x1", frontier=diamond.found("c").frontier)
    diamond.before["b"] = lambda: written_and_refreshed(diamond, "f")
    assert refresh(diamond, "b", "f") == {"b": "DIFFERENTIAL", "f": "SKIP"}
    assert diamond.skips("f") == ["it is already at a newer data timestamp"]
    assert (diamond.versions("b"), diamond.versions("f")) == ({"x1": 2}, {"x1": 3})


def test_a_group_that_is_overtaken_holds_up_those_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = MadeUp(tmp_path, monkeypatch, diamond_consistency="atomic")
    reads = {"a": ["x1"], "b": ["x1"], "c": ["x1"], "d": ["b", "c"], "e": ["d", "a"]}
    for name, sources in reads.items():
        more = {"options": {"diamond_consistency": "none"}} if name == "e" else {}
        lake.make(name, *sources, **more)
    lake.base("x1").version += 1
    lake.before["a"] = lambda: written_and_refreshed(lake, "d")
    refresh(lake)
    assert lake.versions("e") == {"x1": 3}
    lake.workspace.catalog.close()


def test_a_pass_that_is_overtaken_again_and_again_ends_with_an_error(diamond: MadeUp) -> None:
    times: list[int] = []

    def again() -> None:
        times.append(1)
        written_and_refreshed(diamond, "c")
        diamond.before["b"] = again

    diamond.before["b"] = again
    with pytest.raises(Busy, match="overtook this one 5 times: d, e") as caught:
        refresh(diamond)
    assert len(times) == 5
    assert caught.value.retryable
    assert diamond.versions("d") == diamond.versions("e") == {"x1": 1}


def test_being_overtaken_by_older_contents_is_not_being_up_to_date(lake: MadeUp) -> None:
    """The other process has a clock that is ahead, and had pinned the source before the write."""
    lake.make("a", "x1")
    b = lake.make("b", "x2")
    lake.make("n", "a", "b")
    lake.base("x2").version = 2
    ahead = Frontier(Pins(lake.workspace).frontier(b.sources).pins, _in(5))
    lake.base("x1").version = lake.base("x2").version = 3
    lake.before["a"] = lambda: refresh_table(lake.workspace, b.id, ahead)
    assert refresh(lake) == dict.fromkeys("abn", "DIFFERENTIAL")
    assert lake.versions("n") == {"x1": 3, "x2": 3}


def test_a_table_that_is_dropped_meanwhile_is_told(diamond: MadeUp) -> None:
    def overtake_and_drop() -> None:
        written_and_refreshed(diamond, "c")
        diamond.workspace.catalog.remove_tables([diamond.found("e").id])

    diamond.before["b"] = overtake_and_drop
    with pytest.raises(NotFound):
        refresh(diamond, "e")


# -- written meanwhile ------------------------------------------------------------------------


@pytest.fixture
def two(lake: MadeUp) -> MadeUp:
    """a reads one base source and b another, n reads both tables; both sources have news."""
    lake.make("a", "x1")
    lake.make("b", "x2")
    lake.make("n", "a", "b")
    lake.base("x1").version = lake.base("x2").version = 2
    return lake


def write(lake: MadeUp, *names: str) -> None:
    for name in names:
        lake.base(name).version += 1


def test_a_commit_during_a_pass_is_not_seen_by_who_comes_late_in_it(two: MadeUp) -> None:
    two.before["a"] = lambda: write(two, "x1", "x2")
    assert refresh(two) == dict.fromkeys("abn", "DIFFERENTIAL")
    assert two.versions("n") == {"x1": 2, "x2": 2}
    assert refresh(two) == dict.fromkeys("abn", "DIFFERENTIAL")
    assert two.versions("n") == {"x1": 3, "x2": 3}


def test_a_commit_while_an_immediate_table_follows_a_write_is_not_half_seen(lake: MadeUp) -> None:
    lake.make("a", "x1")
    lake.make("d", "a", "x2", mode=RefreshMode.IMMEDIATE)
    lake.before["a"] = lambda: write(lake, "x1", "x2")
    with following_writes(lake.workspace):
        write(lake, "x1")
    assert lake.versions("d") == {"x1": 2, "x2": 1}
    lake.before["a"] = lambda: write(lake, "x1", "x2")
    assert catch_up(lake.workspace, ["default.d"])
    assert lake.versions("d") == {"x1": 3, "x2": 2}


def test_a_refresh_by_name_looks_only_at_what_it_needs(two: MadeUp) -> None:
    two.base("x2").is_broken = True
    assert refresh(two, "a") == {"a": "DIFFERENTIAL"}


def test_a_source_that_comes_back_during_a_pass_is_of_another_instant(two: MadeUp) -> None:
    two.base("x2").is_broken = True

    def mend() -> None:
        two.base("x2").is_broken = False

    two.before["a"] = mend
    with pytest.raises(SourceError, match="x2, which is read, cannot be found or read"):
        refresh(two)
    assert two.versions("b") == {"x2": 1}
    assert refresh(two) == dict.fromkeys("abn", "DIFFERENTIAL") | {"a": "NO_DATA"}


# -- clocks -----------------------------------------------------------------------------------


def _in(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def test_a_table_of_a_clock_that_is_ahead_is_refreshed_all_the_same(lake: MadeUp) -> None:
    lake.make("a", "x1", at=time() + 5)
    lake.make("b", "a", at=time() + 5)
    before = lake.instant("b")
    lake.base("x1").version = 2
    assert refresh(lake, "b") == dict.fromkeys("ab", "DIFFERENTIAL")
    assert lake.instant("a") == lake.instant("b") == before + timedelta(microseconds=1)


def test_an_immediate_table_of_a_clock_that_is_ahead_is_not_stale(lake: MadeUp) -> None:
    lake.make("a", "x1", at=time() + 5, mode=RefreshMode.IMMEDIATE)
    with following_writes(lake.workspace):
        lake.base("x1").version = 2
    assert lake.versions("a") == {"x1": 2}
    lake.base("x1").version = 3
    assert catch_up(lake.workspace, ["default.a"])
    assert lake.versions("a") == {"x1": 3}
    assert not catch_up(lake.workspace, ["default.a"])


@pytest.mark.parametrize("error", [QueryFailed("1 / 0"), SystemFault("no disk")])
def test_what_an_immediate_table_fails_with_is_of_the_class_of_its_cause(
    lake: MadeUp, error: RunnelError
) -> None:
    def fail() -> None:
        raise error

    lake.make("a", "x1", mode=RefreshMode.IMMEDIATE)
    lake.before["a"] = fail
    with pytest.raises(ImmediateRefreshFailed) as caught, following_writes(lake.workspace):
        lake.base("x1").version = 2
    assert caught.value.error_class is error.error_class
    assert not caught.value.retryable, "it would write twice"
    lake.before["a"] = fail
    with pytest.raises(ImmediateRefreshFailed) as caught:
        catch_up(lake.workspace, ["default.a"])
    assert (caught.value.error_class, caught.value.retryable) == (
        error.error_class, error.retryable
    )  # fmt: skip


def test_an_immediate_table_below_a_suspended_one_serves_what_it_holds(lake: MadeUp) -> None:
    lake.make("a", "x1")
    lake.make("b", "x1")
    lake.make("d", "a", "b", mode=RefreshMode.IMMEDIATE)
    lake.suspend("a")
    with following_writes(lake.workspace):
        lake.base("x1").version = 2
    assert not catch_up(lake.workspace, ["default.d"])
    assert lake.versions("d") == {"x1": 1}


def test_an_immediate_table_beside_a_suspended_one_of_its_group_says_that_it_cannot_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """b is not below c, but advances with it; f is below b."""
    lake = MadeUp(tmp_path, monkeypatch, diamond_consistency="atomic")
    lake.make("b", "x1", mode=RefreshMode.IMMEDIATE)
    lake.make("c", "x1")
    lake.make("d", "b", "c", mode=RefreshMode.IMMEDIATE)
    lake.make("f", "b", mode=RefreshMode.IMMEDIATE)
    lake.suspend("c")
    with pytest.raises(ImmediateRefreshFailed) as caught, following_writes(lake.workspace):
        lake.base("x1").version = 2
    assert caught.value.primary.endswith("could follow: b, f")
    assert "c is suspended, and b advances only together with it" in str(caught.value)
    for name in ("b", "f"):
        with pytest.raises(ImmediateRefreshFailed, match=f"{name} could not be brought") as caught:
            catch_up(lake.workspace, [f"default.{name}"])
        assert f"SUSPEND {name} too" in str(caught.value)
    assert not catch_up(lake.workspace, ["default.d"]), "below c: it serves what it holds"
    lake.resume("c")
    assert catch_up(lake.workspace, ["default.f"])
    assert lake.versions("b") == lake.versions("f") == {"x1": 2}
    lake.workspace.catalog.close()


# -- new tables -------------------------------------------------------------------------------


def pins_for_new(lake: MadeUp, *sources: str) -> dict[str, int]:
    """What a new table over these would be filled from; fails when that is of two instants."""
    read = [lake._source(source) for source in sources]
    draft = lake.make("draft", "x9", sources=tuple(read), frontier=Frontier({}, _in(-60)))
    # In a hurry: what is there is too old for it.
    hurried = replace(draft, schedule=Schedule.parse("1s"))
    frontier = bring_up(lake.workspace, read, [hurried]).frontier(read)
    base = lake.base_of(frontier, draft)
    assert base is not None, "it mixes two versions of a base source"
    lake.workspace.catalog.remove_tables([draft.id])
    return {key.removeprefix("default."): pin.version for key, pin in base.items()}


def test_a_new_table_over_one_that_is_overtaken_starts_from_one_instant(diamond: MadeUp) -> None:
    diamond.before["b"] = lambda: written_and_refreshed(diamond, "c")
    assert pins_for_new(diamond, "b", "c", "x1") == {"x1": 3}


def test_a_new_table_does_not_see_what_is_written_while_those_above_it_are_refreshed(
    lake: MadeUp,
) -> None:
    lake.make("a", "x1")
    write(lake, "x1")
    lake.before["a"] = lambda: write(lake, "x1", "x2")
    assert pins_for_new(lake, "a", "x2", "x3") == {"x1": 2, "x2": 1, "x3": 1}


def test_a_new_table_below_a_suspended_one_starts_from_what_that_holds(diamond: MadeUp) -> None:
    diamond.suspend("b")
    assert pins_for_new(diamond, "b", "x1") == {"x1": 1}
    assert pins_for_new(diamond, "d") == {"x1": 1}
    refresh(diamond, "c")
    with pytest.raises(UserError, match="b, which it would be computed from, is suspended"):
        bring_up(diamond.workspace, [diamond._source("b"), diamond._source("c")], [])
    assert diamond.skips("b") == []


def test_what_takes_the_place_of_a_table_is_never_older(lake: MadeUp) -> None:
    old = lake.make("old", "x1", at=time() + 5)
    assert old.frontier is not None
    pins = bring_up(lake.workspace, old.sources, [old], [old])
    assert pins.data_timestamp > old.frontier.data_timestamp


def test_what_is_done_once_more_is_told_once_more(diamond: MadeUp) -> None:
    told: list[tuple[str, str]] = []
    diamond.before["b"] = lambda: written_and_refreshed(diamond, "c")
    refresh_pass(diamond.workspace, None, lambda r: told.append((r.name, str(r.action))))
    assert told == [
        ("b", "DIFFERENTIAL"), ("c", "SKIP"),
        ("b", "DIFFERENTIAL"), ("c", "NO_DATA"), ("d", "DIFFERENTIAL"), ("e", "DIFFERENTIAL"),
    ]  # fmt: skip
