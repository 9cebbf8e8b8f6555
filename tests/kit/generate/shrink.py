"""A failing case made smaller: choices are taken out or made simpler as long as it still fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_SIZES = (64, 16, 4, 1)


def shrink(
    choices: Sequence[int], fails: Callable[[Sequence[int]], bool], tries: int = 400
) -> list[int]:
    """The simplest choices found in so many tries."""
    found = list(choices)
    left = tries
    for size in _SIZES:
        place = 0
        while place < len(found):
            for simpler in _simpler(found, place, size):
                if left == 0:
                    return found
                left -= 1
                if simpler != found and fails(simpler):
                    found = simpler
                    break
            else:
                place += size
    return found


def _simpler(choices: list[int], place: int, size: int) -> list[list[int]]:
    head, part, tail = choices[:place], choices[place : place + size], choices[place + size :]
    without = [*head, *tail]
    return [without, [*head, *(0 for _ in part), *tail]] if any(part) else [without]
