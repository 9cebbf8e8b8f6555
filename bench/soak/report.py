"""What a soak found out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from bench.soak.daemon import END_SECONDS

GOAL = 0.95
LEAST_TARGET = 30.0


@dataclass
class Report:
    """`broken` names every invariant that did not hold; `attainment` is by table, with its target.

    With a `goal`, every table whose target is 30 s or more has to be within it for that share of
    the time: an average would hide the one that never is.
    """

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
    goal: float | None = None

    @property
    def is_right(self) -> bool:
        return not self.broken and len(self.verified) == self.tables > 0

    @property
    def measured(self) -> dict[str, float]:
        """The share of the time within target, for each table that has one of 30 s or more."""
        known = self.attainment.items()
        return {name: share for name, (target, share) in known if target >= LEAST_TARGET}

    @property
    def within_target(self) -> float | None:
        """The mean of these shares."""
        shares = self.measured.values()
        return sum(shares) / len(shares) if shares else None

    @property
    def worst(self) -> tuple[str, float] | None:
        """The table that was within its target for the least of the time."""
        found = sorted(self.measured.items(), key=lambda known: (known[1], known[0]))
        return found[0] if found else None

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
        if self.goal is not None:
            self._judge_lag(self.goal)

    def _judge_lag(self, goal: float) -> None:
        if not self.measured:
            self.broken.append("no table has a lag that was measured")
        for name, share in sorted(self.measured.items()):
            if share < goal:
                said = f"{name} was within its target for {share:.1%} of the time"
                self.broken.append(f"{said}, the goal is {goal:.0%}")

    def lines(self) -> list[str]:
        kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(self.reads.items()))
        found = [
            f"{self.seconds:.0f} s, {self.commits} commits to base tables",
            f"refreshes: {self.refreshes}, interrupted {self.interrupted}, failed {self.failed}",
            f"kills survived: {self.survived} of {self.kills}",
            f"reads that held: {self.reads.total()} ({kinds}), "
            f"without a common instant {self.without_instant.total()}",
            f"lag attainment: {self._lag_shown()}",
            *(
                f"  {name}: {share:.1%} within {target:.0f} s"
                for name, (target, share) in sorted(self.attainment.items())
            ),
            f"verified tables: {len(self.verified)} of {self.tables}",
        ]
        if self.stop_seconds is not None:
            found.append(f"ended {self.stop_seconds:.1f} s after SIGTERM")
        return [*found, *(f"BROKEN: {text}" for text in self.broken)]

    def facts(self) -> dict[str, Any]:
        """The figures to keep."""
        return {
            "is_right": self.is_right, "seconds": self.seconds, "commits": self.commits,
            "refreshes": self.refreshes, "interrupted": self.interrupted, "failed": self.failed,
            "kills": self.kills, "survived": self.survived, "reads": dict(self.reads),
            "without_instant": dict(self.without_instant), "goal": self.goal,
            "within_target": self.within_target, "worst": list(self.worst or ()),
            "attainment": {name: list(known) for name, known in sorted(self.attainment.items())},
            "verified": len(self.verified), "tables": self.tables,
            "stop_seconds": self.stop_seconds, "broken": self.broken,
        }  # fmt: skip

    def _lag_shown(self) -> str:
        mean, worst = self.within_target, self.worst
        if mean is None or worst is None:
            return "unknown"
        goal = GOAL if self.goal is None else self.goal
        missed = "" if worst[1] >= goal else ", missed"
        return f"{mean:.1%} on average, least {worst[0]} {worst[1]:.1%} (goal {goal:.0%}{missed})"
