"""Programs made smaller: steps nobody reads go, steps read more than once are computed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from runnel.compile.program import Keep, Program, Step


def simplify(program: Program) -> Program:
    """Drop unread steps, then mark those with several readers."""
    if not program.steps:
        return program
    steps = _reachable(program)
    every = _readers(steps)
    # What restricts a reading has met much, and is kept for that already.
    sized = _readers([s for s in steps if s.keep is not Keep.RESTRICTING])
    marked = tuple(
        replace(s, keep=Keep.SHARED)
        if (s.keep is Keep.NEVER and every[f"step:{s.name}"] > 1)
        or (s.keep is Keep.SIZED and sized[f"step:{s.name}"] > 1)
        else s
        for s in steps
    )
    return Program(marked, program.empty_if_empty)


def _readers(steps: Iterable[Step]) -> Counter[str]:
    """How often each token is read."""
    return Counter(token for step in steps for token in step.reads)


def _reachable(program: Program) -> tuple[Step, ...]:
    wanted = {program.output.name}
    for step in reversed(program.steps):
        if step.name in wanted:
            wanted.update(t.removeprefix("step:") for t in step.reads if t.startswith("step:"))
            if step.only_if:
                wanted.add(step.only_if)
    return tuple(s for s in program.steps if s.name in wanted)
