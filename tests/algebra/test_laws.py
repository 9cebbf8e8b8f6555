"""The laws of ALGEBRA.md as identities on bags, by brute force: they hold for any condition and any bags."""

from __future__ import annotations

import operator
import random
from collections import Counter
from collections.abc import Callable
from functools import reduce

import pytest

Row = tuple[object, ...]
Zset = Counter[Row]
Condition = Callable[[Row, Row], bool]

_CASES = 5_000
_VALUES = (None, 0, 1, 2)


def _random_bag(rng: random.Random, width: int = 2) -> Zset:
    rows = (tuple(rng.choice(_VALUES) for _ in range(width)) for _ in range(rng.randint(0, 4)))
    return Zset(rows)


def _random_condition(rng: random.Random) -> Condition:
    """Equality, inequality, NULL-safe equality, or a table of answers that means nothing at all."""
    kind = rng.randrange(4)
    i, j = rng.randrange(2), rng.randrange(2)
    if kind == 0:
        return lambda a, b: a[i] is not None and a[i] == b[j]
    if kind == 1:
        return lambda a, b: a[i] is not None and b[j] is not None and a[i] < b[j]  # type: ignore[operator]
    if kind == 2:
        return lambda a, b: a[i] == b[j]
    seed = rng.random()
    return lambda a, b: hash((seed, a, b)) % 3 == 0


def _plus(*parts: Zset) -> Zset:
    total: Zset = Counter()
    for part in parts:
        for row, weight in part.items():
            total[row] += weight
    return _clean(total)


def _minus(left: Zset, right: Zset) -> Zset:
    return _plus(left, Zset({row: -weight for row, weight in right.items()}))


def _clean(bag: Zset) -> Zset:
    return Zset({row: weight for row, weight in bag.items() if weight})


def _join(left: Zset, right: Zset, on: Condition) -> Zset:
    out: Zset = Counter()
    for a, m in left.items():
        for b, n in right.items():
            if on(a, b):
                out[a + b] += m * n
    return _clean(out)


def _matches(row: Row, right: Zset, on: Condition) -> bool:
    return any(weight > 0 and on(row, b) for b, weight in right.items())


def _semi(left: Zset, right: Zset, on: Condition) -> Zset:
    return Zset({a: m for a, m in left.items() if _matches(a, right, on)})


def _anti(left: Zset, right: Zset, on: Condition) -> Zset:
    return Zset({a: m for a, m in left.items() if not _matches(a, right, on)})


def _touched(old_left: Zset, change_right: Zset, on: Condition) -> Zset:
    """A = old(L) semi change(R): a row counts as met whatever the sign of the change."""
    return Zset({a: m for a, m in old_left.items() if any(on(a, b) for b in change_right)})


def _pad(bag: Zset, width: int = 2, *, before: bool = False) -> Zset:
    nulls: Row = (None,) * width
    return Zset({(nulls + a if before else a + nulls): m for a, m in bag.items()})


def _left_join(left: Zset, right: Zset, on: Condition) -> Zset:
    return _plus(_join(left, right, on), _pad(_anti(left, right, on)))


def _full_join(left: Zset, right: Zset, on: Condition) -> Zset:
    lonely = _anti(right, left, lambda b, a: on(a, b))
    return _plus(_left_join(left, right, on), _pad(lonely, before=True))


def _change_join(l0: Zset, l1: Zset, r0: Zset, r1: Zset, on: Condition) -> Zset:
    return _plus(_join(_minus(l1, l0), r1, on), _join(l0, _minus(r1, r0), on))


def _change_semi_or_anti(
    kind: Callable[[Zset, Zset, Condition], Zset],
    l0: Zset,
    l1: Zset,
    r0: Zset,
    r1: Zset,
    on: Condition,
) -> Zset:
    met = _touched(l0, _minus(r1, r0), on)
    return _plus(kind(_minus(l1, l0), r1, on), _minus(kind(met, r1, on), kind(met, r0, on)))


Window = tuple[Zset, Zset, Zset, Zset, Condition]


def _windows(seed: int) -> list[Window]:
    rng = random.Random(seed)
    return [
        (*(_random_bag(rng) for _ in range(4)), _random_condition(rng))  # type: ignore[misc]
        for _ in range(_CASES)
    ]


def test_join_law() -> None:
    for l0, l1, r0, r1, on in _windows(1):
        expected = _minus(_join(l1, r1, on), _join(l0, r0, on))
        assert _change_join(l0, l1, r0, r1, on) == expected


def test_using_new_for_both_sides_is_wrong() -> None:
    """The law is no accident: the obvious shortcut counts change x change twice."""
    wrong = 0
    for l0, l1, r0, r1, on in _windows(2):
        shortcut = _plus(_join(_minus(l1, l0), r1, on), _join(l1, _minus(r1, r0), on))
        wrong += shortcut != _minus(_join(l1, r1, on), _join(l0, r0, on))
    assert wrong > _CASES // 20


@pytest.mark.parametrize("kind", [_semi, _anti])
def test_semi_and_anti_law(kind: Callable[[Zset, Zset, Condition], Zset]) -> None:
    for l0, l1, r0, r1, on in _windows(3):
        expected = _minus(kind(l1, r1, on), kind(l0, r0, on))
        assert _change_semi_or_anti(kind, l0, l1, r0, r1, on) == expected


