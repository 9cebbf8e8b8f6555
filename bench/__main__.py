"""`make bench`: every query, every way, every share of change, in one run; contents verified."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import runnel
from bench import report, small
from bench.memory import python_peak_mb
from bench.rounds import MODES, WAYS, Rounds
from runnel.api import Lake

_LARGE = 0.1
QUERIES = ("filter", "join", "join3", "aggregate", "join_aggregate", "distinct", "chain")


def main() -> int:
    options = _options()
    folder = Path(options.lake or tempfile.mkdtemp(prefix="runnel-bench-"))
    try:
        # What Spark hands its driver, broadcasts too, stays below this whatever the size.
        conf = {"spark.driver.memory": options.memory, "spark.driver.maxResultSize": "128m"}
        with runnel.connect(folder, spark_conf=conf) as lake:
            measured = _measure(lake, folder, options)
    finally:
        if not options.lake:
            shutil.rmtree(folder, ignore_errors=True)
    report.write(measured, options.out or f"spine-{options.rows}.json")
    print(report.table(measured))
    return 0 if report.is_good(measured) else 1


def _measure(lake: Lake, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    measured = report.stamp(options.rows)
    if not options.no_small:
        measured["tiny"] = small.tiny(lake)
        measured["no_data_ms"] = small.no_data(lake, "tiny")
    rounds = Rounds(lake, options.rows, options.queries, options.ways, options.warm_up)
    measured["rounds"] = rounds.run(options.shares, options.repeats)
    if options.shares[-1] >= _LARGE and set(MODES) <= set(options.ways):
        measured["in_a_row"] = rounds.in_a_row(options.shares[-1])
    if not options.no_small:
        # Last, when the JVM is warm: in a cold one the longer plan takes more than its share.
        measured["epochs"] = small.epochs(lake, folder, options.rows)
    measured["python_peak_mb"] = python_peak_mb()
    measured["peaks_are_fresh"] = rounds.peaks_are_fresh
    return measured


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--shares", type=_shares, default=[0.0001, 0.001, 0.01, 0.1])
    parser.add_argument("--queries", type=_some(QUERIES), default=QUERIES, help="comma-separated")
    parser.add_argument("--ways", type=_some(WAYS), default=WAYS, help="comma-separated")
    parser.add_argument("--no-small", action="store_true", help="leave out the fixed costs")
    parser.add_argument(
        "--warm-up", type=int, default=4, help="rounds before the first is measured"
    )
    parser.add_argument(
        "--repeats", type=int, default=1, help="rounds of each share; the median is kept"
    )
    parser.add_argument("--memory", default="8g")
    parser.add_argument("--lake", help="keep the lake in this folder")
    parser.add_argument("--out", help="name of the JSON file in bench/results")
    return parser.parse_args()


def _shares(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _some(known: tuple[str, ...]) -> Any:
    def parse(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        if unknown := set(names) - set(known):
            raise argparse.ArgumentTypeError(
                f"{', '.join(sorted(unknown))}: expected some of {', '.join(known)}"
            )
        return names

    return parse


if __name__ == "__main__":
    sys.exit(main())
