"""Rounds of changes: every query kept every way, timed inside one run, contents verified."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import median
from time import perf_counter
from typing import Any

from bench import by_hand, data, tidying
from bench.memory import forget_peak, python_peak_mb
from bench.queries import Case, cases, chain
from runnel.api import Lake

MODES = ("DIFFERENTIAL", "FULL", "AUTO")
WAYS = (*MODES, "CTAS", "MERGE")
CHEAP = ("DIFFERENTIAL", "AUTO")
"""What also runs in the first rounds, which warm the JVM up; the dear ways run once to get warm."""


IN_A_ROW = 4
"""Rounds of a large change: a compaction, where there is one, follows every other refresh."""


@dataclass
class Rounds:
    """One run over one lake; `names` and `ways` choose what is measured.

    `peaks_are_fresh`: whether the memory's peak was forgotten before each share. Where it cannot
    be, the first share's hides that a larger one took more.
    """

    lake: Lake
    rows: int
    names: tuple[str, ...]
    ways: tuple[str, ...]
    warm_up: int = 4
    merged: dict[str, int] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)
    compacted: dict[str, float] = field(default_factory=dict)
    peaks_are_fresh: bool = True

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
        for place in range(self.warm_up):
            self._only(WAYS if place == self.warm_up - 1 else CHEAP, shares[0])
        measured = []
        for share in shares:
            self.peaks_are_fresh &= forget_peak()
            if share != shares[0]:
                # A larger change takes other forms, which start cold. MERGE has to follow.
                self._only((*CHEAP, "MERGE"), share)
            self.compacted = tidying.compact_all(self.lake, self._kept())
            rounds = [self._round(share, is_checked=True) for _ in range(repeats)]
            measured += [median_of_rounds(case) for case in zip(*rounds, strict=True)]
        return measured

    def in_a_row(self, share: float) -> list[dict[str, Any]]:
        """Several rounds of each mode, with the compactions that come of them.

        AUTO chooses with those in mind, so one refresh by itself would not show what it is worth.
        """
        say(f"{IN_A_ROW} rounds in a row")
        tidying.compact_all(self.lake, self._kept())
        rounds = [self._only(MODES, share, is_checked=True) for _ in range(IN_A_ROW)]
        return [_added_up(case) for case in zip(*rounds, strict=True)]

    def _only(
        self, ways: Sequence[str], share: float, *, is_checked: bool = False
    ) -> list[dict[str, Any]]:
        wanted = self.ways
        self.ways = tuple(way for way in wanted if way in ways)
        try:
            return self._round(share, is_checked)
        finally:
            self.ways = wanted

    def _create(self) -> None:
        for case in self.cases:
            say(f"creating {case.name}")
            for mode in self.modes:
                self.lake.create_stream_table(f"{mode}_{case.name}", case.query, refresh_mode=mode)
            if "MERGE" in self.ways:
                self.lake.sql(f"CREATE TABLE merge_{case.name} USING delta AS {case.query}")
        if "chain" in self.names:
            self._create_chain()

    def _create_chain(self) -> None:
        for mode in self.modes:
            for name, query in chain():
                self.lake.create_stream_table(
                    f"{mode}_{name}", query.format(p=f"{mode}_"), refresh_mode=mode
                )
        if "MERGE" in self.ways:
            by_hand.replace_chain(self.lake, "merge_")

    def _round(self, share: float, is_checked: bool) -> list[dict[str, Any]]:
        number = next(self.numbers)
        changed = data.change(self.lake, self.rows, share, number)
        say(f"round {number}: {share:.2%}, {changed:,} rows")
        found = [self._case(case, share, is_checked) for case in self.cases]
        if "chain" in self.names:
            found.append(self._chain(share, is_checked))
        if "MERGE" in self.ways:
            self.merged = self._versions()
        return found

    def _case(self, case: Case, share: float, is_checked: bool) -> dict[str, Any]:
        measured: dict[str, Any] = {"query": case.name, "share": share, "seconds": {}}
        data.touch(self.lake)
        for mode in self.modes:
            self._refresh(f"{mode}_{case.name}", mode, measured)
        self._note_tidying(measured, [case.name])
        if "CTAS" in self.ways:
            measured["seconds"]["CTAS"] = timed(lambda: by_hand.replace(self.lake, case))
        if "MERGE" in self.ways:
            measured["seconds"]["MERGE"] = timed(
                lambda: by_hand.merge(self.lake, case, self.merged)
            )
        if is_checked:
            measured["verified"] = self._is_right(case.name)
        return _told(measured)

    def _refresh(self, name: str, mode: str, measured: dict[str, Any]) -> None:
        context = self.lake.spark.sparkContext
        group = f"{name}@{perf_counter()}"
        context.setJobGroup(group, group)
        start = perf_counter()
        result = self.lake.refresh(name)
        # The whole call: what is tidied afterwards, the caller waits for as well.
        measured["seconds"][mode] = round(perf_counter() - start, 4)
        context.setLocalProperty("spark.jobGroup.id", "")
        measured.setdefault("jobs", {})[mode] = len(
            context.statusTracker().getJobIdsForGroup(group)
        )
        measured.setdefault("actions", {})[mode] = result.action.value
        measured.setdefault("phases", {})[mode] = self.lake.history(name, limit=1)[0].phases

    def _chain(self, share: float, is_checked: bool) -> dict[str, Any]:
        measured: dict[str, Any] = {"query": "chain", "share": share, "seconds": {}}
        seconds = measured["seconds"]
        data.touch(self.lake)
        for mode in self.modes:
            start = perf_counter()
            self.lake.refresh(f"{mode}_{chain()[-1][0]}")
            seconds[mode] = perf_counter() - start
            ran = {self._ran(f"{mode}_{name}") for name, _ in chain()}
            measured.setdefault("actions", {})[mode] = ", ".join(sorted(ran))
        self._note_tidying(measured, [name for name, _ in chain()])
        if "CTAS" in self.ways:
            seconds["CTAS"] = timed(lambda: by_hand.replace_chain(self.lake, "ctas_"))
        if "MERGE" in self.ways:
            seconds["MERGE"] = timed(lambda: by_hand.merge_chain(self.lake, self.merged))
        if is_checked:
            measured["verified"] = all(self._is_right(name) for name, _ in chain())
        return _told(measured)

    def _ran(self, name: str) -> str:
        """What the last refresh of a table was."""
        return str(self.lake.history(name, limit=1)[0].action)

    def _kept(self) -> list[str]:
        """The tables that grow by differences."""
        names = [case.name for case in self.cases]
        names += [name for name, _ in chain()] if "chain" in self.names else []
        return [f"{mode}_{name}" for mode in self.modes if mode in CHEAP for name in names]

    def _note_tidying(self, measured: dict[str, Any], names: Sequence[str]) -> None:
        """What compacting costs a round like this one, if there are many of them."""
        measured["tidying"] = {
            mode: sum(
                tidying.a_round(self.lake, f"{mode}_{name}", self.compacted) for name in names
            )
            for mode in self.modes
            if mode in CHEAP
        }

    def _is_right(self, name: str) -> bool:
        """One way is verified, row by row, and the others are compared with it."""
        tables = [f"{way.lower()}_{name}" for way in self.ways]
        one = self._contents(tables[0])
        is_same = all(self._contents(table) == one for table in tables[1:])
        return is_same and self.lake.verify(f"{self.modes[0]}_{name}").ok

    def _contents(self, table: str) -> tuple[Any, ...]:
        """A bag of rows as three numbers: how many there are, and two sums of hashes."""
        columns = ", ".join(self.lake.sql(f"SELECT * FROM {table} LIMIT 0").columns)
        sums = (f"sum(CAST(xxhash64({seed}{columns}) AS DECIMAL(38)))" for seed in ("", "7, "))
        row = self.lake.sql(f"SELECT count(*), {', '.join(sums)} FROM {table}").first()
        assert row is not None
        return tuple(row)

    def _versions(self) -> dict[str, int]:
        return {t: self._version(t) for t in ("sales", "customers")}

    def _version(self, table: str) -> int:
        return int(self.lake.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first()["version"])


def median_of_rounds(measured: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """One case through its rounds: the median of each way's seconds, the rest of the last round."""
    ways = measured[-1]["seconds"]
    return {
        **measured[-1],
        "seconds": {way: median(m["seconds"][way] for m in measured) for way in ways},
        "rounds": [m["seconds"] for m in measured],
        **_median_tidying(measured),
        "verified": all(m["verified"] for m in measured),
    }


