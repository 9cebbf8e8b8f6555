"""A whole generated case, and how it is checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb

from kit.check import Mismatch, Round, check_rounds
from kit.dialect import replace_words, transpile
from kit.duck import DuckQuery, DuckSources, Moment, Table, oracle_text
from kit.generate.data import history, tables
from kit.generate.dice import Dice, chance, pick
from kit.generate.queries import whole_query
from kit.generate.writer import Writer
from kit.near import near_only
from kit.typer import RuleTyper
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.compile.program import Program
from runnel.compile.rewrites.quantified import without_quantifiers
from runnel.errors import NotDifferentiable

_TYPER = RuleTyper()
_LARGEST = 10_000


@dataclass(frozen=True)
class Case:
    """Tables, a query, and what happens to the tables."""

    tables: Sequence[Table]
    query: str
    scales: dict[str, int]
    moments: Sequence[Sequence[Moment]]
    rounds: Sequence[Round]
    thorough: bool = False
    then_nothing: bool = True

    def __str__(self) -> str:
        lines = [f"query {self.query}"]
        for table, moments in zip(self.tables, self.moments, strict=True):
            columns = ", ".join(f"{c.name} {c.type}" for c in table.columns)
            lines.append(f"table {table.name} ({columns}) kind {table.kind}")
            for number, moment in enumerate(moments[:-1]):
                lines.append(f"  round {number}: contents {moment.contents}")
                lines.append(f"           change {moment.change}")
                if table.kind == "trace":
                    lines.append(f"           reading {moment.reading}")
        lines.append(f"rounds {self.rounds}")
        return "\n".join(lines)


@dataclass
class Tally:
    """How many queries were really checked, in how many rounds, and why the others were not."""

    checked: int = 0
    rounds: int = 0
    moved: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)

    def count(self, made: Case, moved: int) -> None:
        """A case that was checked as a whole, and in how many of its rounds the result changed."""
        self.checked += 1
        self.rounds += len(made.rounds)
        self.moved += moved
        self.texts.add(made.query)

    def refuse(self, reason: str) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + 1

    def __str__(self) -> str:
        reasons = ", ".join(f"{n} x {r}" for r, n in sorted(self.refused.items()))
        told = f" ({reasons})" if reasons else ""
        return (
            f"{self.rounds} cases (rounds of changes) checked, of which {self.moved} changed the "
            f"result, on {len(self.texts)} distinct queries; "
            f"{sum(self.refused.values())} queries refused{told}; {len(self.failures)} failed "
            f"(seeds from {', '.join(map(str, self.seeds))})"
        )


def case(dice: Dice, depth: int, max_rounds: int = 2, *, for_spark: bool = False) -> Case:
    """Make a case."""
    sources = tables(dice)
    writer = Writer(dice, sources, for_spark, room=depth + pick(dice, (1, 1, 1, 2)))
    query = whole_query(writer, depth)
    used = [t for t in sources if f"{t.name} " in query.text.lower()]
    count = dice.number(1, max_rounds)
    made = [history(dice, table, count) for table in used]
    all_changed = chance(dice, 50)
    rounds = [_round(dice, used, made, number, all_changed) for number in range(count)]
    thorough = chance(dice, 3)
    moments = [m for m, _ in made]
    then_nothing = chance(dice, 20)
    return Case(used, query.text, writer.scales, moments, rounds, thorough, then_nothing)


def _round(
    dice: Dice,
    used: Sequence[Table],
    made: Sequence[tuple[list[Moment], list[bool]]],
    number: int,
    all_changed: bool,
) -> Round:
    """Which sources say that they changed: those that did, and some that did not."""
    changed, growing = set(), set()
    for table, (moments, grew) in zip(used, made, strict=True):
        if all_changed or moments[number + 1].change or chance(dice, 15):
            changed.add(table.schema.key)
            if grew[number] and not all_changed and chance(dice, 70):
                growing.add(table.schema.key)
    compact = dice.number(0, number + 1) if chance(dice, 15) else None
    return Round(frozenset(changed), frozenset(growing), compact)


def is_too_large(compiled: CompiledQuery, limit: int) -> bool:
    """Whether the program for all sources is longer than so many characters.

    The few longest take most of the time; shorter ones have the same operators in them.
    """
    program = compiled.program(frozenset(compiled.kinds))
    return sum(len(step.sql) for step in program.steps) > limit


def check(con: duckdb.DuckDBPyConnection, made: Case, tally: Tally) -> bool:
    """Check a case and count it; False when it is refused. A failure carries the case."""
    try:
        text = without_quantifiers(made.query)
        compiled = compile_query(text, [t.schema for t in made.tables], _TYPER)
    except NotDifferentiable as error:
        tally.refuse(error.construct)
        return False
    if is_too_large(compiled, _LARGEST):
        tally.refuse("too large to be checked soon")
        return False
    sources = DuckSources(con, made.tables)
    for table, moments in zip(made.tables, made.moments, strict=True):
        sources.load(table.schema.key, 0, moments)
    translate = transpile if made.thorough else replace_words
    # No other rows than a step says it needs.
    rewrite = near_only if made.thorough else _as_it_is
    query = DuckQuery(sources, compiled, translate, with_tables=made.thorough, rewrite=rewrite)
    try:
        # DuckDB runs ANY and ALL itself.
        expected = _oracle_text(made, compiled.text or made.query)
        moved = check_rounds(query, expected, made.rounds, then_nothing=made.then_nothing)
    except (duckdb.OutOfRangeException, duckdb.NotImplementedException) as error:
        tally.refuse(type(error).__name__)
        return False
    except (Mismatch, duckdb.Error, AssertionError) as error:
        raise Mismatch(f"{error}\n{made}") from error
    tally.count(made, moved)
    return True


def _as_it_is(program: Program) -> Program:
    return program


def _oracle_text(made: Case, text: str) -> str:
    """The generated query for DuckDB; only averages and orders need more than other words."""
    if "AVG(" in text or "ORDER BY" in text or made.thorough:
        return oracle_text(text, made.tables, made.scales)
    return replace_words(text)
