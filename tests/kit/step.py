"""Step files: tables, a query, then rounds of changes with what must come of them.

    -- a comment, to the end of the line (at the start of a line only)
    table orders (id bigint, cust int, amount decimal(12,2))
      1 | 10 | 5.00
      2 | 10 | null
    table names (id int, name string) kind trace
      10 | 'Ann'

    query
      SELECT ...                     every indented line up to the next keyword

    round the last order goes        the words are a label
      insert orders 3 | 11 | 1.50
      delete orders 1 | 10 | 5.00
      update orders 2 | 10 | null -> 2 | 11 | null
      commit                         what follows is another commit before the refresh
      expect DIFFERENTIAL            the action taken; `A or B` where either will do
      rows                           optional: the contents afterwards, in any order
        11 | 'x'
      fails more than one row        instead of the two above: the refresh fails, says so, and changes nothing

After the column list a table may say `keyless` (rows may occur more than once, so a backend must change one
copy at a time and not all that match) and `kind trace` (a stream table upstream, whose reading is not
consolidated; a backend that has none uses a plain table). `rows none` asserts an empty result.
A first line `refuse ...` instead of rounds says that the query cannot be kept differentially, and names the
construct. Values: null, true, false, numbers, 'text' (quotes doubled), dates and timestamps as quoted text,
[1, null] for arrays.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from kit.bags import Row
from runnel.model.columns import Column

_TABLE = re.compile(r"table\s+(\S+)\s*\((.*)\)\s*((?:\s*(?:keyless|kind\s+\w+))*)$")
_VALUE = re.compile(r"\s*(\[[^\]]*\]|'(?:[^']|'')*'|[^'|]*?)\s*(\||$)")
_TYPES = re.compile(r"(`[^`]+`|\w+)\s+([^,(<]+(?:\([^)]*\)|<.*?>)?)\s*(?:,|$)")

ON_SPARK = ("as_spark_does", "expressions")
"""Folders of step files that mean something else, or nothing, outside Spark."""


@dataclass
class TableSpec:
    """A source table and what it holds at first."""

    name: str
    columns: tuple[Column, ...]
    kind: str = "delta"
    keyless: bool = False
    rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Change:
    """One row that goes and one that comes; either may be missing."""

    table: str
    old: Row | None
    new: Row | None


@dataclass
class StepRound:
    """Commits between two refreshes, and what the refresh must do."""

    label: str
    commits: list[list[Change]] = field(default_factory=lambda: [[]])
    actions: tuple[str, ...] = ("DIFFERENTIAL",)
    rows: list[Row] | None = None
    failure: str | None = None


@dataclass
class StepFile:
    """A parsed step file."""

    name: str
    tables: dict[str, TableSpec] = field(default_factory=dict)
    query: str = ""
    rounds: list[StepRound] = field(default_factory=list)
    refusal: str | None = None


class StepError(ValueError):
    """The step file cannot be read."""


def parse_step(path: Path) -> StepFile:
    """Read a step file."""
    return _Parser(path.stem.replace("_", " "), path.read_text()).parse()


class _Parser:
    def __init__(self, name: str, text: str) -> None:
        self.file = StepFile(name)
        self.lines = list(_lines(text))
        self.section = ""

    def parse(self) -> StepFile:
        for number, line in self.lines:
            try:
                self._line(line)
            except (ValueError, KeyError, IndexError, ArithmeticError) as error:
                raise StepError(
                    f"{self.file.name}, line {number}: {error} in {line.strip()!r}"
                ) from error
        if not self.file.query or not (self.file.rounds or self.file.refusal):
            raise StepError(f"{self.file.name}: a query and at least one round are needed")
        return self.file

    def _line(self, line: str) -> None:
        if not line.startswith(" "):
            self._head(line)
        elif self.section == "query":
            self.file.query += line + "\n"
        elif self.section.startswith("table"):
            table = self._table(self.section.split()[1])
            table.rows.append(parse_row(line, table.columns))
        elif self.section == "round":
            self._in_round(line.strip())
        elif self.section == "rows":
            self._expected(line)
        else:
            raise ValueError("nothing opens this line")

    def _head(self, line: str) -> None:
        word = line.split(maxsplit=1)[0]
        match word:
            case "table":
                table = _parse_table(line)
                self.file.tables[table.name.lower()] = table
                self.section = f"table {table.name}"
            case "query":
                self.section = "query"
            case "round":
                self.file.rounds.append(StepRound(line[len("round") :].strip()))
                self.section = "round"
            case "refuse":
                self.file.refusal = line[len("refuse") :].strip()
            case _:
                raise ValueError(f"{word!r} is not a keyword")

    def _in_round(self, line: str) -> None:
        current = self.file.rounds[-1]
        word, _, rest = line.partition(" ")
        match word:
            case "insert" | "delete" | "update":
                current.commits[-1].append(self._change(word, rest.strip()))
            case "commit":
                current.commits.append([])
            case "expect":
                current.actions = tuple(rest.strip().split(" or "))
            case "fails":
                current.failure = rest.strip()
            case "rows":
                current.rows = []
                self.section = "round" if rest.strip() == "none" else "rows"
            case _:
                raise ValueError(f"{word!r} is not a keyword of a round")

    def _change(self, word: str, rest: str) -> Change:
        name, _, values = rest.partition(" ")
        columns = self._table(name).columns
        if word == "insert":
            return Change(name, None, parse_row(values, columns))
        if word == "delete":
            return Change(name, parse_row(values, columns), None)
        old, new = values.split("->")
        return Change(name, parse_row(old, columns), parse_row(new, columns))

    def _expected(self, line: str) -> None:
        rows = self.file.rounds[-1].rows
        assert rows is not None
        rows.append(tuple(_literal(text) for text in split_values(line)))

    def _table(self, name: str) -> TableSpec:
        return self.file.tables[name.lower()]


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("--"):
            yield number, line.rstrip()


def _parse_table(line: str) -> TableSpec:
    match = _TABLE.match(line)
    if match is None:
        raise ValueError("expected: table name (column type, ...)")
    name, body, words = match.groups()
    columns = tuple(
        Column(column.strip("`"), type_.strip().replace(", ", ","))
        for column, type_ in _TYPES.findall(body)
    )
    kind = re.search(r"kind\s+(\w+)", words)
    return TableSpec(name, columns, kind.group(1) if kind else "delta", "keyless" in words)


def parse_row(text: str, columns: tuple[Column, ...]) -> Row:
    """Values separated by bars, read by the columns' types."""
    values = split_values(text)
    if len(values) != len(columns):
        raise ValueError(f"expected {len(columns)} values, found {len(values)}")
    return tuple(_typed(v, c.type) for v, c in zip(values, columns, strict=True))


def split_values(text: str) -> list[str]:
    """The values of a row as they are written."""
    found, position, text = [], 0, text.strip()
    while True:
        match = _VALUE.match(text, position)
        if match is None:
            raise ValueError("expected values separated by |")
        found.append(match.group(1))
        position = match.end()
        if match.group(2) != "|":
            return found


def _literal(text: str) -> Any:
    """A value whose type the text itself shows."""
    words = {"null": None, "true": True, "false": False, "nan": float("nan")}
    if text.lower() in words:
        return words[text.lower()]
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    return Decimal(text)


def _typed(text: str, type_: str) -> Any:
    if text.startswith("["):
        inner, items = type_.removeprefix("array<")[:-1], text[1:-1].strip()
        return [_typed(item.strip(), inner) for item in items.split(",")] if items else []
    value = _literal(text) if text.lower() not in ("infinity", "-infinity") else float(text)
    if value is None or isinstance(value, bool):
        return value
    match type_:
        case "tinyint" | "smallint" | "int" | "bigint":
            return int(value)
        case "float" | "double":
            return float(value)
        case "date":
            return datetime.date.fromisoformat(value)
        case "timestamp" | "timestamp_ntz":
            return datetime.datetime.fromisoformat(value)
        case _:
            return value
