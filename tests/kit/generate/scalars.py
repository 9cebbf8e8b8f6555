"""Random expressions over columns in sight, in a vocabulary that Spark and DuckDB read alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kit.generate.dice import Dice, chance, pick

INT, TEXT, DECIMAL, DOUBLE, BOOLEAN, DATE = "int", "string", "decimal", "double", "boolean", "date"
STAMP, ARRAY = "timestamp", "array"
FAMILIES = (INT, TEXT, DECIMAL, DOUBLE, BOOLEAN, DATE, STAMP, ARRAY)
LITERALS = {
    INT: ("0", "1", "2", "3", "-1"),
    TEXT: ("'a'", "'b'", "''"),
    DECIMAL: ("0.50", "1.25", "-1.00", "2.00"),
    DOUBLE: ("CAST(0.5 AS DOUBLE)", "CAST(1.5 AS DOUBLE)"),
    BOOLEAN: ("TRUE", "FALSE"),
    DATE: ("DATE '2024-01-01'", "DATE '2024-02-01'"),
    STAMP: ("TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP '1969-12-31 23:59:59.999999'"),
    ARRAY: ("ARRAY(1, 2)", "ARRAY(1)"),
}


@dataclass(frozen=True)
class Visible:
    """A column in sight: the text that names it, its family, and its scale if it is a decimal."""

    text: str
    family: str
    scale: int = 2


def column(dice: Dice, columns: Sequence[Visible], family: str) -> Visible | None:
    """A column of a family, if there is one."""
    fitting = [c for c in columns if c.family == family]
    return pick(dice, fitting) if fitting else None


def scalar(dice: Dice, columns: Sequence[Visible], family: str, depth: int = 1) -> str:
    """An expression of a family."""
    if depth == 0 or chance(dice, 60):
        found = column(dice, columns, family)
        if found is not None and not chance(dice, 8):
            return found.text
        return pick(dice, LITERALS[family])
    return _composed(dice, columns, family, depth - 1)


def _composed(dice: Dice, columns: Sequence[Visible], family: str, depth: int) -> str:
    def some(which: str = family) -> str:
        return scalar(dice, columns, which, depth)

    forms: list[Callable[[], str]] = [
        lambda: f"COALESCE({some()}, {pick(dice, LITERALS[family])})",
        lambda: f"CASE WHEN {predicate(dice, columns, depth)} THEN {some()} ELSE {some()} END",
        lambda: f"CASE WHEN {predicate(dice, columns, depth)} THEN {some()} END",
    ]
    match family:
        case "int":
            forms += [
                lambda: f"({some()} + {some()})",
                lambda: f"{some()} * 2",
                lambda: f"{some()} - 1",
                lambda: f"LENGTH({some(TEXT)})",
                lambda: f"({some()}) % 2",
            ]
        case "string":
            forms += [lambda: f"({some()} || {some()})", lambda: f"UPPER({some()})"]
        case "decimal":
            forms += [lambda: f"({some()} + {some()})", lambda: f"{some()} * 2"]
        case "double":
            forms += [lambda: f"{some()} * 2", lambda: f"({some(INT)}) / 2"]
        case "boolean":
            forms += [lambda: f"({predicate(dice, columns, depth)})"]
    return pick(dice, forms)()


def predicate(dice: Dice, columns: Sequence[Visible], depth: int = 1) -> str:
    """A condition over the columns."""
    family = pick(dice, [c.family for c in columns] or [INT])
    left = scalar(dice, columns, family, 0)

    def compare() -> str:
        operators = ("=", "<>", "<", ">=") if family != BOOLEAN else ("=", "<>")
        return f"{left} {pick(dice, operators)} {scalar(dice, columns, family, depth)}"

    forms: list[Callable[[], str]] = [
        compare,
        lambda: f"{left} IS NOT NULL",
        lambda: f"{left} IS NULL",
        lambda: f"{left} IN ({', '.join(LITERALS[family][:2])})",
        lambda: f"{left} <=> {scalar(dice, columns, family, 0)}",
    ]
    if depth > 0:
        forms += [
            lambda: f"({compare()} OR {predicate(dice, columns, depth - 1)})",
            lambda: f"{compare()} AND {predicate(dice, columns, depth - 1)}",
            lambda: f"NOT ({compare()})",
        ]
    return pick(dice, forms)()
