"""What must hold after every round of changes, whatever the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kit.bags import Bag, difference
from runnel.compile.pipeline import CompiledQuery
from runnel.compile.program import Program


@dataclass(frozen=True)
class Round:
    """Which sources changed, which of them only grew, and up to which epoch to compact afterwards."""

    changed: frozenset[str]
    growing: frozenset[str] = frozenset()
    compact: int | None = None


class Query(Protocol):
    """A compiled query with its trace, in some engine; `total` are the stored rows, netted."""

    compiled: CompiledQuery
    epoch: int
    total: Bag

    def set_round(self, number: int) -> None:
        """Let the sources show a round."""

    def initialize(self) -> None:
        """Fill the trace from `full()`."""

    def full(self) -> Bag:
        """The stored rows of the whole result, netted."""

    def run(self, program: Program) -> Bag:
        """The output of a program, unchecked and not yet appended."""

    def append(self, change: Bag, epoch: int) -> None:
        """Append an epoch to the trace."""

    def compact(self, since: int) -> None:
        """Net the epochs up to `since` into one run."""

    def readout(self) -> Bag:
        """What the user sees."""

    def oracle(self, sql: str) -> Bag:
        """The user's own query, evaluated by the engine on the contents of the round."""


class Mismatch(AssertionError):
    """An invariant of the algebra does not hold."""


def check_rounds(
    query: Query, oracle_sql: str, rounds: Sequence[Round], *, then_nothing: bool = True
) -> int:
    """Fill the trace in round 0, then refresh through the rounds, checking after each.

    `then_nothing`: one more round in which every source says it changed, and none did. Returns the
    number of rounds in which the result really changed.
    """
    moved = 0
    query.set_round(0)
    query.initialize()
    check_contents(query, oracle_sql, "round 0", with_full=False)
    for number, step in enumerate(rounds, 1):
        query.set_round(number)
        moved += bool(refresh(query, step, f"round {number}"))
        is_last = number == len(rounds)
        check_contents(query, oracle_sql, f"round {number}", with_full=is_last)
    if then_nothing:
        query.set_round(len(rounds) + 1)
        check_nothing_changed(query)
    return moved


def refresh(query: Query, step: Round, label: str) -> Bag:
    """Run the change program of a round and append its output."""
    program = query.compiled.program(step.changed, step.growing)
    change = query.run(program)
    for row, weight in change.items():
        if weight < 0 and query.total[row] < -weight:
            raise Mismatch(f"{label}: deletes {-weight} x {row} of {query.total[row]}")
    query.append(change, query.epoch + 1)
    if step.compact is not None:
        query.compact(step.compact)
    return change


def check_contents(query: Query, oracle_sql: str, label: str, *, with_full: bool = True) -> None:
    """Readout, stored rows and full evaluation agree with the user's query."""
    expected = query.oracle(oracle_sql)
    compare(query.readout(), expected, f"{label}: the readout differs from the query")
    negative = {row: n for row, n in query.total.items() if n < 0}
    if negative:
        raise Mismatch(f"{label}: negative totals {negative}")
    if with_full:
        compare(query.total, query.full(), f"{label}: the trace differs from full()")


def check_nothing_changed(query: Query) -> None:
    """With empty changes of every source the program gives nothing."""
    program = query.compiled.program(frozenset(query.compiled.kinds))
    change = query.run(program)
    if change:
        raise Mismatch(f"an empty change gives {dict(change)}")


def compare(found: Bag, expected: Bag, message: str) -> None:
    if found != expected:
        raise Mismatch(f"{message}\n{difference(found, expected)}")
