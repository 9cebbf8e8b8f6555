"""A generated case through the real lake: several commits a round, then a refresh, then VERIFY."""

from __future__ import annotations

from collections.abc import Sequence

from kit.bags import Bag, difference
from kit.check import Mismatch
from kit.duck import Weighted
from kit.generate.cases import Case, Tally, is_too_large
from kit.lake_backend import LakeBackend
from kit.step import Change, TableSpec
from kit.typer import RuleTyper
from runnel.api import Lake
from runnel.compile.pipeline import compile_query
from runnel.compile.rewrites.quantified import without_quantifiers
from runnel.errors import InvalidQuery, NotDifferentiable

_LARGEST = 12_000


def check_on_lake(lake: Lake, made: Case, tally: Tally) -> bool:
    """Check a case and count it; False when it is refused. A failure carries the case."""
    if _is_too_large(made):
        tally.refuse("too large to be checked soon")
        return False
    backend = LakeBackend(lake)
    try:
        for table, moments in zip(made.tables, made.moments, strict=True):
            rows = list(moments[0].contents)
            backend.create_table(TableSpec(table.name, table.columns, rows=rows))
        try:
            backend.create_stream_table(made.query)
        except NotDifferentiable as error:
            tally.refuse(error.construct)
            return False
        except InvalidQuery as error:
            tally.refuse(error.primary)
            return False
        moved, found = 0, backend.contents()
        for number in range(1, len(made.rounds) + 1):
            before, found = found, _round(backend, made, number, found)
            moved += found != before
        backend.verify()
    finally:
        backend.close()
    tally.count(made, moved)
    return True


def _is_too_large(made: Case) -> bool:
    try:
        text = without_quantifiers(made.query)
        compiled = compile_query(text, [t.schema for t in made.tables], RuleTyper())
    except NotDifferentiable:
        return False
    return is_too_large(compiled, _LARGEST)


def _round(backend: LakeBackend, made: Case, number: int, before: Bag) -> Bag:
    """The contents after the round."""
    is_changed = False
    for table, moments in zip(made.tables, made.moments, strict=True):
        changes = _changes(table.name, moments[number].change)
        is_changed |= bool(changes)
        middle = len(changes) // 2
        for part in (changes[:middle], changes[middle:]):
            if part:
                backend.commit(part)
    action = backend.refresh()
    found, expected = backend.contents(), backend.oracle()
    if found != expected:
        raise Mismatch(f"round {number}\n{difference(found, expected)}\n{made}")
    moved = found != before
    allowed = {"DIFFERENTIAL"} if moved else {"DIFFERENTIAL", "NO_DATA"}
    if action not in (allowed if is_changed else {"NO_DATA"}):
        raise Mismatch(f"round {number}: {action}, moved {moved}\n{made}")
    return found


def _changes(table: str, feed: Sequence[Weighted]) -> list[Change]:
    found = []
    for row, weight in feed:
        change = Change(table, None, row) if weight > 0 else Change(table, row, None)
        found += [change] * abs(weight)
    return found
