"""Hypothesis makes the cases; the tally says how many were really checked."""

from __future__ import annotations

import os
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

from kit.generate.cases import Case, Tally, case
from kit.generate.dice import Draws

_IS_RANDOM = os.environ.get("RUNNEL_FUZZ_SEED") == "random"


def run_cases(
    asked: int,
    depths: tuple[int, int],
    check: Callable[[Case, Tally], bool],
    *,
    shrinks: bool = True,
    for_spark: bool = False,
) -> Tally:
    """Run `check` on generated cases nested so deep; fails when fewer were checked than asked for."""
    tally = Tally()

    @settings(
        max_examples=asked,
        deadline=None,
        derandomize=not _IS_RANDOM,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink) if shrinks else (Phase.generate,),
    )
    @given(_cases(*depths, for_spark))
    def run(made: Case) -> None:
        if not check(made, tally):
            reject()

    run()
    print(tally)
    assert tally.checked >= asked, f"asked for {asked}: {tally}"
    assert sum(tally.refused.values()) < tally.checked, f"most are refused: {tally}"
    assert tally.moved >= tally.rounds * 0.3, f"most rounds change nothing: {tally}"
    return tally


@st.composite
def _cases(draw: Callable[..., int], low: int, high: int, for_spark: bool) -> Case:
    depth = low if low == high else draw(st.integers(low, high))
    return case(Draws(draw), depth, for_spark=for_spark)
