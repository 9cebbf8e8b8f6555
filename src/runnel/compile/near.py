"""Which rows of a source a step can need, as data: those near a change, in the sources' own names.

    near(S) = rows of new(S) that agree, in the columns of a tie, with a row of the tie's source T

At level 1 these are the changed rows of T, at level n also the rows near(T) of level n - 1. It says
no more than that other rows are not needed: what else the step asks of a row stays in its text. So
any superset serves, and the steps of several programs can read the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_LEVEL = 3
"""A longer way from a change to a row is not followed: each level may take one more reading."""


@dataclass(frozen=True, slots=True)
class Tie:
    """Columns of a source, those of `other` that they are equal to, and the sign between them."""

    columns: tuple[str, ...]
    signs: tuple[str, ...]
    other: str
    others: tuple[str, ...]
    level: int = 1

    def __str__(self) -> str:
        pairs = zip(self.columns, self.signs, self.others, strict=True)
        equal = " and ".join(f"{a} {sign} {b}" for a, sign, b in pairs)
        rows = "changed" if self.level == 1 else f"changed or near (level {self.level - 1})"
        return f"{equal} of {rows} {self.other}"


@dataclass(frozen=True, slots=True)
class Near:
    """What a step reads of a source: some of its columns, of the rows that one of the ties finds.

    A tie of level n speaks of the rows that other steps of the same program say are near.
    """

    source: str
    names: tuple[str, ...]
    ties: tuple[Tie, ...]

    @property
    def level(self) -> int:
        return max(tie.level for tie in self.ties)

    def __str__(self) -> str:
        return f"{self.source} by {', or '.join(map(str, self.ties))}"
