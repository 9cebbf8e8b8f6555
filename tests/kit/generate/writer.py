"""What every part of a query's generator shares: choices, tables, fresh names, what was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kit.duck import Table
from kit.generate.dice import Dice, chance, pick
from kit.generate.scalars import ARRAY, BOOLEAN, DATE, DECIMAL, DOUBLE, INT, STAMP, TEXT, Visible

_FAMILIES = {
    "string": TEXT, "double": DOUBLE, "boolean": BOOLEAN, "date": DATE, "timestamp": STAMP,
    "array<int>": ARRAY,
}  # fmt: skip


@dataclass(frozen=True)
class Output:
    """A column of a query's result; `scale` matters for decimals."""

    name: str
    family: str
    scale: int = 2


@dataclass(frozen=True)
class Query:
    """Text, and what it gives."""

    text: str
    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class Item:
    """Something in a FROM clause: its text, alias and columns."""

    text: str
    alias: str
    outputs: tuple[Output, ...]


@dataclass
class Writer:
    """The state of writing one query. `scales` collects the scale of every decimal column by name.

    `for_spark`: only what Spark itself can run. `room`: how many queries more it may hold, so that
    deep ones do not become wide as well.
    """

    dice: Dice
    tables: Sequence[Table]
    for_spark: bool = False
    room: int = 100
    names: int = 0
    scales: dict[str, int] = field(default_factory=dict)
    ctes: list[tuple[str, Query]] = field(default_factory=list)

    def pick(self, *choices: str) -> str:
        return pick(self.dice, choices)

    def chance(self, percent: int) -> bool:
        return chance(self.dice, percent)

    def asks(self, percent: int) -> bool:
        """Whether there shall be another query inside; True so often as long as there is room."""
        return self.room > 0 and self.chance(percent)

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def output(self, family: str, scale: int, name: str | None = None) -> Output:
        """A column with a name of its own, so that a name says which scale it has."""
        made = Output(name or self.fresh("x"), family, scale)
        self.note(made)
        return made

    def note(self, output: Output) -> None:
        if output.family == DECIMAL:
            self.scales[output.name] = output.scale

    def spelled(self, name: str) -> str:
        """Names are case-insensitive."""
        return name.upper() if self.chance(5) else name

    def renamed(self, outputs: Sequence[Output]) -> tuple[Output, ...]:
        """The same columns under new names, for a column alias list."""
        made = tuple(replace(o, name=self.fresh("z")) for o in outputs)
        for output in made:
            self.note(output)
        return made


def family_of(type_: str) -> str:
    """The family of a column's type."""
    if type_.startswith("decimal"):
        return DECIMAL
    return _FAMILIES.get(type_, INT)


def in_sight(items: Sequence[Item], *, qualified: bool = False) -> list[Visible]:
    """Columns of FROM items, with a qualifier where their name alone would be ambiguous."""
    names = [o.name.lower() for item in items for o in item.outputs]
    found = []
    for item in items:
        for output in item.outputs:
            must = qualified or names.count(output.name.lower()) > 1
            text = f"{item.alias}.{output.name}" if must else output.name
            found.append(Visible(text, output.family, output.scale))
    return found


def bare(text: str) -> str:
    """A column reference without its qualifier."""
    return text.rpartition(".")[2]
