"""`python -m bench.soak`: ten minutes of everything at once; fails when anything was wrong."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom

from bench.report import write
from bench.soak.report import GOAL, Report
from bench.soak.run import Plan, soak


def main() -> None:
    chosen = _arguments()
    place = Path(chosen.folder or tempfile.mkdtemp(prefix="runnel-soak-"))
    seed = SystemRandom().randrange(10**6) if chosen.seed is None else chosen.seed
    _say(f"seed {seed}, in {place}")
    plan = Plan(
        seconds=chosen.minutes * 60, kill_every=chosen.kill_every, write_every=chosen.write_every,
        read_every=chosen.read_every, workers=chosen.workers, seed=seed,
        goal=chosen.goal / 100 if chosen.goal else None,
    )  # fmt: skip
    report = soak(place / "lake", plan, _say)
    for line in report.lines():
        print(line)
    _say(f"kept in {_keep(report, plan, chosen.minutes)}")
    if not report.is_right:
        print(f"left for looking at: {place}", file=sys.stderr)
        sys.exit(1)
    if chosen.folder is None:
        shutil.rmtree(place, ignore_errors=True)


def _keep(report: Report, plan: Plan, minutes: float) -> Path:
    """A short run does not replace the figures of a long one."""
    facts = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "plan": {"kill_every": plan.kill_every, "workers": plan.workers, "seed": plan.seed},
    }
    return write(facts | report.facts(), f"soak-{minutes:g}.json")


def _arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default 10)")
    parser.add_argument("--kill-every", type=float, default=75.0, help="mean seconds between kills")
    parser.add_argument("--write-every", type=float, default=1.0, help="seconds between commits")
    parser.add_argument("--read-every", type=float, default=2.0, help="seconds between reads")
    parser.add_argument("--workers", type=int, default=2, help="tables refreshed side by side")
    parser.add_argument(
        "--goal", type=float, default=100 * GOAL,
        help="per cent of the time that each table with a target of 30 s or more has to be within "
        f"it (default {GOAL:.0%}, 0: it is only told)".replace("%", "%%"),
    )  # fmt: skip
    parser.add_argument("--seed", type=int, help="repeat the random choices of a run")
    parser.add_argument("--folder", help="keep the lake here")
    return parser.parse_args(arguments)


def _say(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", flush=True)


if __name__ == "__main__":
    main()
