"""Programs whose steps read no more than they say they need: a tie that is forgotten loses rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from runnel.compile.near import Near, Tie
from runnel.compile.program import Program, Step, change_of, near_of, new_of
from runnel.model.names import quote


def near_only(program: Program) -> Program:
    """Puts what a step's own ties find in the place of its near rows."""
    nears = [step.near for step in program.steps if step.near is not None]
    return replace(program, steps=tuple(_narrowed(step, nears) for step in program.steps))


def near_or_all(program: Program, first: int) -> Program:
    """The same, but every other source that is reached from a touched key is small, and read as a whole."""
    narrow = near_only(program)
    reached = [s.name for s in program.steps if s.near is not None and s.meets == {s.near.source}]
    whole = set(reached[first::2])
    steps = [replace(s, sql=s.of_small or s.sql) if s.name in whole else s for s in narrow.steps]
    return replace(program, steps=tuple(steps))


def _narrowed(step: Step, nears: Sequence[Near]) -> Step:
    if step.near is None:
        return step
    token = near_of(step.near.source)
    assert token in step.sql
    assert token not in (step.of_small or "")
    rows = _rows(step.near.source, step.near.ties, nears)
    return replace(step, sql=step.sql.replace(token, f"({rows})"))


def _rows(source: str, ties: Sequence[Tie], nears: Sequence[Near]) -> str:
    met = " OR ".join(f"EXISTS ({_partners(tie, nears)})" for tie in ties) or "FALSE"
    return f"SELECT near.* FROM {new_of(source)} near WHERE {met}"


def _partners(tie: Tie, nears: Sequence[Near]) -> str:
    """The rows of the tie's source that a row agrees with."""
    names = ", ".join(f"{quote(n)} AS t{i}" for i, n in enumerate(tie.others))
    found = f"SELECT {names} FROM {change_of(tie.other)}"
    if tie.level > 1:
        known = [t for n in nears if n.source == tie.other for t in n.ties if t.level < tie.level]
        found += f" UNION ALL SELECT {names} FROM ({_rows(tie.other, known, nears)}) r{tie.level}"
    pairs = enumerate(zip(tie.columns, tie.signs, strict=True))
    equal = " AND ".join(f"near.{quote(c)} {sign} partner.t{i}" for i, (c, sign) in pairs)
    return f"SELECT 1 FROM ({found}) partner WHERE {equal}"
