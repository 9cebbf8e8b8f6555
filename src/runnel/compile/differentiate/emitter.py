"""What every law needs: the readings of a node, and the list of steps being written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from runnel.algebra.nodes import Aggregate, Filter, Node, Project, TopK
from runnel.algebra.scalar import Scalar
from runnel.compile.near import Near
from runnel.compile.program import Keep, Netted, Step, W, step_of
from runnel.model.columns import Column


@dataclass(frozen=True, slots=True)
class Reading:
    """SQL text giving a node's columns and `__w`. `is_unit`: every weight is 1: plain SQL holds."""

    sql: str
    is_unit: bool


@dataclass
class Emitter:
    """Writes the steps of one program.

    `changed` are the sources with a change in the window, `growing` those of them that only grew,
    `shared` the nodes that stand in the tree more than once, `sizes` how large sources are.
    `is_shared`: a reading may be one that several programs share (see nearness).
    """

    kinds: Mapping[str, str]
    changed: frozenset[str]
    growing: frozenset[str]
    new_law: Callable[[Emitter, Node], Reading]
    change_law: Callable[[Emitter, Node], str | None]
    shared: tuple[Node, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    steps: dict[str, Step] = field(default_factory=dict)
    _changes: dict[Node, str | None] = field(default_factory=dict)
    _wholes: dict[Node, Reading] = field(default_factory=dict)
    walks: dict[tuple[Node, str], str] = field(default_factory=dict)
    prefix: str = ""
    is_shared: bool = False

    def new(self, node: Node) -> Reading:
        """new(N), weighted."""
        if not self._is_whole(node):
            return self.new_law(self, node)
        if node not in self._wholes:
            self._wholes[node] = self._whole(node)
        return self._wholes[node]

    def _is_whole(self, node: Node) -> bool:
        """Whether all of new(N) is worth a step of its own: few rows that take many to compute.

        One row or the first ones always need all of their input. A grouping that the query reads
        more than once is computed once, instead of by each reader for the groups it asks for.
        """
        if not self.changed:
            return False
        if isinstance(node, Aggregate) and node.is_global:
            return True
        return isinstance(node, TopK) or (_is_grouped(node) and any(node is s for s in self.shared))

    def _whole(self, node: Node) -> Reading:
        reading = self.new_law(self, node)
        name = self.add("whole", "all rows of a part, computed once", reading.sql, node.columns)
        sql = f"SELECT {listed(names_of(node.columns), W)} FROM {step_of(name)}"
        return Reading(sql, reading.is_unit)

    def change(self, node: Node) -> str | None:
        """The name of the step that gives change(N), or None when nothing below N changed."""
        if node not in self._changes:
            self._changes[node] = self.change_law(self, node)
        return self._changes[node]

    def old(self, node: Node) -> Reading:
        """old(N) = new(N) - change(N): one scan, no time travel."""
        return self.before(node, self.new(node))

    def before(self, node: Node, new: Reading) -> Reading:
        """A reading of new(N), or of some of it, without what changed."""
        change = self.change(node)
        if change is None:
            return new
        names = names_of(node.columns)
        sql = (
            f"SELECT {listed(names, W)} FROM ({new.sql})\nUNION ALL\n"
            f"SELECT {listed(names)}{', ' if names else ''}-{W} AS {W} FROM {step_of(change)}"
        )
        return Reading(sql, is_unit=False)

    def add(
        self,
        stem: str,
        purpose: str,
        sql: str,
        columns: Iterable[Column],
        *,
        keep: Keep = Keep.NEVER,
        only_if: str | None = None,
        bounds: Iterable[str] = (),
        meets: frozenset[str] = frozenset(),
        again: str | None = None,
        max_level: int | None = None,
        level: str | None = None,
        besides: str | None = None,
        of_small: str | None = None,
        nets: Netted | None = None,
        near: Near | None = None,
    ) -> str:
        """Append a step under a name of its own."""
        name = stem = f"{self.prefix}{stem}"
        number = 2
        while name in self.steps:
            name, number = f"{stem}_{number}", number + 1
        self.steps[name] = Step(
            name, purpose, sql, tuple(columns), keep, only_if, tuple(bounds), meets,
            again=again, max_level=max_level, level=level, besides=besides, of_small=of_small,
            nets=nets, near=near,
        )  # fmt: skip
        return name

    def rename_last(self, name: str) -> str | None:
        """Call the last step something else, before anything reads it; None when there is none."""
        if not self.steps:
            return None
        _, step = self.steps.popitem()
        return self.add(name, step.purpose, step.sql, step.columns, only_if=step.only_if)

    def keep(self, name: str) -> None:
        """Keep a step's rows: what follows depends on how many there are."""
        self.steps[name] = replace(self.steps[name], keep=Keep.ALWAYS)

    def keep_if_meeting(self, name: str, sources: frozenset[str]) -> None:
        """Keep a step's rows if one of the readings it is joined with next is large."""
        step = self.steps[name]
        if step.keep in (Keep.NEVER, Keep.SIZED):
            self.steps[name] = replace(step, keep=Keep.SIZED, meets=step.meets | sources)

    def keep_if_reading(self, name: str, sources: frozenset[str]) -> None:
        """Keep a step's rows for several readers if one of the sources below it is large."""
        self.steps[name] = replace(self.steps[name], keep=Keep.RESTRICTING, meets=sources)


def _is_grouped(node: Node) -> bool:
    while isinstance(node, (Project, Filter)):
        node = node.input
    return isinstance(node, Aggregate)


def names_of(columns: Iterable[Column]) -> list[str]:
    return [c.name for c in columns]


def listed(names: Iterable[str], *more: str) -> str:
    return ", ".join([*names, *more])


def condition(conjuncts: Iterable[Scalar]) -> str:
    """Conjuncts as SQL; no conjunct is TRUE.

    One word stands without parentheses: Spark takes `FROM (...) WHERE (FALSE)` for an alias.
    """
    texts = [str(c) for c in conjuncts]
    if len(texts) == 1 and texts[0].isidentifier():
        return texts[0]
    return " AND ".join(f"({text})" for text in texts) or "TRUE"


def consolidated(sql: str, names: list[str], having: str = "<> 0", weight: str = W) -> str:
    """Sum the weights of equal rows."""
    group = f"\nGROUP BY {listed(names)}" if names else ""
    rows = f"SELECT {listed(names, f'SUM({weight}) AS {weight}')} FROM ({sql}){group}"
    # Not HAVING: where a change is read twice, Spark takes its column for that of the other place.
    return f"SELECT * FROM ({rows}) WHERE {weight} {having}"


def unit_rows(reading: Reading, names: list[str]) -> str:
    """Each row as often as it counts, for functions that look at rows; no weight."""
    if reading.is_unit:
        return f"SELECT {listed(names)} FROM ({reading.sql})"
    present = consolidated(reading.sql, names, "> 0")
    return f"SELECT {listed(names)} FROM ({repeated(present, names)})"


def repeated(sql: str, names: list[str], weight: str = W) -> str:
    """Each row as often as its weight says, which must be positive."""
    return f"SELECT {listed(names, _copies(weight))} FROM ({sql})"


def _copies(weight: str) -> str:
    """The select item that gives a row as often as its weight says."""
    return f"EXPLODE(ARRAY_REPEAT(1, CAST({weight} AS INT))) AS __copy"
