"""Random contents and change sequences, with NULLs, duplicates and detours that net to nothing."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from kit.bags import Row
from kit.duck import Moment, Table, Weighted
from kit.generate.dice import Dice, chance, pick
from runnel.model.columns import Column

_VALUES: dict[str, tuple[Any, ...]] = {
    "int": (1, 0, 2, 3, -1, None),
    "bigint": (1, 0, 2, 3, None),
    "string": ("a", "b", "", None),
    "decimal(10,2)": (Decimal("1.00"), Decimal("0.50"), Decimal("-1.00"), Decimal("2.25"), None),
    # What is equal and not the same, and what swallows whatever it meets.
    "double": (0.5, 1.5, -0.25, None, 0.0, -0.0, math.nan, math.inf, -math.inf),
    "boolean": (True, False, None),
    "date": (
        datetime.date(2024, 1, 1),
        datetime.date(2024, 2, 1),
        datetime.date(1969, 12, 31),
        None,
    ),
    "timestamp": (
        datetime.datetime(2024, 1, 1),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
        None,
    ),
    "array<int>": ((1, 2), (), (1,), None),
}
_COLUMNS = (
    Column("k", "int"),
    Column("n", "int"),
    Column("s", "string"),
    Column("d", "decimal(10,2)"),
    Column("f", "double"),
    Column("b", "boolean"),
    Column("m", "bigint"),
    Column("y", "date"),
    Column("z", "timestamp"),
    Column("v", "array<int>"),
)


def tables(dice: Dice) -> list[Table]:
    """Two or three tables that share column names; some are read as traces."""
    made = []
    for number in range(dice.number(2, 3)):
        first = [Column("k", "int")] if chance(dice, 85) else []
        chosen = {pick(dice, _COLUMNS): None for _ in range(dice.number(1, 3))}
        columns = tuple(dict.fromkeys([*first, *chosen]))
        made.append(Table(f"t_{number}", columns, "trace" if chance(dice, 35) else "delta"))
    return made


def row(dice: Dice, table: Table) -> Row:
    return tuple(pick(dice, _VALUES[c.type]) for c in table.columns)


def history(dice: Dice, table: Table, rounds: int) -> tuple[list[Moment], list[bool]]:
    """A source's moments, the last one repeated without a change; and which rounds only grew."""
    contents = [row(dice, table) for _ in range(dice.number(0, 5))]
    if contents and chance(dice, 40):
        contents.append(pick(dice, contents))
    moments = [Moment(list(contents), reading(dice, table, contents))]
    grew = []
    for _ in range(rounds):
        only_inserts = chance(dice, 20)
        change = changes(dice, table, contents, only_inserts=only_inserts)
        moments.append(Moment(list(contents), reading(dice, table, contents), change))
        grew.append(all(weight > 0 for _, weight in change))
    moments.append(Moment(list(contents), reading(dice, table, contents)))
    return moments, grew


def changes(dice: Dice, table: Table, contents: list[Row], *, only_inserts: bool) -> list[Weighted]:
    """Change the contents in place; what the change feed says of it, sometimes netted."""
    found: list[Weighted] = []
    if chance(dice, 25):
        return found
    if not contents and chance(dice, 60):
        for _ in range(dice.number(2, 4)):
            _insert(contents, found, row(dice, table))
    for _ in range(dice.number(1, 3)):
        kind = "insert" if only_inserts or not contents else pick(dice, _KINDS)
        _apply(dice, table, contents, found, kind)
    if chance(dice, 25):
        return netted_change(found)
    return found


_KINDS = ("insert", "delete", "update", "update one", "reinsert", "detour", "copy", "empty")


def _apply(dice: Dice, table: Table, contents: list[Row], found: list[Weighted], kind: str) -> None:
    """One change of the contents, written down as a feed would."""
    if kind == "insert":
        _insert(contents, found, row(dice, table))
        return
    if kind == "detour":
        passing = row(dice, table)
        found.extend([(passing, 1), (passing, -1)])
        return
    if not contents:
        return
    old = pick(dice, contents)
    match kind:
        case "copy":
            _insert(contents, found, old)
        case "delete":
            _delete(contents, found, old)
        case "empty":
            for gone in list(contents):
                _delete(contents, found, gone)
        case "reinsert":
            _delete(contents, found, old)
            _insert(contents, found, old)
        case "update":
            _delete(contents, found, old)
            _insert(contents, found, row(dice, table))
        case "update one":
            _delete(contents, found, old)
            place = dice.number(0, len(old) - 1)
            new = row(dice, table)[place]
            _insert(contents, found, (*old[:place], new, *old[place + 1 :]))


def _insert(contents: list[Row], found: list[Weighted], new: Row) -> None:
    contents.append(new)
    found.append((new, 1))


def _delete(contents: list[Row], found: list[Weighted], old: Row) -> None:
    contents.remove(old)
    found.append((old, -1))


def netted_change(change: Sequence[Weighted]) -> list[Weighted]:
    """The same change with one weight a row."""
    totals: Counter[Row] = Counter()
    for values, weight in change:
        totals[values] += weight
    return [(values, total) for values, total in totals.items() if total]


def reading(dice: Dice, table: Table, contents: Sequence[Row]) -> list[Weighted]:
    """What the engine reads: a trace adds copies that it takes back, in pieces."""
    found: list[Weighted] = [(values, 1) for values in contents]
    if table.kind == "trace":
        for _ in range(dice.number(0, 2)):
            passing = pick(dice, contents) if contents and chance(dice, 50) else row(dice, table)
            if chance(dice, 30):
                found += [(passing, 1), (passing, 1), (passing, -2)]
            else:
                found += [(passing, 1), (passing, -1)]
    return found
