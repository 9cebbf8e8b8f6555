"""The laws of recursion as identities on bags and sets, by brute force, on graphs with cycles.

R = base + step(R), where a step is a bag of edges. `both` is what old and new have in common: the walk of
what goes follows the edges of `both` and ends because the old result is finite, the walk of what comes
follows the new edges and ends because the new result is.
"""

from __future__ import annotations

import random
from collections import Counter

Bag = Counter[int]
Edges = Counter[tuple[int, int]]
_CASES = 4_000
_LEVELS = 40


class Endless(Exception):
    """The walk goes round in a cycle."""


def _step(rows: Bag, edges: Edges) -> Bag:
    out: Bag = Counter()
    for (a, b), times in edges.items():
        if rows[a]:
            out[b] += rows[a] * times
    return +out


def _walk(seed: Bag, edges: Edges) -> Bag:
    total: Bag = Counter()
    last = +seed
    for _ in range(_LEVELS):
        if not last:
            return total
        total.update(last)
        last = _step(last, edges)
    raise Endless


def _reach(seed: set[int], edges: Edges, stop: set[int]) -> set[int]:
    found: set[int] = set()
    last = seed - stop
    while last:
        found |= last
        last = set(_step(Counter(last), edges)) - found - stop
    return found


def _random_case(rng: random.Random) -> tuple[Bag, Edges]:
    size = rng.randint(2, 6)
    base: Bag = Counter(rng.randrange(size) for _ in range(rng.randint(0, 2)))
    pairs = ((rng.randrange(size), rng.randrange(size)) for _ in range(rng.randint(0, 7)))
    return base, Counter(pairs)


def _random_change(rng: random.Random, base: Bag, edges: Edges) -> tuple[Bag, Edges]:
    other_base, other_edges = _random_case(rng)
    new_base = Counter({k: n for k, n in base.items() if rng.random() < 0.7})
    new_edges = Counter({k: n for k, n in edges.items() if rng.random() < 0.7})
    if rng.random() < 0.5:
        new_edges.update({k: n for k, n in other_edges.items() if rng.random() < 0.4})
    if rng.random() < 0.3:
        new_base.update(other_base)
    return new_base, new_edges


def test_union_all_in_two_walks() -> None:
    rng = random.Random(1)
    checked = 0
    while checked < _CASES:
        base0, edges0 = _random_case(rng)
        base1, edges1 = _random_change(rng, base0, edges0)
        try:
            old, new = _walk(base0, edges0), _walk(base1, edges1)
        except Endless:
            continue
        both = edges0 & edges1
        gone = _walk((base0 - base1) + _step(old, edges0 - both), both)
        kept = old - gone
        come = _walk((base1 - base0) + _step(kept, edges1 - both), edges1)
        assert gone <= old
        assert kept + come == new
        checked += 1


def test_one_walk_of_the_net_change_would_leave_rows_that_only_support_each_other() -> None:
    old = _walk(Counter([1]), Counter([(1, 2)]))
    edges1: Edges = Counter([(1, 2), (2, 1)])
    seed = Counter({1: -1})
    seed.update(_step(old, Counter([(2, 1)])))
    assert not +seed, "the deleted base row and the new cycle cancel"
    assert not _walk(Counter(), edges1), "but nothing is left to start from"
    assert old == Counter([1, 2])


def test_union_with_counts_of_derivations() -> None:
    rng = random.Random(2)
    for _ in range(_CASES):
        base0, edges0 = _random_case(rng)
        base1, edges1 = _random_change(rng, base0, edges0)
        old, new = _reach(set(base0), edges0, set()), _reach(set(base1), edges1, set())
        counts = base0 + _step(Counter(old), edges0)
        both = edges0 & edges1
        lost = (base0 - base1) + _step(Counter(old), edges0 - both)
        over = _reach(set(lost), both, set())
        lost = lost + _step(Counter(over), both)
        kept = old - over
        gained = (base1 - base0) + _step(Counter(kept), edges1 - both)
        again = {row for row in over if counts[row] > lost[row]}
        come = _reach(set(gained) | again, edges1, kept)
        gained = gained + _step(Counter(come), edges1)
        assert kept | come == new
        assert (counts - lost) + gained == base1 + _step(Counter(new), edges1)


Pairs = Counter[tuple[int, int]]


def _joined(rows: Pairs, via: Bag) -> Pairs:
    """A step that reads its rows twice: a way from a to b and one from b to c, by the stops b."""
    out: Pairs = Counter()
    for (a, b), left in rows.items():
        for (c, d), right in rows.items():
            if b == c:
                out[a, d] += left * right * via[b]
    return out


def _minus(left: Pairs, right: Pairs) -> Pairs:
    """The difference of tallies; nothing may become negative."""
    out = Counter(left)
    out.subtract(right)
    assert all(n >= 0 for n in out.values())
    return +out


def _closure(base: Pairs, via: Bag) -> set[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    while (more := found | set(base) | set(+_joined(Counter(found), via))) != found:
        found = more
    return found


def test_a_step_that_reads_its_rows_twice_with_counts_of_derivations() -> None:
    rng = random.Random(3)
    for _ in range(_CASES // 4):
        stops0, base0 = _random_case(rng)
        stops1, base1 = _random_change(rng, stops0, base0)
        via0, via1 = Counter(range(4)) + stops0, Counter(range(4)) + stops1
        both = via0 & via1
        old = _closure(base0, via0)
        counts = base0 + _joined(Counter(old), via0)

        lost = (base0 - base1) + _minus(_joined(Counter(old), via0), _joined(Counter(old), both))
        over: set[tuple[int, int]] = set()
        while last := (set(lost) - over):
            before, over = old - over, over | last
            gone = _minus(_joined(Counter(before), both), _joined(Counter(old - over), both))
            lost = lost + gone
        kept = old - over

        gained = (base1 - base0) + _minus(
            _joined(Counter(kept), via1), _joined(Counter(kept), both)
        )
        again = {row for row in over if counts[row] > lost[row]}
        come: set[tuple[int, int]] = set()
        while last := (again | set(gained)) - come - kept:
            before, come = kept | come, come | last
            more = _minus(_joined(Counter(kept | come), via1), _joined(Counter(before), via1))
            gained = gained + more
        new = _closure(base1, via1)
        assert kept | come == new
        assert _minus(counts, lost) + gained == base1 + _joined(Counter(new), via1)


def test_a_step_that_removes_duplicates_would_keep_rows_that_only_support_each_other() -> None:
    """1 has two reasons, the base and 2, which rests on 1; with DISTINCT it counts one either way."""
    edges: Edges = Counter([(1, 2), (2, 1), (3, 1)])
    old = _reach({1, 3}, edges, set())
    distinct = dict.fromkeys(_step(Counter(old), edges), 1)
    without = dict.fromkeys(_step(Counter(old - {3}), edges), 1)
    assert distinct == without, "the loss of (3, 1) is not noticed behind DISTINCT"
    assert _step(Counter(old), edges) - _step(Counter(old - {3}), edges) == Counter([1])
