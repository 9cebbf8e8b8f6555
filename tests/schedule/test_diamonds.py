"""Diamonds found in the graph, and the units that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.catalog import StreamTable
from runnel.model.diamonds import DiamondConsistency, SchedulePolicy
from runnel.model.schedule import Schedule
from runnel.model.settings import Settings
from runnel.schedule.diamonds import (
    diamond_groups,
    find_diamonds,
    find_groups,
    target_seconds,
    units_of,
)
from runnel.schedule.order import refresh_order, refresh_units
from schedule.graphs import asking, graph

NONE, ATOMIC = DiamondConsistency.NONE, DiamondConsistency.ATOMIC
PLAIN = {"b": "orders", "c": "orders", "d": "b c"}


def shown(keys: Sequence[str] | frozenset[str]) -> str:
    return " ".join(sorted(key.removeprefix("default.") for key in keys))


def members(reads: dict[str, str]) -> dict[str, str]:
    return {shown([d.convergence]): shown(d.members) for d in find_diamonds(graph(reads))}


def units(tables: list[StreamTable], default: DiamondConsistency = ATOMIC) -> list[str]:
    """With the members in their order."""
    return [
        " ".join(k.removeprefix("default.") for k in unit) for unit in units_of(tables, default)
    ]


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        (PLAIN, {"d": "b c d"}),
        ({"a": "orders", **{k: v.replace("orders", "a") for k, v in PLAIN.items()}}, {"d": "b c d"}),
        ({"b": "orders", "b2": "b", "c": "orders", "d": "b2 c"}, {"d": "b b2 c d"}),
        ({"b": "orders", "c": "b", "d": "c"}, {}),
        ({"b": "orders", "c": "items", "d": "b c"}, {}),
        ({"b": "orders", "d": "b orders"}, {"d": "b d"}),
        ({"b": "orders", "d": "b items"}, {}),
        ({"b": "orders", "c": "b", "d": "b c"}, {"d": "c d"}),
        ({"a": "orders", "a2": "a", "b": "a2", "c": "a2", "d": "b c"}, {"d": "b c d"}),
        ({**PLAIN, "e": "d", "f": "d", "g": "e f"}, {"d": "b c d", "g": "e f g"}),
        ({**PLAIN, "e": "b c"}, {"d": "b c d", "e": "b c e"}),
        ({**PLAIN, "other": "items", "side": "b"}, {"d": "b c d"}),
    ],
    ids=[
        "plain", "over a stream table", "deep", "chain", "two sources", "with its base table",
        "base table that is not shared", "with what it already reads", "only the last fork",
        "one after the other", "two fan-ins", "others are left out",
    ],
)  # fmt: skip
def test_who_is_in_a_diamond(reads: dict[str, str], expected: dict[str, str]) -> None:
    assert members(reads) == expected


def test_the_shared_ancestor_is_the_nearest() -> None:
    reads = {"a": "orders", "b": "a", "c": "a", "d": "b c"}
    assert [shown(d.shared) for d in find_diamonds(graph(reads))] == ["a"]
    assert [shown(d.shared) for d in find_diamonds(graph(PLAIN))] == ["orders"]


@pytest.mark.parametrize(
    ("asked", "default", "expected"),
    [
        ({}, NONE, ["b", "c", "d"]),
        ({}, ATOMIC, ["b c d"]),
        ({"d": "atomic"}, NONE, ["b c d"]),
        ({"b": "atomic", "c": "atomic"}, NONE, ["b", "c", "d"]),
        ({"c": "none"}, ATOMIC, ["b", "c", "d"]),
        ({"d": "none"}, ATOMIC, ["b", "c", "d"]),
        ({"d": "atomic", "b": "none"}, NONE, ["b", "c", "d"]),
    ],
)
def test_the_fan_in_decides_and_each_member_may_refuse(
    asked: dict[str, str], default: DiamondConsistency, expected: list[str]
) -> None:
    tables = graph(PLAIN, **{name: asking(value) for name, value in asked.items()})
    assert units(tables, default) == expected


def test_overlapping_diamonds_are_one_unit() -> None:
    assert units(graph({**PLAIN, "e": "c f", "f": "orders"})) == ["b c d f e"]


def test_a_refusal_leaves_other_diamonds_alone() -> None:
    reads = {**PLAIN, "e": "d items", "f": "items", "g": "e f"}
    tables = graph(reads, b=asking("none"))
    assert units(tables) == ["b", "c", "d", "e f g"]


def test_what_lies_between_two_groups_that_wait_for_each_other_joins_them() -> None:
    # x is in no diamond, but reads one group and is read by the other, which overlaps the first.
    reads = {**PLAIN, "x": "b", "e": "c", "f": "c", "g": "e f", "h": "d x"}
    assert "x" in next(unit for unit in units(graph(reads)) if "b" in unit.split()).split()


def test_a_target_brings_its_group_and_what_lies_above_it() -> None:
    tables = graph(
        {"a": "orders", "b": "orders", "c": "a orders", "d": "b c", "e": "d", "z": "items"}
    )
    only = {"default.b"}
    assert [shown(u) for u in refresh_units(tables, only, ATOMIC)] == ["a b c d"]
    assert refresh_order(tables, only, NONE) == ["default.b"]
    assert refresh_order(tables, {"default.e"}, ATOMIC)[-1] == "default.e"


def test_groups_are_listed_with_their_target() -> None:
    def lag(text: str) -> dict[str, object]:
        return {"schedule": Schedule.parse(text)}

    tables = graph({**PLAIN, "e": "items", "f": "items", "g": "e f"}, b=lag("1m"), c=lag("5m"),
                   e=lag("2m"), f=asking("none"))  # fmt: skip

    class Catalog:
        def tables(self) -> tuple[StreamTable, ...]:
            return tuple(tables)

    rows = diamond_groups(Catalog(), Settings(diamond_consistency=ATOMIC))  # type: ignore[arg-type]
    assert [(r.group_id, r.name, r.is_convergence, str(r.consistency)) for r in rows] == [
        (1, "b", False, "atomic"), (1, "c", False, "atomic"), (1, "d", True, "atomic"),
        (2, "e", False, "none"), (2, "f", False, "none"), (2, "g", True, "none"),
    ]  # fmt: skip
    assert [r.target_seconds for r in rows] == [60, 60, 60, 120, None, None]
    assert {r.shared for r in rows} == {("orders",), ("items",)}
    slowest = Settings(diamond_consistency=ATOMIC, diamond_schedule_policy=SchedulePolicy.SLOWEST)
    assert diamond_groups(Catalog(), slowest)[0].target_seconds == 300  # type: ignore[arg-type]


def test_tables_without_a_schedule_have_no_target() -> None:
    assert target_seconds(graph(PLAIN), SchedulePolicy.FASTEST) is None


@st.composite
def random_graphs(draw: st.DrawFn) -> dict[str, str]:
    """Up to 9 tables over 3 base tables; each reads some of those before it."""
    names: list[str] = ["x", "y", "z"]
    reads = {}
    for number in range(draw(st.integers(1, 9))):
        chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        reads[f"t{number}"] = " ".join(chosen)
        names.append(f"t{number}")
    return reads


@settings(max_examples=80, deadline=None)
@given(random_graphs())
def test_members_lie_on_paths_that_meet_again(reads: dict[str, str]) -> None:
    full = nx.DiGraph([(r, name) for name, text in reads.items() for r in text.split()])
    expected = {}
    for name, text in reads.items():
        found = set()
        for left, right in combinations(text.split(), 2):
            reach = {side: nx.ancestors(full, side) | {side} for side in (left, right)}
            for start in reach[left] & reach[right]:
                for side in (left, right):
                    for path in (
                        nx.all_simple_paths(full, start, side) if start != side else [[side]]
                    ):
                        found |= set(path) - (reach[left] & reach[right])
        if found:
            expected[name] = shown([*found, name])
    assert members(reads) == expected


@settings(max_examples=80, deadline=None)
@given(random_graphs(), st.data())
def test_units_can_be_refreshed_in_any_choice_and_nothing_sees_two_versions(
    reads: dict[str, str], data: st.DataObject
) -> None:
    """Passes that refresh some units, in order: what reaches a table over two paths is one version."""
    tables = {t.name.key: t for t in graph(reads)}
    ordered = units_of(tables.values(), ATOMIC)
    assert sorted(k for unit in ordered for k in unit) == sorted(tables)
    seen: dict[str, dict[str, int]] = {}
    for now in range(1, 5):
        for number, unit in enumerate(ordered):
            if now > 1 and not data.draw(st.booleans(), label=f"pass {now} unit {number}"):
                continue
            for key in unit:
                known: dict[str, int] = {key: now}
                for source in tables[key].sources:
                    versions = seen[source.key] if source.kind == "stream" else {source.key: now}
                    for name, version in versions.items():
                        assert known.setdefault(name, version) == version, f"{key} mixes {name}"
                seen[key] = known


@settings(max_examples=50, deadline=None)
@given(random_graphs())
def test_units_keep_every_atomic_group_whole_and_have_no_cycle(reads: dict[str, str]) -> None:
    tables = graph(reads)
    together = units_of(tables, ATOMIC)
    home = {key: unit for unit in together for key in unit}
    edges = [(home[s.key], home[t.name.key]) for t in tables for s in t.sources if s.key in home]
    assert nx.is_directed_acyclic_graph(nx.DiGraph([(a, b) for a, b in edges if a != b]))
    for diamond in find_diamonds(tables):
        assert len({home[key] for key in diamond.members}) == 1
    grouped = {key for group in find_groups(tables, ATOMIC) for key in group.members}
    assert grouped == {key for unit in together if len(unit) > 1 for key in unit}
    assert [unit for unit in units(tables, NONE) if " " in unit] == []


def test_a_thousand_tables_are_ordered_quickly() -> None:
    reads = {
        f"t{n}": f"base{n % 50}" if n < 500 else f"t{n - 500} t{(n * 7) % 500}" for n in range(1000)
    }
    tables = graph(reads)
    assert len(units_of(tables, NONE)) == 1000
    assert sum(map(len, units_of(tables, ATOMIC))) == 1000
