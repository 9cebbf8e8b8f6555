"""What the figures of a run must show, each with what was found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_JOINS = ("join", "join3")
_BY_HAND = ("CTAS", "MERGE")
# FULL / DIFFERENTIAL at 0.1%, by the rows of the fact table.
_TIMES = {
    10_000_000: {**dict.fromkeys(_JOINS, 5.0), "join_aggregate": 3.0},
    50_000_000: {"join": 15.0, "join_aggregate": 6.0},
}


@dataclass(frozen=True, slots=True)
class Promise:
    """Something that was asked for: `found` is at most, or at least, `asked`."""

    what: str
    found: float
    asked: float
    is_least: bool = False

    @property
    def is_kept(self) -> bool:
        return self.found >= self.asked if self.is_least else self.found <= self.asked

    def __str__(self) -> str:
        sign = "at least" if self.is_least else "at most"
        mark = "kept" if self.is_kept else "NOT KEPT"
        return f"{mark}: {self.what}: {self.found:.2f} ({sign} {self.asked:g})"


def promises(report: dict[str, Any]) -> list[Promise]:
    """All that a run of this size says something about."""
    of_rounds = (p for r in report["rounds"] for p in _of_round(r, report["rows"]))
    return [*_fixed(report), *of_rounds, *map(_in_a_row, report.get("in_a_row", []))]


def _fixed(report: dict[str, Any]) -> Iterator[Promise]:
    if "no_data_ms" in report:
        yield Promise("NO_DATA, ms", report["no_data_ms"], 10)
        yield Promise("a differential refresh of tiny tables, s", report["tiny"]["seconds"], 1.2)
    for kind, ways in report.get("epochs", {}).items():
        for way, ratio in ways.items():
            yield Promise(f"100 epochs / compacted, {kind} by {way}", ratio, 2)


def _of_round(measured: dict[str, Any], rows: int) -> Iterator[Promise]:
    seconds, share = measured["seconds"], measured["share"]
    what = f"{measured['query']} at {share:.2%}"
    times = _TIMES.get(rows, {}).get(measured["query"])
    if share == 0.001 and times is not None:
        ratio = seconds["FULL"] / seconds["DIFFERENTIAL"]
        yield Promise(f"{what}, FULL / DIFFERENTIAL", ratio, times, is_least=True)
    by_hand = [seconds[way] for way in _BY_HAND if way in seconds]
    if share <= 0.01 and by_hand:
        tidying = measured.get("tidying", {}).get("DIFFERENTIAL", 0.0)
        ratio = (seconds["DIFFERENTIAL"] + tidying) / min(by_hand)
        yield Promise(f"{what}, DIFFERENTIAL and its part of a compaction / best by hand", ratio, 1)
    if share == 0.1 and "AUTO" in seconds:
        yield _auto(what, seconds)


def _auto(what: str, seconds: dict[str, float]) -> Promise:
    better = min(seconds["DIFFERENTIAL"], seconds["FULL"])
    return Promise(f"{what}, AUTO / better way", seconds["AUTO"] / better, 1.2)


def _in_a_row(measured: dict[str, Any]) -> Promise:
    what = f"{measured['query']}, {len(measured['rounds'])} rounds of {measured['share']:.0%}"
    return _auto(f"{what} and their compactions", measured["seconds"])
