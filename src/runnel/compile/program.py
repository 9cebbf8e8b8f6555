"""A change program: named SQL steps over pinned readings. Data: explained, executed, tested alike.

Text refers to what it reads by tokens, which the executor replaces:

    ⟦new:source⟧     the source's contents at the new version: its columns and its weight
    ⟦near:source⟧    the same, but rows may be missing that the step's `near` does not speak of
    ⟦change:source⟧  its change in the window: its columns and its weight, not netted
    ⟦state⟧          the trace's own contents: stored columns, `__weight`, `__epoch`, unconsolidated
    ⟦step:name⟧      another step
    ⟦last⟧, ⟦all⟧    in a step that is run in rounds: the rows of the last round, of all so far
    ⟦hint:a:name⟧    a broadcast hint for alias a, if step `name` turns out small
    ⟦hint:a:name:b⟧  ... or one for alias b, if the step was not kept since it meets little
    ⟦hint:a:name:b:other⟧  a hint for the alias of the smaller of two steps, if that is small

The weight is called `__w`; `weight_of` gives its name in readings of a source with such a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from runnel.compile.near import Near
from runnel.model.columns import Column

TOKEN = re.compile(r"⟦([^⟧]*)⟧")
W = "__w"


def weight_of(columns: Iterable[str]) -> str:
    """What the readings of a source with these columns call the weight."""
    taken = {name.lower() for name in columns}
    name = W
    while name in taken:
        name += "_"
    return name


def new_of(source: str) -> str:
    return f"⟦new:{source}⟧"


def near_of(source: str) -> str:
    return f"⟦near:{source}⟧"


def change_of(source: str) -> str:
    return f"⟦change:{source}⟧"


def step_of(name: str) -> str:
    return f"⟦step:{name}⟧"


def hint(alias: str, name: str, other: str | None = None) -> str:
    return f"⟦hint:{alias}:{name}{f':{other}' if other else ''}⟧"


def smaller(alias: str, name: str, other_alias: str, other: str) -> str:
    return f"⟦hint:{alias}:{name}:{other_alias}:{other}⟧"


STATE = "⟦state⟧"
LAST, ALL = "⟦last⟧", "⟦all⟧"
NEW = "__new"


class Keep(StrEnum):
    """Whether a step's rows are kept while the program runs, which costs a job of its own."""

    NEVER = "never"
    ALWAYS = "materialised"
    """What follows depends on how many rows there are."""
    SHARED = "materialised unless small"
    """Several steps read it; reading a small change again is cheaper."""
    SIZED = "materialised if it meets much"
    """Its size decides how it is joined with the sources it `meets`; small ones are sent to it."""
    PICKING = "materialised unless the stored state is small"
    """It picks rows of the stored state, of which a small one is read as a whole."""
    RESTRICTING = "materialised if it reads much"
    """It picks rows of the sources it `meets` for several steps; small ones are read by each."""


@dataclass(frozen=True, slots=True)
class Netted:
    """The change of a source, summed by some of its columns: `names`, as the source calls them."""

    source: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One named relation. `only_if` names a step that is always kept: when empty, so is this one.

    `bounds` are tokens whose rows together are no fewer than this one's; `meets` are sources, or
    tokens of what is near in them. With `again` it is run in
    rounds: `sql` is the first, `again` the next ones, which read ⟦last⟧ and ⟦all⟧; it has the rows
    of all rounds, and ends with the first round in which no row says `__new`. More than `max_level`
    rounds after the first are an error; where rows have a column `level`, so is one beyond it.
    `besides` counts the stored rows that stay and are not followed: they count for a bound of rows.
    `of_small` is what is run instead where `keep` says that something is small, or else when the
    stored state is.
    """

    name: str
    purpose: str
    sql: str
    columns: tuple[Column, ...]
    keep: Keep = Keep.NEVER
    only_if: str | None = None
    bounds: tuple[str, ...] = ()
    meets: frozenset[str] = frozenset()
    again: str | None = None
    max_level: int | None = None
    level: str | None = None
    besides: str | None = None
    of_small: str | None = None
    nets: Netted | None = None
    """What the text says, where it is nothing but that: a small change needs no Spark for it."""
    near: Near | None = None
    """What ⟦near:source⟧ must have in `sql`; `of_small` has no such token."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The tokens in the text, in order, hints left out."""
        text = self.sql + (self.again or "")
        return tuple(t for t in TOKEN.findall(text) if not t.startswith("hint:"))


@dataclass(frozen=True, slots=True)
class Program:
    """Steps in an order in which each reads only earlier ones; the last one is the output.

    The output has the trace's stored columns and `__weight`, netted. When step `empty_if_empty` has
    no rows, the output has none either, and need not be run.
    """

    steps: tuple[Step, ...]
    empty_if_empty: str | None = None

    @property
    def output(self) -> Step:
        return self.steps[-1]

    def step(self, name: str) -> Step:
        return next(s for s in self.steps if s.name == name)

    def __str__(self) -> str:
        return "\n\n".join(map(_printed, self.steps))


def _printed(step: Step) -> str:
    kept = f" ({step.keep})" if step.keep is not Keep.NEVER else ""
    rounds = f"\n-- and again, until a round gives nothing new\n{step.again}" if step.again else ""
    small = f"\n-- or, of a small one\n{step.of_small}" if step.of_small else ""
    near = f"\n-- near rows: {step.near}" if step.near is not None else ""
    return f"-- {step.name}: {step.purpose}{kept}{near}\n{step.sql}{rounds}{small}"
