"""What a soak found out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

GOAL = 0.95


@dataclass
class Report:
    """`broken` names every invariant that did not hold; `attainment` is by table, with its target."""

    seconds: float = 0.0
    commits: int = 0
    reads: Counter[str] = field(default_factory=Counter)
    without_instant: int = 0
    kills: int = 0
    refreshes: int = 0
    interrupted: int = 0
    failed: int = 0
    attainment: dict[str, tuple[float, float]] = field(default_factory=dict)
    verified: list[str] = field(default_factory=list)
    tables: int = 0
    stop_seconds: float | None = None
    broken: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        return not self.broken and len(self.verified) == self.tables > 0

    @property
    def within_target(self) -> float | None:
        """The share of the time within target, over all tables that have one of 30 s or more."""
        shares = [share for target, share in self.attainment.values() if target >= 30]
        return sum(shares) / len(shares) if shares else None

    def lines(self) -> list[str]:
        kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(self.reads.items()))
        share = self.within_target
        shown = "unknown" if share is None else f"{share:.1%} (goal {GOAL:.0%})"
        found = [
            f"{self.seconds:.0f} s, {self.commits} commits to base tables",
            f"refreshes: {self.refreshes}, interrupted {self.interrupted}, failed {self.failed}",
            f"kills survived: {self.kills}",
            f"reads that held: {self.reads.total()} ({kinds}), without a common instant {self.without_instant}",
            f"lag attainment: {shown}",
            *(
                f"  {name}: {share:.1%} within {target:.0f} s"
                for name, (target, share) in sorted(self.attainment.items())
            ),
            f"verified tables: {len(self.verified)} of {self.tables}",
        ]
        if self.stop_seconds is not None:
            found.append(f"ended {self.stop_seconds:.1f} s after SIGTERM")
        return [*found, *(f"BROKEN: {text}" for text in self.broken)]
