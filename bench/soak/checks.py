"""What must hold in every read of a soak, whatever is refreshed, killed or compacted meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from random import Random
from typing import Any

import runnel
from bench.soak.graph import NAMES
from bench.soak.load import Pair
from runnel.errors import UserError
from runnel.refresh.snapshot import Snapshot

Row = tuple[Any, ...]


class Broken(Exception):
    """An invariant does not hold."""


class Reader:
    """One read a call, every kind once in each round; raises Broken when it shows what cannot be.

    A read of tables that have no instant in common shows nothing: `reads` counts those that did.
    """

    def __init__(self, lake: runnel.Lake, random: Random) -> None:
        self.lake = lake
        self.random = random
        self.reads: Counter[str] = Counter()
        self.without_instant: Counter[str] = Counter()
        self._round: list[Callable[[], None]] = []
        self._reached: dict[str, tuple[datetime, int]] = {}
        self._kinds: tuple[Callable[[], None], ...] = (
            self._books, self._group, self._branches, self._ledger, self._chain, self._cycle, self._progress,
        )  # fmt: skip

    def read(self) -> None:
        if not self._round:
            self._round = self.random.sample(self._kinds, len(self._kinds))
        chosen = self._round.pop()
        kind = chosen.__name__.strip("_")
        try:
            chosen()
        except UserError as error:
            if "no data timestamp in common" not in error.primary:
                raise
            self.without_instant[kind] += 1
        else:
            self.reads[kind] += 1

    def _books(self) -> None:
        """The fan-in of the atomic diamond never mixes two versions of what it reads."""
        for balance, n, net, legs, transfers in _rows(self.lake.sql("SELECT * FROM books")):
            _same("books", (balance or 0, n), (net or 0, legs))
            _same("books add up", (balance or 0, n or 0), (0, 2 * transfers))

    def _group(self) -> None:
        """All members of the atomic diamond are seen at one state by one query."""
        ((legs, n, transfers, books),) = _rows(
            self.lake.sql(
                "SELECT (SELECT SUM(legs) FROM transfers), (SELECT SUM(n) FROM balances), "
                "(SELECT COUNT(*) FROM transfers WHERE net = 0 AND legs = 2), "
                "(SELECT MAX(transfers) FROM books)"
            )
        )
        _same("group", (legs, transfers, transfers), (n, books, (legs or 0) // 2))

    def _branches(self) -> None:
        for branch, total, n, other_total, other_n in _rows(self.lake.table("branches")):
            _same(f"branch {branch}", (total, n), (other_total, other_n))

    def _ledger(self) -> None:
        """Tables of different schedules agree at one T, also with the base table that they read."""
        with self.lake.snapshot(["balances", "by_branch", "entries"]) as seen:
            entries = _rows(seen.table("entries"))
            balances = {a: (b, n) for a, b, n in _rows(seen.table("balances"))}
            _same("balances", balances, grouped((a, amount) for _, a, amount in entries))
            branches = [(total, n) for _, total, n in _rows(seen.table("by_branch"))]
            _same("by_branch", _sums(branches), (0, len(entries)))

    def _chain(self) -> None:
        names = [
            "entries",
            "credits",
            "credited",
            "credited_branch",
            "credited_some",
            "credited_all",
        ]
        with self.lake.snapshot(names) as seen:
            credits = [row[2] for row in _rows(seen.table("entries")) if row[2] > 0]
            wanted = (sum(credits), len(credits))
            _same("credits", _sums((row[2], 1) for row in _rows(seen.table("credits"))), wanted)
            for name in names[2:]:
                _same(name, _sums(row[-2:] for row in _rows(seen.table(name))), wanted)

    def _cycle(self) -> None:
        with self.lake.snapshot(["reach_even", "reach_odd", "edges"]) as seen:
            even, odd = reach(_pairs(seen, "edges"))
            _same("reach_even", _pairs(seen, "reach_even"), even)
            _same("reach_odd", _pairs(seen, "reach_odd"), odd)

    def _progress(self) -> None:
        """Neither a table's T nor its epoch goes back."""
        for status in self.lake.status():
            if status.data_timestamp is None:
                continue
            now = (status.data_timestamp, status.epoch)
            before = self._reached.get(status.name, now)
            if now[0] < before[0] or now[1] < before[1]:
                raise Broken(f"{status.name} went back from {before} to {now}")
            self._reached[status.name] = now
        if missing := set(NAMES) - set(self._reached):
            raise Broken(f"tables are missing: {sorted(missing)}")


def reach(edges: Iterable[Pair]) -> tuple[set[Pair], set[Pair]]:
    """Pairs with a way of even length, and of odd length, by going on until nothing comes."""
    known = set(edges)
    even: set[Pair] = set()
    odd = set(known)
    while True:
        more_even = {(a, d) for a, b in known for c, d in odd if b == c} - even
        more_odd = {(a, d) for a, b in even for c, d in known if b == c} - odd
        if not more_even and not more_odd:
            return even, odd
        even |= more_even
        odd |= more_odd


def grouped(amounts: Iterable[tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Sum and number of the amounts by key."""
    found: dict[int, tuple[int, int]] = {}
    for key, amount in amounts:
        total, n = found.get(key, (0, 0))
        found[key] = (total + amount, n + 1)
    return found


def _sums(values: Iterable[Row]) -> tuple[int, int]:
    both = list(values)
    return sum(v[0] or 0 for v in both), sum(v[1] or 0 for v in both)


def _rows(frame: Any) -> list[Row]:
    return [tuple(row) for row in frame.collect()]


def _pairs(seen: Snapshot, name: str) -> set[Pair]:
    found = _rows(seen.table(name))
    if len(set(found)) != len(found):
        raise Broken(f"{name} shows a row twice")
    return {(row[0], row[1]) for row in found}


def _same(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise Broken(f"{what}: found {found}, expected {expected}")
