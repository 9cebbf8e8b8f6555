"""What a soak found out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from bench.soak.daemon import END_SECONDS

GOAL = 0.95


@dataclass
class Report:
    """`broken` names every invariant that did not hold; `attainment` is by table, with its target."""

    seconds: float = 0.0
    commits: int = 0
    reads: Counter[str] = field(default_factory=Counter)
    without_instant: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    survived: int = 0
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

    def judge(self) -> None:
        """Note what was not put to the test: silence about it would look like success."""
        if not self.refreshes:
            self.broken.append("the daemon refreshed nothing")
        if self.kills and not self.survived:
            self.broken.append("no daemon did anything after a kill")
        for kind in sorted(self.without_instant.keys() - self.reads.keys()):
            self.broken.append(f"no read of {kind} found an instant in common")
        if self.stop_seconds is not None and self.stop_seconds > END_SECONDS:
            self.broken.append(f"{END_SECONDS:.0f} s after SIGTERM the daemon was still there")

    def lines(self) -> list[str]:
        kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(self.reads.items()))
        share = self.within_target
        shown = "unknown"
        if share is not None:
            shown = f"{share:.1%} (goal {GOAL:.0%}{'' if share >= GOAL else ', missed'})"
        found = [
            f"{self.seconds:.0f} s, {self.commits} commits to base tables",
            f"refreshes: {self.refreshes}, interrupted {self.interrupted}, failed {self.failed}",
            f"kills survived: {self.survived} of {self.kills}",
            f"reads that held: {self.reads.total()} ({kinds}), "
            f"without a common instant {self.without_instant.total()}",
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
