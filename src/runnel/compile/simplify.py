"""Programs made smaller: steps nobody reads go, steps read more than once are computed once."""

from __future__ import annotations

from dataclasses import replace

from runnel.compile.program import Keep, Program, Step


def simplify(program: Program) -> Program:
    """Drop unread steps, then mark those with several readers."""
    if not program.steps:
        return program
    steps = _reachable(program)
    readers: dict[str, int] = {}
    for step in steps:
        for token in step.reads:
            readers[token] = readers.get(token, 0) + 1
    marked = tuple(
        replace(s, keep=Keep.SHARED) if _is_shared(s, readers.get(f"step:{s.name}", 0)) else s
        for s in steps
    )
    return Program(marked, program.empty_if_empty)


def _is_shared(step: Step, readers: int) -> bool:
    return readers > 1 and step.keep in (Keep.NEVER, Keep.SIZED)


def _reachable(program: Program) -> tuple[Step, ...]:
    wanted = {program.output.name}
    for step in reversed(program.steps):
        if step.name in wanted:
            wanted.update(t.removeprefix("step:") for t in step.reads if t.startswith("step:"))
            if step.only_if:
                wanted.add(step.only_if)
    return tuple(s for s in program.steps if s.name in wanted)
