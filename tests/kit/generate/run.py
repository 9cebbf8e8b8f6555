"""What makes many cases and counts them; the tally says how many were really checked."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

from kit.check import Mismatch
from kit.generate.cases import Case, Tally, case
from kit.generate.dice import Draws, Replayed, Seeded
from kit.generate.shrink import shrink

Check = Callable[[Case, Tally], bool]

_IS_RANDOM = os.environ.get("RUNNEL_FUZZ_SEED") == "random"
_ROUNDS = 10


def run_rounds(asked: int, depth: int, check: Check, tally: Tally, part: int = 0) -> None:
    """Run `check` on seeded cases nested so deep until that many more rounds of changes are checked.

    A failure is made smaller before it is told. Parts have different cases.
    """
    seed = random.randrange(10**12) if _IS_RANDOM else depth * 10**9 + part * 10**6
    goal = tally.rounds + asked
    while tally.rounds < goal:
        seed += 1
        dice = Seeded(seed)
        try:
            check(case(dice, depth, _ROUNDS), tally)
        except Mismatch as error:
            raise _smaller(dice.choices, depth, check, error) from error
        assert sum(tally.refused.values()) < tally.checked + 50, f"most are refused: {tally}"


def run_cases(
    asked: int, depths: tuple[int, int], check: Check, *, for_spark: bool = False
) -> Tally:
    """Run `check` on queries that Hypothesis makes; fails when fewer were checked than asked for."""
    tally = Tally()

    @settings(
        max_examples=asked,
        deadline=None,
        derandomize=not _IS_RANDOM,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    @given(_cases(*depths, for_spark))
    def run(made: Case) -> None:
        if not check(made, tally):
            reject()

    run()
    assert tally.checked >= asked, f"asked for {asked}: {tally}"
    judge(tally)
    return tally


def judge(tally: Tally) -> None:
    """Print what was checked; fails when that was little of what was made."""
    print(tally)
    assert sum(tally.refused.values()) < tally.checked, f"most are refused: {tally}"
    assert tally.moved >= tally.rounds * 0.3, f"most rounds change nothing: {tally}"


def _smaller(choices: Sequence[int], depth: int, check: Check, found: Mismatch) -> Mismatch:
    """The failure of a simpler case."""
    failures = [found]

    def fails(simpler: Sequence[int]) -> bool:
        try:
            check(case(Replayed(simpler), depth, _ROUNDS), Tally())
        except Mismatch as error:
            failures.append(error)
            return True
        return False

    shrink(choices, fails)
    return failures[-1]


@st.composite
def _cases(draw: Callable[..., int], low: int, high: int, for_spark: bool) -> Case:
    depth = low if low == high else draw(st.integers(low, high))
    return case(Draws(draw), depth, for_spark=for_spark)
