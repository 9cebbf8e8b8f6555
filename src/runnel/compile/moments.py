"""Variances, covariances and what follows from them, of exact numbers: sums, and a formula.

Kept are n, Σx, Σy, Σxx, Σyy and Σxy, of decimals without their point, so that all are whole. Then

    p = round(Σx / n)    a whole number next to the mean
    r = Σx - n p         by how much the mean is beyond it, n times
    Σ(x - mean)²                  = Σxx - p (Σx + r)   - r² / n
    Σ(x - mean of x)(y - of y)    = Σxy - p Σy - q r   - r s / n      (q and s of y as p and r of x)

What stands before the last minus is exact, and no longer than Σxx or Σxy can be. Only then it
becomes a double: as |r| is at most n / 2, r² / n is at most half of it, and nothing is lost that
large numbers with a small spread lose otherwise. Equal values have a spread of exactly 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import sqlglot
from sqlglot import exp

from runnel.algebra.scalar import Scalar
from runnel.compile.dialect import SparkSql
from runnel.compile.in_order import finish_of
from runnel.compile.lifting import fill
from runnel.compile.scalars import mark, to_scalar
from runnel.compile.typing import decimal_parts
from runnel.model.columns import Column

_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10}
# A square has twice as many digits, and of those that sums add up exactly there are 27.
_MAX_DIGITS = 13
# Which sums the parts of a formula are made of.
_MADE_OF = {
    "n": ("n",),
    "ax": ("n", "x"),
    "ay": ("n", "y"),
    **dict.fromkeys(("m2", "xx"), ("n", "x", "xx")),
    "yy": ("n", "y", "yy"),
    "ck": ("n", "x", "y", "xy"),
}
_SUMS = ("n", "x", "y", "xx", "yy", "xy")


@dataclass(frozen=True, slots=True)
class _Number:
    """An argument: its mark, its type, its digits, and how many of them are behind the point."""

    mark: str
    type: str
    digits: int
    scale: int

    @property
    def whole_type(self) -> str:
        return f"decimal({self.digits},0)"

    def whole(self, type_: str) -> str:
        """The number without its point."""
        point = f" * CAST({10**self.scale} AS DECIMAL(20, 0))" if self.scale else ""
        return f"CAST({self.mark}{point} AS {type_})"


_Numbers = Mapping[str, _Number]
"""x, and y of a pair."""


def has_sums(function: str, types: Sequence[str]) -> bool:
    """Whether a function of arguments of these types can be kept by sums."""
    return finish_of(function) is not None and all(_digits(t) is not None for t in types)


def sums_of(function: str, arguments: Sequence[Column]) -> dict[str, Column]:
    """What is added up, by the name of its sum: expressions over the arguments, and their types."""
    types = tuple(a.type for a in arguments)
    marks = {f"arg{i}": mark(a.name) for i, a in enumerate(arguments)}
    return {
        name: Column(str(to_scalar(fill(added, marks))), type_)
        for name, (added, type_) in _added(function, types).items()
    }


def formula(function: str, types: tuple[str, ...], columns: Mapping[str, str]) -> Scalar:
    """The value over columns that hold the sums."""
    marks = {name: mark(column) for name, column in columns.items()}
    return to_scalar(fill(_formula(function, types), marks))


def written_out(function: str, arguments: Sequence[exp.Expr], types: tuple[str, ...]) -> exp.Expr:
    """The same value as one expression over the rows of a group."""
    given = {f"arg{i}": exp.paren(argument) for i, argument in enumerate(arguments)}
    sums: dict[str, exp.Expr] = {}
    for name, (added, _) in _added(function, types).items():
        call = exp.Count if name == "n" else exp.Sum
        sums[name] = call(this=fill(added, given))
    return fill(_formula(function, types), sums)


def _digits(type_: str) -> tuple[int, int] | None:
    parts = (_WHOLE[type_], 0) if type_ in _WHOLE else decimal_parts(type_)
    return parts if parts is not None and parts[0] <= _MAX_DIGITS else None


def _numbers(types: tuple[str, ...]) -> _Numbers:
    """SQL has f(x), or f(y, x)."""
    found = {}
    for name, place in zip("xy", reversed(range(len(types))), strict=False):
        digits = _digits(types[place])
        assert digits is not None
        found[name] = _Number(f"__rnmark_arg{place}__", types[place], *digits)
    return found


@cache
def _added(function: str, types: tuple[str, ...]) -> dict[str, tuple[exp.Expr, str]]:
    numbers = _numbers(types)
    found = {name: _adds(name, numbers) for name in _needed(function)}
    return {name: (_parsed(text), type_) for name, (text, type_) in found.items()}


def _adds(name: str, numbers: _Numbers) -> tuple[str, str]:
    """What one of the sums adds for a row; NULL where a number of the pair is missing."""
    letters = name.replace("n", "x")
    text, type_ = (
        _adds_one(name, numbers[letters]) if len(letters) == 1 else _product(name, numbers)
    )
    missing = [number.mark for letter, number in numbers.items() if letter not in letters]
    return (f"CASE WHEN NOT {missing[0]} IS NULL THEN {text} END" if missing else text), type_


def _adds_one(name: str, number: _Number) -> tuple[str, str]:
    if name == "n" or not number.scale:
        return number.mark, number.type
    return number.whole(number.whole_type), number.whole_type


def _product(name: str, numbers: _Numbers) -> tuple[str, str]:
    one, other = (numbers[letter] for letter in name)
    type_ = f"decimal({one.digits + other.digits},0)"
    # One of them has room for both: a product of two short decimals is short in DuckDB.
    return f"CAST({one.whole(type_)} * {other.whole(other.whole_type)} AS {type_})", type_


@cache
def _formula(function: str, types: tuple[str, ...]) -> exp.Expr:
    """Over the marks of the sums, each of which is named once, or twice for a mean."""
    numbers = _numbers(types)
    finish = finish_of(function)
    assert finish is not None
    sums = ", ".join(_given(name, numbers) for name in _needed(function))
    parts = ", ".join(f"{_PARTS[p](numbers)} AS {p}" for p in _parts(function))
    return _parsed(
        f"TRANSFORM(TRANSFORM(ARRAY(STRUCT({sums})), __m -> STRUCT({parts})), __f -> {finish})[0]"
    )


def _given(name: str, numbers: _Numbers) -> str:
    rows = "CAST(NULLIF(__rnmark_n__, 0) AS DECIMAL(20, 0))"
    if name == "n":
        return f"{rows} AS n"
    total = f"CAST(__rnmark_{name}__ AS DECIMAL(38, 0))"
    if len(name) == 2:
        return f"{total} AS {name}"
    near = f"CAST(ROUND({total} / {rows}) AS DECIMAL({numbers[name].digits + 1}, 0))"
    return f"{total} AS {name}, {near} AS near_{name}"


def _needed(function: str) -> tuple[str, ...]:
    wanted = {name for part in _parts(function) for name in _MADE_OF[part]}
    return tuple(name for name in _SUMS if name in wanted)


def _parts(function: str) -> tuple[str, ...]:
    found = re.findall(r"__f\.(\w+)", finish_of(function) or "")
    return tuple(dict.fromkeys(found))


_ROWS = "CAST(__m.n AS DOUBLE)"


def _mean(name: str) -> Callable[[_Numbers], str]:
    def text(numbers: _Numbers) -> str:
        return f"CAST(__m.{name} AS DOUBLE) / ({_ROWS}{_scaled('*', numbers[name].scale)})"

    return text


def _spread(one: str, other: str) -> Callable[[_Numbers], str]:
    """Of one number, or of two together: the products of their distances from their means."""
    rest, near = f"(__m.{one} - __m.n * __m.near_{one})", f"__m.near_{one}"
    if one == other:
        exact, last = f"__m.{one}{one} - {near} * (__m.{one} + {rest})", rest
    else:
        last = f"(__m.{other} - __m.n * __m.near_{other})"
        exact = f"__m.{one}{other} - {near} * __m.{other} - __m.near_{other} * {rest}"
    beyond = f"CAST({rest} AS DOUBLE) * CAST({last} AS DOUBLE) / {_ROWS}"

    def text(numbers: _Numbers) -> str:
        scale = numbers[one].scale + numbers[other].scale
        return f"(CAST({exact} AS DOUBLE) - {beyond}){_scaled('/', scale)}"

    return text


def _scaled(operator: str, scale: int) -> str:
    return f" {operator} CAST({10**scale} AS DOUBLE)" if scale else ""


_PARTS: dict[str, Callable[[_Numbers], str]] = {
    "n": lambda _: _ROWS,
    "ax": _mean("x"),
    "ay": _mean("y"),
    **dict.fromkeys(("m2", "xx"), _spread("x", "x")),
    "yy": _spread("y", "y"),
    "ck": _spread("x", "y"),
}


def _parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect=SparkSql)
