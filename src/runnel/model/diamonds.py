"""What the user asks of diamonds: tables that reach one table over several paths."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from runnel.errors import UserError
from runnel.model.tabular import Record


class DiamondConsistency(StrEnum):
    """Whether the members of a diamond advance each for itself, or all together or none."""

    NONE = "none"
    ATOMIC = "atomic"

    @staticmethod
    def parse(text: str) -> DiamondConsistency:
        try:
            return DiamondConsistency(text.strip().lower())
        except ValueError:
            raise UserError(
                f"{text!r} is not a diamond consistency",
                detail=f"expected {' or '.join(DiamondConsistency)}",
            ) from None


class SchedulePolicy(StrEnum):
    """Whose target lag an atomic group follows: its most, or its least impatient member's."""

    FASTEST = "fastest"
    SLOWEST = "slowest"


@dataclass(frozen=True, slots=True, repr=False)
class DiamondMember(Record):
    """One table of a diamond group; `is_convergence`: several paths meet in it.

    `consistency` is the group's: atomic groups advance together, the others only share ancestors.
    `epoch` and `target_seconds` are the table's epoch and the target lag of the whole group.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "group_id", "name", "is_convergence", "consistency", "epoch", "target_seconds",
    )  # fmt: skip

    group_id: int
    name: str
    is_convergence: bool
    consistency: DiamondConsistency
    epoch: int
    target_seconds: float | None = None
    shared: tuple[str, ...] = ()
