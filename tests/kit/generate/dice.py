"""Where a generator takes its choices from: a seed, or choices made before, to make them simpler."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Dice(Protocol):
    """Choices; the first or smallest one is the simplest."""

    def number(self, low: int, high: int) -> int: ...


class Seeded:
    """Choices by a seed: many times faster, for long runs. `choices` are those that were made."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.choices: list[int] = []

    def number(self, low: int, high: int) -> int:
        chosen = self._random.randint(low, high)
        self.choices.append(chosen - low)
        return chosen


class Drawn:
    """Choices that Hypothesis draws, so that it makes a failing case smaller and remembers it."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def number(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))


class Replayed:
    """Choices that were made before, as far as they fit; then the simplest ones."""

    def __init__(self, choices: Sequence[int]) -> None:
        self._left = iter(choices)

    def number(self, low: int, high: int) -> int:
        return min(low + next(self._left, 0), high)


def pick(dice: Dice, choices: Sequence[T]) -> T:
    """One of the choices."""
    return choices[dice.number(0, len(choices) - 1)]


def chance(dice: Dice, percent: int) -> bool:
    """True so often; shrinks to False."""
    return dice.number(0, 99) >= 100 - percent
