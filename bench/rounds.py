"""Rounds of changes: every query kept every way, timed inside one run, contents verified."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

from bench import by_hand, data
from bench.queries import Case, cases, chain
from runnel.api import Lake

MODES = ("DIFFERENTIAL", "FULL", "AUTO")
WAYS = (*MODES, "CTAS", "MERGE")
CHEAP = ("DIFFERENTIAL", "AUTO")
"""What also runs in the first rounds, which warm the JVM up; the dear ways run once to get warm."""


@dataclass
class Rounds:
    """One run over one lake; `names` and `ways` choose what is measured."""

    lake: Lake
    rows: int
    names: tuple[str, ...]
    ways: tuple[str, ...]
    warm_up: int = 4
    merged: dict[str, int] = field(default_factory=dict)

    @property
    def cases(self) -> list[Case]:
        return [case for case in cases() if case.name in self.names]

    @property
    def modes(self) -> list[str]:
        return [mode for mode in MODES if mode in self.ways]

    def run(self, shares: list[float], repeats: int = 1) -> list[dict[str, Any]]:
        """Create everything, warm up, then `repeats` rounds for each share."""
        say(f"generating {self.rows:,} rows")
        data.create(self.lake, self.rows)
        self._create()
        self.merged = self._versions()
        wanted = self.ways
        for number in range(self.warm_up):
            is_last = number == self.warm_up - 1
            self.ways = wanted if is_last else tuple(w for w in wanted if w in CHEAP)
            self._round(number, shares[0], verify=())
        measured = []
        for index, share in enumerate(shares):
            verify = MODES if share == shares[-1] else CHEAP[:1]
            first = self.warm_up + index * repeats
            rounds = [self._round(first + n, share, verify) for n in range(repeats)]
            measured += [_median(case) for case in zip(*rounds, strict=True)]
        return measured

    def _create(self) -> None:
        for case in self.cases:
            say(f"creating {case.name}")
            for mode in self.modes:
                self.lake.create_stream_table(f"{mode}_{case.name}", case.query, refresh_mode=mode)
            if "MERGE" in self.ways:
                self.lake.sql(f"CREATE TABLE merge_{case.name} USING delta AS {case.query}")
        for mode in self.modes if "chain" in self.names else ():
            for name, query in chain():
                self.lake.create_stream_table(
                    f"{mode}_{name}", query.format(p=f"{mode}_"), refresh_mode=mode
                )

    def _round(self, number: int, share: float, verify: tuple[str, ...]) -> list[dict[str, Any]]:
        changed = data.change(self.lake, self.rows, share, number)
        say(f"round {number}: {share:.2%}, {changed:,} rows")
        found = [self._case(case, share, verify) for case in self.cases]
        if "chain" in self.names:
            found.append(self._chain(share, verify))
        if "MERGE" in self.ways:
            self.merged = self._versions()
        return found

    def _case(self, case: Case, share: float, verify: tuple[str, ...]) -> dict[str, Any]:
        measured: dict[str, Any] = {"query": case.name, "share": share, "seconds": {}}
        data.touch(self.lake)
        for mode in self.modes:
            self._refresh(f"{mode}_{case.name}", mode, measured)
        if "CTAS" in self.ways:
            measured["seconds"]["CTAS"] = timed(lambda: by_hand.replace(self.lake, case))
        if "MERGE" in self.ways:
            measured["seconds"]["MERGE"] = timed(
                lambda: by_hand.merge(self.lake, case, self.merged)
            )
        names = [f"{mode}_{case.name}" for mode in self.modes if mode in verify]
        measured["verified"] = self._verify(names)
        if verify == MODES:
            measured["verified"] &= self._is_merged_right(case)
        return _told(measured)

    def _refresh(self, name: str, mode: str, measured: dict[str, Any]) -> None:
        context = self.lake.spark.sparkContext
        group = f"{name}@{perf_counter()}"
        context.setJobGroup(group, group)
        result = self.lake.refresh(name)
        context.setLocalProperty("spark.jobGroup.id", "")
        measured["seconds"][mode] = result.seconds
        measured.setdefault("jobs", {})[mode] = len(
            context.statusTracker().getJobIdsForGroup(group)
        )
        measured.setdefault("actions", {})[mode] = result.action.value
        measured.setdefault("phases", {})[mode] = result.phases

    def _chain(self, share: float, verify: tuple[str, ...]) -> dict[str, Any]:
        measured: dict[str, Any] = {"query": "chain", "share": share, "seconds": {}}
        data.touch(self.lake)
        for mode in self.modes:
            last = f"{mode}_{chain()[-1][0]}"
            measured["seconds"][mode] = timed(lambda last=last: self.lake.refresh(last))  # type: ignore[misc]
        modes = [mode for mode in self.modes if mode in verify]
        measured["verified"] = self._verify([f"{m}_{n}" for m in modes for n, _ in chain()])
        return _told(measured)

    def _verify(self, names: list[str]) -> bool:
        return all(self.lake.verify(name).ok for name in names)

    def _is_merged_right(self, case: Case) -> bool:
        if "MERGE" not in self.ways or "CTAS" not in self.ways:
            return True
        return not any(
            self.lake.sql(f"SELECT * FROM {a} EXCEPT ALL SELECT * FROM {b} LIMIT 1").take(1)
            for a, b in (
                (f"merge_{case.name}", f"ctas_{case.name}"),
                (f"ctas_{case.name}", f"merge_{case.name}"),
            )
        )

    def _versions(self) -> dict[str, int]:
        return {t: self._version(t) for t in ("sales", "customers")}

    def _version(self, table: str) -> int:
        return int(self.lake.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first()["version"])


def _median(measured: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """One case through its rounds: the median of each way's seconds, the rest of the last round."""
    ways = measured[-1]["seconds"]
    return {
        **measured[-1],
        "seconds": {way: median(m["seconds"][way] for m in measured) for way in ways},
        "rounds": [m["seconds"] for m in measured],
        "verified": all(m["verified"] for m in measured),
    }


def timed(work: Callable[[], Any]) -> float:
    """Seconds."""
    start = perf_counter()
    work()
    return perf_counter() - start


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _told(measured: dict[str, Any]) -> dict[str, Any]:
    times = ", ".join(f"{way} {s:.2f}" for way, s in measured["seconds"].items())
    jobs = measured.get("jobs", {}).get("DIFFERENTIAL", "")
    say(f"  {measured['query']}: {times}; jobs {jobs}; verified {measured['verified']}")
    return measured
