"""Which past states of tables belong to one instant, against trying every combination."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.catalog import Attempt, StreamTable
from runnel.errors import UserError
from runnel.model.frontier import Frontier, Pin
from runnel.model.names import TableName
from runnel.model.refresh import Outcome, RefreshAction
from runnel.refresh.instants import Past, instant
from runnel.refresh.plan import FIRST_FILL
from schedule.graphs import graph

START = datetime(2026, 3, 1, tzinfo=UTC)
READS = {"b": "orders", "c": "orders items", "d": "b c", "e": "items"}


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


@dataclass
class World:
    """Tables whose refreshes are only noted; `vectors` are the versions each state really saw."""

    reads: dict[str, str] = field(default_factory=lambda: dict(READS))
    versions: dict[str, int] = field(default_factory=lambda: {"orders": 1, "items": 1})
    minute: int = 0
    states: dict[str, list[tuple[int, Frontier]]] = field(default_factory=dict)
    vectors: dict[tuple[str, int], dict[str, set[int]]] = field(default_factory=dict)

    def refresh(self, names: str, silent: str = "") -> None:
        """One pass over tables, in order; those in `silent` keep their epoch."""
        self.minute += 1
        for name in names.split():
            pins, seen = {}, dict[str, set[int]]()
            for source in self.reads[name].split():
                if source in self.reads:
                    epoch = self.states[source][0][0]
                    pins[f"default.{source}"] = Pin("trace", f"i-{source}", epoch)
                    below = self.vectors[source, self.last(source)]
                else:
                    pins[f"default.{source}"] = Pin("delta", source, self.versions[source])
                    below = {source: {self.versions[source]}}
                for base, found in below.items():
                    seen.setdefault(base, set()).update(found)
            past = self.states.setdefault(name, [])
            epoch = (past[0][0] if past else 0) + (name not in silent.split() or not past)
            past.insert(0, (epoch, Frontier(pins, at(self.minute))))
            self.vectors[name, self.minute] = seen

    def saw(self, name: str, minute: int) -> list[dict[str, set[int]]]:
        """What the state at a minute saw; when that was in a quiet time, what it did around it."""
        minutes = [m for known, m in self.vectors if known == name]
        before = max(m for m in minutes if m <= minute)
        after = min(m for m in minutes if m >= minute)
        return [self.vectors[name, m] for m in {before, after}]

    def last(self, name: str) -> int:
        return int((self.states[name][0][1].data_timestamp - START).total_seconds() // 60)

    def tables(self) -> tuple[StreamTable, ...]:
        return tuple(
            replace(t, epoch=self.states[str(t.name)][0][0], frontier=self.states[str(t.name)][0][1])
            if str(t.name) in self.states else t
            for t in graph(self.reads)
        )  # fmt: skip

    def history(self, key: str, limit: int) -> tuple[Attempt, ...]:
        past = self.states.get(key.removeprefix("default."), [])
        return tuple(
            attempt(epoch, frontier, FIRST_FILL if number == len(past) - 1 else "")
            for number, (epoch, frontier) in enumerate(past)
        )

    def common(self, names: str, **options: Any) -> dict[str, int]:
        """The minute of the state that is chosen for each."""
        unreadable = options.pop("unreadable", set())
        past = Past(self, lambda table, epoch: (str(table.name), epoch) not in unreadable)  # type: ignore[arg-type]
        keys = [f"default.{name}" for name in names.split()]
        others = [TableName.parse(name) for name in options.get("beside", "").split()]
        found = past.common(keys, options.get("upto"), others)
        return {
            key.removeprefix("default."): int((state.at - START).total_seconds() // 60)
            for key, state in found.items()
        }


def attempt(epoch: int, frontier: Frontier, reason: str = "") -> Attempt:
    return Attempt(
        0, "", "", START, START, Outcome.OK, RefreshAction.DIFFERENTIAL, reason, 0, 0, 0, 0.0, {},
        {}, frontier.data_timestamp, frontier, epoch, None, None, "",
    )  # fmt: skip


@pytest.fixture
def world() -> World:
    made = World()
    made.refresh("b c d e")
    return made


def test_tables_of_one_pass_belong_together(world: World) -> None:
    assert world.common("b c d e") == dict.fromkeys("bcde", 1)


def test_in_the_middle_of_a_pass_all_are_read_before_it(world: World) -> None:
    world.versions["orders"] = 2
    world.refresh("b")
    assert world.common("b c d") == {"b": 1, "c": 1, "d": 1}
    assert world.common("b") == {"b": 2}


def test_beside_a_base_table_a_state_is_told_by_what_it_saw(world: World) -> None:
    """d has read another c than the one whose states are known."""
    epoch, frontier = world.states["d"][0]
    pins = {**frontier.pins, "default.c": Pin("trace", "i-c", 7)}
    world.states["d"].insert(0, (epoch + 1, Frontier(pins, at(2))))
    assert world.common("d") == {"d": 2}
    assert world.common("d", beside="orders") == {"d": 1}
    del world.states["d"][1]
    with pytest.raises(UserError, match="d, orders have no data timestamp in common"):
        world.common("d", beside="orders")


def test_tables_without_a_common_base_are_of_one_pass_too(world: World) -> None:
    world.versions["orders"] = 2
    world.refresh("b")
    assert world.common("b e") == {"b": 1, "e": 1}, "in the middle of a pass"
    world.refresh("b e")
    assert world.common("b e") == {"b": 3, "e": 3}


def test_tables_that_are_refreshed_one_by_one_are_not_read_as_of_long_ago(world: World) -> None:
    world.versions["items"] = 2
    world.refresh("e")
    world.versions["orders"] = 2
    world.refresh("b")
    assert world.common("b e") == {"b": 3, "e": 2}, "both are newer than their common minute 1"


def test_a_table_without_news_has_been_at_every_instant_in_between(world: World) -> None:
    world.versions["items"] = 2
    world.refresh("e")
    world.refresh("b", silent="b")
    assert world.common("b e") == {"b": 2, "e": 2}
    assert world.common("b e", upto=at(2)) == {"b": 2, "e": 2}
    assert world.common("b", upto=at(2)) == {"b": 2}


def test_separate_passes_over_the_same_versions_agree(world: World) -> None:
    world.refresh("b")
    world.refresh("c")
    assert world.common("b c") == {"b": 2, "c": 3}


def test_a_refresh_without_effect_still_moves_what_was_seen(world: World) -> None:
    world.versions["orders"] = 2
    world.refresh("b c d", silent="b d")
    assert world.common("b c d") == {"b": 2, "c": 2, "d": 2}
    assert world.common("b c d", upto=at(1)) == {"b": 1, "c": 1, "d": 1}


def test_an_older_instant(world: World) -> None:
    for version in (2, 3):
        world.versions["orders"] = version
        world.refresh("b c d")
    assert world.common("b d", upto=at(2) + timedelta(seconds=59)) == {"b": 2, "d": 2}
    with pytest.raises(UserError, match="had none yet"):
        world.common("b d", upto=START)


def test_a_table_that_saw_two_versions_agrees_with_nobody(world: World) -> None:
    world.versions["orders"] = 2
    world.refresh("b")
    world.refresh("d")
    assert world.common("d") == {"d": 3}
    assert world.common("c d") == {"c": 1, "d": 1}


def test_what_cannot_be_read_back_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.versions["orders"] = 2
    world.refresh("b")
    compacted = [replace(t, since=2) if str(t.name) == "b" else t for t in world.tables()]
    monkeypatch.setattr(world, "tables", lambda: tuple(compacted))
    assert world.common("b c") == {"b": 1, "c": 1}, "compacted, but its files are still there"
    with pytest.raises(UserError) as caught:
        world.common("b c", unreadable={("b", 1)})
    assert "b, c have no data timestamp in common" in str(caught.value)
    assert "lake.refresh()" in str(caught.value)


def test_states_of_an_earlier_query_are_not_taken(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = attempt(1, Frontier({"default.orders": Pin("delta", "orders", 1)}, at(0)))
    history = world.history
    monkeypatch.setattr(world, "history", lambda key, limit: (*history(key, limit), older))
    with pytest.raises(UserError, match="had none yet"):
        world.common("b", upto=at(0))


def test_a_table_that_was_never_filled_is_named() -> None:
    with pytest.raises(UserError, match="b was never filled"):
        World().common("b")


@pytest.mark.parametrize("text", ["2026-03-01", "2026-03-01T00:00:00+00:00", START])
def test_instants_are_read(text: str | datetime) -> None:
    assert instant(text) == START


def test_what_is_no_instant_is_refused() -> None:
    with pytest.raises(UserError, match="'yesterday' is not a point in time"):
        instant("yesterday")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_newest_combination_that_agrees_is_chosen(data: st.DataObject) -> None:
    world = World()
    world.refresh("b c d e")
    for _ in range(data.draw(st.integers(0, 4))):
        base = data.draw(st.sampled_from(["orders", "items", ""]))
        if base:
            world.versions[base] += 1
        names = [n for n in "bcde" if data.draw(st.booleans())]
        world.refresh(
            " ".join(names), silent=" ".join(n for n in names if data.draw(st.booleans()))
        )
    keys = data.draw(st.lists(st.sampled_from("bcde"), min_size=2, unique=True))
    choices = [
        [int((f.data_timestamp - START).total_seconds() // 60) for _, f in world.states[k]]
        for k in keys
    ]
    agreeing = [minutes for minutes in product(*choices) if _agree(world, keys, minutes)]
    found = world.common(" ".join(keys))
    oldest = min(found.values())
    assert oldest == max(map(min, agreeing)), "as new as it can be"
    assert _agree(world, keys, tuple(found.values()))
    if (oldest,) * len(keys) in agreeing:
        assert set(found.values()) == {oldest}, "of one data timestamp"


def _agree(world: World, keys: list[str], minutes: tuple[int, ...]) -> bool:
    """Whether these states saw one version of each base table."""
    for vectors in product(*(world.saw(k, m) for k, m in zip(keys, minutes, strict=True))):
        seen: dict[str, set[int]] = {}
        for vector in vectors:
            for name, versions in vector.items():
                seen.setdefault(name, set()).update(versions)
        if all(len(versions) == 1 for versions in seen.values()):
            return True
    return False
