"""What makes many cases and counts them; the tally says how many were really checked."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence

from kit.check import Mismatch
from kit.generate.cases import Case, Tally, case
from kit.generate.dice import Replayed, Seeded
from kit.generate.shrink import shrink

Check = Callable[[Case, Tally], bool]

_IS_RANDOM = os.environ.get("RUNNEL_FUZZ_SEED") == "random"
# A round of a query that is compiled and parsed already costs little on DuckDB.
_ROUNDS = {False: 20, True: 10}


def run_rounds(
    asked: int, depth: int, check: Check, tally: Tally, part: int = 0, *, for_spark: bool = False
) -> None:
    """Run `check` on seeded cases nested so deep until that many more rounds of changes are checked.

    A failure is made smaller before it is told, but on Spark, where that takes too long. Parts have
    different cases.
    """
    seed = random.randrange(10**12) if _IS_RANDOM else depth * 10**9 + part * 10**6
    goal = tally.rounds + asked
    while tally.rounds < goal:
        seed += 1
        dice = Seeded(seed)
        try:
            check(case(dice, depth, _ROUNDS[for_spark], for_spark=for_spark), tally)
        except Mismatch as error:
            if for_spark:
                raise
            raise _smaller(dice.choices, depth, check, error) from error
        assert sum(tally.refused.values()) < tally.checked + 50, f"most are refused: {tally}"


def judge(tally: Tally, queries: int, moved: float = 0.3) -> None:
    """Fail when fewer queries were checked, or less of what was made, or when it moved too little."""
    assert tally.checked >= queries, f"fewer than {queries} queries were checked: {tally}"
    assert sum(tally.refused.values()) < tally.checked, f"most are refused: {tally}"
    assert tally.moved >= tally.rounds * moved, f"most rounds change nothing: {tally}"


def _smaller(choices: Sequence[int], depth: int, check: Check, found: Mismatch) -> Mismatch:
    """The failure of a simpler case."""
    failures = [found]

    def fails(simpler: Sequence[int]) -> bool:
        try:
            check(case(Replayed(simpler), depth, _ROUNDS[False]), Tally())
        except Mismatch as error:
            failures.append(error)
            return True
        return False

    shrink(choices, fails)
    return failures[-1]
