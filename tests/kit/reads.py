"""What a program reads when it runs."""

from __future__ import annotations

from collections import Counter

from runnel.compile.program import Keep, Program, Step


def reads_of(program: Program) -> Counter[str]:
    """How often each source is read, near rows or all, at each place of a step that is not materialised."""

    def of(step: Step) -> Counter[str]:
        found: Counter[str] = Counter()
        for token in step.reads:
            if not token.startswith("step:"):
                found[token.replace("near:", "new:", 1)] += 1
            elif (inner := program.step(token.removeprefix("step:"))).keep is Keep.NEVER:
                found += of(inner)
        return found

    total: Counter[str] = Counter()
    for step in program.steps:
        if step.keep is not Keep.NEVER or step is program.output:
            total += of(step)
    return total
