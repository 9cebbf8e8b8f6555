"""The writer of a soak: random commits to the base tables, and what they must add up to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from deltalake import DeltaTable, write_deltalake

import runnel
from bench.soak.graph import ACCOUNTS, BASES, BRANCHES, path_of, rows

_NODES = 12
_EDGES = 18

Pair = tuple[int, int]


@dataclass
class Truth:
    """What was committed: transfers by number, the branch of each account, edges."""

    transfers: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    branches: dict[int, int] = field(
        default_factory=lambda: {i: i % BRANCHES for i in range(ACCOUNTS)}
    )
    edges: set[Pair] = field(default_factory=set)

    def entries(self) -> list[tuple[int, int, int]]:
        """The rows of the base table: each transfer takes and gives the same amount."""
        legs = [((t, a, -amount), (t, b, amount)) for t, (a, b, amount) in self.transfers.items()]
        return sorted(leg for pair in legs for leg in pair)


@dataclass
class Writer:
    """At most one commit a call; every transfer's two rows are written, changed and removed together."""

    lake: runnel.Lake
    folder: Path
    random: Random
    truth: Truth = field(default_factory=Truth)
    _number: int = 0

    def write(self) -> None:
        acts: list[tuple[Callable[[], None], int]] = [
            (self._transfer, 50), (self._cancel, 12), (self._correct, 10), (self._connect, 12),
            (self._cut, 8), (self._move, 3), (self._move_by_sql, 3), (self._optimize, 2),
        ]  # fmt: skip
        chosen = self.random.choices([a for a, _ in acts], [weight for _, weight in acts])[0]
        chosen()

    @property
    def commits(self) -> int:
        """By all tables' versions: an act may find nothing to do."""
        return sum(self._table(base).version() for base in BASES)

    def _table(self, base: str) -> DeltaTable:
        return DeltaTable(path_of(self.folder, base))

    def _transfer(self) -> None:
        made: dict[int, tuple[int, int, int]] = {}
        for _ in range(self.random.randint(1, 20)):
            self._number += 1
            payer, payee = self.random.sample(range(ACCOUNTS), 2)
            made[self._number] = (payer, payee, self.random.randint(1, 100))
        legs = Truth(made).entries()
        write_deltalake(self._table("entries"), rows("entries", list(legs)), mode="append")
        self.truth.transfers |= made

    def _cancel(self) -> None:
        for number in self._some_transfer():
            self._table("entries").delete(f"transfer = {number}")
            del self.truth.transfers[number]

    def _correct(self) -> None:
        for number in self._some_transfer():
            self._table("entries").update(
                predicate=f"transfer = {number}", updates={"amount": "amount * 2"}
            )
            payer, payee, amount = self.truth.transfers[number]
            self.truth.transfers[number] = (payer, payee, 2 * amount)

    def _connect(self) -> None:
        pair = (self.random.randrange(_NODES), self.random.randrange(_NODES))
        if pair in self.truth.edges or len(self.truth.edges) >= _EDGES:
            self._cut()
            return
        write_deltalake(self._table("edges"), rows("edges", [pair]), mode="append")
        self.truth.edges.add(pair)

    def _cut(self) -> None:
        if self.truth.edges:
            pair = self.random.choice(sorted(self.truth.edges))
            self._table("edges").delete(f"a = {pair[0]} AND b = {pair[1]}")
            self.truth.edges.discard(pair)

    def _move(self) -> None:
        account, branch = self.random.randrange(ACCOUNTS), self.random.randrange(BRANCHES)
        self._table("accounts").update(predicate=f"id = {account}", updates={"branch": str(branch)})
        self.truth.branches[account] = branch

    def _move_by_sql(self) -> None:
        account, branch = self.random.randrange(ACCOUNTS), self.random.randrange(BRANCHES)
        self.lake.sql(f"UPDATE accounts SET branch = {branch} WHERE id = {account}")
        self.truth.branches[account] = branch

    def _optimize(self) -> None:
        self._table("entries").optimize.compact()

    def _some_transfer(self) -> list[int]:
        known = list(self.truth.transfers)
        return [self.random.choice(known)] if known else []
