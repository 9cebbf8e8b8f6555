"""`python -m bench.soak`: ten minutes of everything at once; fails when anything was wrong."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom

from bench.soak.run import Plan, soak


def main() -> None:
    chosen = _arguments()
    place = Path(chosen.folder or tempfile.mkdtemp(prefix="runnel-soak-"))
    seed = SystemRandom().randrange(10**6) if chosen.seed is None else chosen.seed
    _say(f"seed {seed}, in {place}")
    plan = Plan(
        seconds=chosen.minutes * 60, kill_every=chosen.kill_every, write_every=chosen.write_every,
        read_every=chosen.read_every, workers=chosen.workers, seed=seed,
    )  # fmt: skip
    report = soak(place / "lake", plan, _say)
    for line in report.lines():
        print(line)
    if not report.is_right:
        print(f"left for looking at: {place}", file=sys.stderr)
        sys.exit(1)
    if chosen.folder is None:
        shutil.rmtree(place, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default 10)")
    parser.add_argument("--kill-every", type=float, default=75.0, help="mean seconds between kills")
    parser.add_argument("--write-every", type=float, default=1.0, help="seconds between commits")
    parser.add_argument("--read-every", type=float, default=1.0, help="seconds between reads")
    parser.add_argument("--workers", type=int, default=2, help="tables refreshed side by side")
    parser.add_argument("--seed", type=int, help="repeat the random choices of a run")
    parser.add_argument("--folder", help="keep the lake here")
    return parser.parse_args()


def _say(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", flush=True)


if __name__ == "__main__":
    main()