def test_left_join_law() -> None:
    for l0, l1, r0, r1, on in _windows(4):
        change = _plus(
            _change_join(l0, l1, r0, r1, on),
            _pad(_change_semi_or_anti(_anti, l0, l1, r0, r1, on)),
        )
        assert change == _minus(_left_join(l1, r1, on), _left_join(l0, r0, on))


def test_full_join_law() -> None:
    for l0, l1, r0, r1, on in _windows(5):
        change = _plus(
            _change_join(l0, l1, r0, r1, on),
            _pad(_change_semi_or_anti(_anti, l0, l1, r0, r1, on)),
            _pad(
                _change_semi_or_anti(_anti, r0, r1, l0, l1, lambda b, a, on=on: on(a, b)),
                before=True,
            ),
        )
        assert change == _minus(_full_join(l1, r1, on), _full_join(l0, r0, on))


def _product(bags: list[Zset], keep: Callable[[Row], bool]) -> Zset:
    whole = reduce(lambda a, b: _join(a, b, lambda *_: True), bags)
    return Zset({row: weight for row, weight in whole.items() if keep(row)})


def test_chain_law() -> None:
    """new(R1) x .. x new(Ri-1) x change(Ri) x old(Ri+1) x .. x old(Rn), summed over the changed Ri."""
    rng = random.Random(6)
    for _ in range(_CASES // 2):
        count = rng.randint(2, 4)
        olds = [_random_bag(rng, 1) for _ in range(count)]
        news = [bag if rng.random() < 0.3 else _random_bag(rng, 1) for bag in olds]
        compare = rng.choice((operator.eq, operator.ne))
        ends = rng.randrange(count), rng.randrange(count)

        def keep(
            row: Row, compare: Callable[..., bool] = compare, ends: tuple[int, int] = ends
        ) -> bool:
            return bool(compare(row[ends[0]], row[ends[1]]))

        terms = [
            _product([*news[:i], _minus(news[i], olds[i]), *olds[i + 1 :]], keep)
            for i in range(count)
            if news[i] != olds[i]
        ]
        assert _plus(*terms) == _minus(_product(news, keep), _product(olds, keep))


def test_old_is_new_minus_change() -> None:
    """The same chain with dual weights: a change row contributes (-w, 0), so that one scan gives both ends."""
    for l0, l1, r0, r1, on in _windows(7):
        sides = []
        for old, new in ((l0, l1), (r0, r1)):
            rows = set(old) | set(new)
            change = _minus(new, old)
            sides.append({row: (new[row] - change[row], new[row]) for row in rows})
        total: Zset = Counter()
        for a, (a_old, a_new) in sides[0].items():
            for b, (b_old, b_new) in sides[1].items():
                if on(a, b):
                    total[a + b] += a_new * b_new - a_old * b_old
        assert _clean(total) == _minus(_join(l1, r1, on), _join(l0, r0, on))


def _grouped(bag: Zset) -> dict[object, tuple[int, int, int]]:
    """Key to (rows, values that are not NULL, their sum)."""
    groups: dict[object, tuple[int, int, int]] = {}
    for (key, value), weight in bag.items():
        n, filled, total = groups.get(key, (0, 0, 0))
        here = 0 if value is None else weight
        groups[key] = (n + weight, filled + here, total + here * (value or 0))  # type: ignore[operator]
    return groups


def test_group_state_law() -> None:
    """new state = old state + grouped change, and a group lives while its row count is positive."""
    for old, new, *_ in _windows(8):
        state, change = _grouped(old), _grouped(_minus(new, old))
        for key, added in change.items():
            before = state.get(key, (0, 0, 0))
            state[key] = tuple(map(operator.add, before, added))  # type: ignore[assignment]
        assert {k: v for k, v in state.items() if v[0]} == _grouped(new)


def test_distinct_is_a_count_read_as_one() -> None:
    """DISTINCT of the touched rows only: change = distinct(new on K) - distinct(old on K)."""
    for old, new, *_ in _windows(9):
        touched = set(_minus(new, old))
        after = Zset({row: 1 for row in touched if new[row] > 0})
        before = Zset({row: 1 for row in touched if old[row] > 0})
        whole = _minus(Zset(dict.fromkeys(new, 1)), Zset(dict.fromkeys(old, 1)))
        assert _minus(after, before) == whole


def _generated(bag: Zset, is_outer: bool) -> Zset:
    """Each row before every number below its second value; without one it is padded, or goes."""
    total: Zset = Counter()
    for row, weight in bag.items():
        elements: list[object] = list(range(row[1] or 0))  # type: ignore[call-overload]
        for element in elements or ([None] if is_outer else []):
            total[(*row, element)] += weight
    return _clean(total)


@pytest.mark.parametrize("is_outer", [False, True])
def test_generate_law(is_outer: bool) -> None:
    """change(generate N) = generate change(N), padding included: it asks one row at a time."""
    for old, new, *_ in _windows(10):
        whole = _minus(_generated(new, is_outer), _generated(old, is_outer))
        assert _generated(_minus(new, old), is_outer) == whole