def _added_up(measured: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """One case through its rounds: all seconds of each way, and what AUTO did."""
    last = measured[-1]
    return {
        **{key: last[key] for key in ("query", "share")},
        "verified": all(m["verified"] for m in measured),
        "seconds": {way: sum(m["seconds"][way] for m in measured) for way in last["seconds"]},
        "rounds": [m["seconds"] for m in measured],
        "actions": [m["actions"]["AUTO"] for m in measured],
    }


def _median_tidying(measured: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    found = [m["tidying"] for m in measured if "tidying" in m]
    if not found:
        return {}
    return {"tidying": {mode: median(each[mode] for each in found) for mode in found[-1]}}


def timed(work: Callable[[], Any]) -> float:
    """Seconds."""
    start = perf_counter()
    work()
    return perf_counter() - start


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _told(measured: dict[str, Any]) -> dict[str, Any]:
    measured["python_peak_mb"] = python_peak_mb()
    times = ", ".join(f"{way} {s:.2f}" for way, s in measured["seconds"].items())
    jobs = measured.get("jobs", {}).get("DIFFERENTIAL", "")
    say(f"  {measured['query']}: {times}; jobs {jobs}; {_checked(measured)}")
    return measured


def _checked(measured: dict[str, Any]) -> str:
    return f"verified {measured['verified']}" if "verified" in measured else "not verified"
