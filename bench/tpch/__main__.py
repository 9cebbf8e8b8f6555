"""`make bench-tpch`: the 22 queries kept three ways, 0.1% changed a round; contents verified."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import runnel
from bench.report import judged, stamp, write
from bench.rounds import CHEAP, MODES, median_of_rounds, say
from bench.tpch import data
from bench.tpch.promises import promises
from runnel.api import Lake
from runnel.model.tabular import text_table


def main() -> int:
    options = _options()
    folder = Path(options.folder or tempfile.mkdtemp(prefix="runnel-tpch-"))
    conf = {"spark.driver.memory": options.memory, "spark.driver.maxResultSize": "512m"}
    try:
        with runnel.connect(folder / "lake", spark_conf=conf) as lake:
            measured = _measure(lake, folder / "generated", options)
    finally:
        if not options.folder:
            shutil.rmtree(folder, ignore_errors=True)
    write(measured, options.out or f"tpch-{options.scale:g}.json")
    print(_table(measured))
    found = [*measured["rounds"], *measured["pass"].values()]
    is_right = all(r["verified"] for r in found)
    return 0 if is_right and all(p.is_kept for p in promises(measured)) else 1


def _measure(lake: Lake, generated: Path, options: argparse.Namespace) -> dict[str, Any]:
    measured = {**stamp(0), "scale": options.scale, "share": options.share, "rounds": []}
    say(f"generating scale {options.scale:g}")
    data.generate(generated, options.scale)
    data.load(lake, generated)
    for number in options.queries:
        say(f"creating q{number:02}")
        for mode in MODES:
            lake.create_stream_table(_name(number, mode), data.query(number), refresh_mode=mode)
    found = []
    for round_ in range(options.warm_up + options.repeats):
        data.change(lake, options.share, round_)
        data.touch(lake)
        # FULL is warm from the fill and three rounds; the others need more.
        modes = MODES if round_ >= options.warm_up - 3 else CHEAP
        say(f"round {round_}")
        is_measured = round_ >= options.warm_up
        made = [_query(lake, number, modes, is_measured) for number in options.queries]
        found += [made] if is_measured else []
    measured["rounds"] = [median_of_rounds(query) for query in zip(*found, strict=True)]
    measured["pass"] = _passes(lake, options)
    return measured


def _passes(lake: Lake, options: argparse.Namespace) -> dict[str, Any]:
    """Several passes over all tables; in the first, forms of programs that only a pass has are cold."""
    found = []
    for number in range(1 + options.repeats):
        data.change(lake, options.share, options.warm_up + options.repeats + number)
        data.touch(lake)
        modes = ("AUTO", "FULL") if number else ("AUTO",)
        found.append({mode: _pass(lake, mode, options, number > 0) for mode in modes})
    return {mode: _median([p[mode] for p in found[1:]]) for mode in ("AUTO", "FULL")}


def _median(passes: list[dict[str, Any]]) -> dict[str, Any]:
    """One pass that took the median time; it is verified if all of them were."""
    seconds = [p["seconds"] for p in passes]
    verified = all(p["verified"] for p in passes)
    return {**passes[0], "seconds": median(seconds), "all": seconds, "verified": verified}


def _pass(lake: Lake, mode: str, options: argparse.Namespace, is_measured: bool) -> dict[str, Any]:
    """All tables of a mode refreshed in one pass of the scheduler, several side by side."""
    names = [_name(number, mode) for number in options.queries]
    for name in names:
        lake.alter_stream_table(name, schedule="1s")
    time.sleep(1)
    start = time.perf_counter()
    done = lake.run(once=True, workers=options.workers)
    seconds = time.perf_counter() - start
    for name in names:
        lake.alter_stream_table(name, schedule=None)
    assert {r.name for r in done} == set(names), "the pass left something out"
    is_checked = is_measured and mode != "FULL"
    verified = not is_checked or all(lake.verify(name).ok for name in names)
    say(f"  one pass, {mode}: {seconds:.1f} s, {options.workers} side by side, verified {verified}")
    return {"seconds": seconds, "workers": options.workers, "verified": verified}


def _query(lake: Lake, number: int, modes: tuple[str, ...], is_measured: bool) -> dict[str, Any]:
    """Refresh one query in several ways; what is measured is verified."""
    made: dict[str, Any] = {"query": f"q{number:02}", "seconds": {}, "actions": {}, "phases": {}}
    for mode in modes:
        start = time.perf_counter()
        result = lake.refresh(_name(number, mode))
        # The whole call: what is tidied afterwards, the caller waits for as well.
        made["seconds"][mode] = round(time.perf_counter() - start, 4)
        made["actions"][mode] = result.action.value
        made["phases"][mode] = result.phases
    made["verified"] = lake.verify(_name(number, "DIFFERENTIAL")).ok if is_measured else None
    say(f"  {made['query']}: {made['seconds']} {made['actions']} verified {made['verified']}")
    return made


def _name(number: int, mode: str) -> str:
    return f"{mode.lower()}_q{number:02}"


def _table(measured: dict[str, Any]) -> str:
    titles = ["query", *MODES, "AUTO ran", "FULL / DIFF", "AUTO / FULL", "verified"]
    rows = [_row(r) for r in measured["rounds"]]
    totals = {mode: sum(r["seconds"][mode] for r in measured["rounds"]) for mode in MODES}
    rows.append(_row({"query": "all", "seconds": totals, "actions": {}, "verified": True}))
    head = f"scale {measured['scale']:g}, {measured['share']:.2%} changed; seconds below\n"
    one, other = (measured["pass"][mode]["seconds"] for mode in ("AUTO", "FULL"))
    return (
        f"{head}one pass of all: AUTO {one:.1f} s, FULL {other:.1f} s, {other / one:.1f}x\n\n"
        f"{text_table(titles, rows)}\n{judged(promises(measured))}"
    )


def _row(r: dict[str, Any]) -> list[str]:
    seconds = r["seconds"]
    return [
        r["query"],
        *(f"{seconds[mode]:.2f}" for mode in MODES),
        r["actions"].get("AUTO", ""),
        f"{seconds['FULL'] / seconds['DIFFERENTIAL']:.1f}x",
        f"{seconds['AUTO'] / seconds['FULL']:.2f}",
        "yes" if r["verified"] else "NO",
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.tpch", description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--share", type=float, default=0.001)
    parser.add_argument("--warm-up", type=int, default=7, help="rounds that are not measured")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of which the median counts")
    # As many as cores: more of them, of either mode, only wait for each other.
    cores = os.cpu_count() or 2
    parser.add_argument("--workers", type=int, default=cores, help="side by side in the pass")
    parser.add_argument("--queries", type=_numbers, default=list(range(1, 23)))
    parser.add_argument("--memory", default="8g")
    parser.add_argument("--folder", help="keep data and lake in this folder")
    parser.add_argument("--out", help="name of the JSON file in bench/results")
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
