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

_ASKED = os.environ.get("RUNNEL_FUZZ_SEED", "0")
_BASE = random.randrange(10**12) if _ASKED == "random" else int(_ASKED)
# A round of a query that is compiled and parsed already costs little on DuckDB.
_ROUNDS = 20
# So many failures are looked for: the first may hide others, but not be one of hundreds.
_FAILURES = 3


def run_rounds(
    asked: int,
    depth: int,
    check: Check,
    tally: Tally,
    part: int = 0,
    *,
    rounds: int = _ROUNDS,
    for_spark: bool = False,
) -> None:
    """Run `check` on seeded cases nested so deep until that many more rounds of changes are checked.

    Failures are counted, and told by `judge`. Parts have different cases; a query has at most so many
    `rounds`.
    """
    seed = _BASE + depth * 10**9 + part * 10**6
    tally.seeds.append(seed)
    print(f"cases {depth} deep, from seed {seed} (RUNNEL_FUZZ_SEED={_BASE} makes them again)")
    goal = tally.rounds + asked
    while tally.rounds < goal and len(tally.failures) < _FAILURES:
        seed += 1
        dice = Seeded(seed)
        try:
            check(case(dice, depth, rounds, for_spark=for_spark), tally)
        except Mismatch as error:
            # Making it smaller takes too long on Spark.
            is_told = for_spark or tally.failures
            told = error if is_told else _smaller(dice.choices, depth, check, error)
            tally.failures.append(f"seed {seed}, {depth} deep: {told}")
        assert sum(tally.refused.values()) < tally.checked + 50, f"most are refused: {tally}"


def judge(tally: Tally, queries: int, moved: float = 0.3) -> None:
    """Fail when a case did, when fewer queries were checked than asked, or when most were not."""
    print(tally)
    assert not tally.failures, "\n\n".join([str(tally), *tally.failures])
    assert len(tally.texts) >= queries, f"fewer than {queries} distinct queries: {tally}"
    assert sum(tally.refused.values()) < tally.checked, f"most are refused: {tally}"
    assert tally.moved >= tally.rounds * moved, f"most rounds change nothing: {tally}"


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
