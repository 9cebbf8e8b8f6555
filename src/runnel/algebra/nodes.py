"""The operators. Immutable; the inputs of a join never have a column name in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from runnel.algebra.scalar import Scalar
from runnel.model.columns import Column


class JoinKind(StrEnum):
    LEFT = "left"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Scan:
    """A source read at a version: `names` are the source's own names of `columns`.

    `weight` is what its reading calls the weight: a name that no column of the source has.
    """

    source: str
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    weight: str

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class OneRow:
    """The single row without columns that a SELECT without FROM reads."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return ()

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Project:
    """Computes each column by itself from one input row."""

    input: Node
    items: tuple[tuple[Column, Scalar], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in self.items)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps the rows for which all conjuncts are true."""

    input: Node
    conjuncts: tuple[Scalar, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class InnerJoin:
    """A chain of inner joins: the product of all inputs, filtered."""

    inputs: tuple[Node, ...]
    conjuncts: tuple[Scalar, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for node in self.inputs for column in node.columns)


@dataclass(frozen=True, slots=True)
class OuterJoin:
    """LEFT or FULL; a RIGHT join is built as a LEFT join of the exchanged inputs."""

    kind: JoinKind
    left: Node
    right: Node
    conjuncts: tuple[Scalar, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns + self.right.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """The rows of `left` that have a partner in `right`; with `is_anti` those that have none."""

    left: Node
    right: Node
    conjuncts: tuple[Scalar, ...]
    is_anti: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Repeat:
    """Each row as often as `times` says, which it reads from the row; a filter is 0 or 1 times."""

    input: Node
    times: Scalar

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Generate:
    """Each row once for every row that a table function gives for it, which it is put before.

    With `is_outer` a row for which the function gives none stays, padded with NULLs.
    """

    input: Node
    function: Scalar
    generated: tuple[Column, ...]
    is_outer: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns + self.generated

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class UnionAll:
    """All rows of all inputs, matched by position."""

    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One aggregate function over input columns.

    NULL arguments never count, unless it has a `text`: then that is the whole expression, and
    `arguments` are the columns it reads. `in_order` is set where the last digits of the value
    depend on the order of the rows: the same in an order of its own.
    """

    function: str
    arguments: tuple[Column, ...]
    output: Column
    text: Scalar | None = None
    in_order: Scalar | None = None

    @property
    def is_in_order(self) -> bool:
        return self.in_order is not None and self.text == self.in_order


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Groups by `keys` (names of input columns). A global one has one group, also over no rows."""

    input: Node
    keys: tuple[str, ...]
    calls: tuple[Call, ...]
    is_global: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.key_columns + tuple(call.output for call in self.calls)

    @property
    def key_columns(self) -> tuple[Column, ...]:
        by_name = {c.name: c for c in self.input.columns}
        return tuple(by_name[k] for k in self.keys)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column that rows are ordered by."""

    column: str
    is_descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        direction = "DESC" if self.is_descending else "ASC"
        return f"{self.column} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A function over the rows of a partition, in an order, of which the frame chooses some."""

    function: Scalar
    order: tuple[SortKey, ...]
    frame: str
    output: Column

    @property
    def reads(self) -> frozenset[str]:
        return self.function.reads | {key.column for key in self.order}

    def over(self, partition: tuple[str, ...]) -> str:
        """The call as it is written over a partition."""
        parts = []
        if partition:
            parts.append(f"PARTITION BY {', '.join(partition)}")
        if self.order:
            parts.append(f"ORDER BY {', '.join(map(str, self.order))}")
        if self.frame:
            parts.append(self.frame)
        return f"{self.function} OVER ({' '.join(parts)})"


@dataclass(frozen=True, slots=True)
class Window:
    """Each row with what its partition says of it; `partition` are names of input columns."""

    input: Node
    partition: tuple[str, ...]
    calls: tuple[WindowCall, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns + tuple(call.output for call in self.calls)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class TopK:
    """The first rows in an order, after skipping some; of its columns, so that no two rows tie."""

    input: Node
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0

    @property
    def columns(self) -> tuple[Column, ...]:
        ordered = {key.column for key in self.order}
        return tuple(c for c in self.input.columns if c.name in ordered)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Recursive:
    """Inside the step of the Fixpoint called `name`: its own rows."""

    name: str
    columns: tuple[Column, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """R = base + step(R), the least; as sets when `is_distinct`. Columns match by position.

    More than `max_level` applications of the step, one upon the other, are an error. `level` is the
    column that says how many led to a row.
    """

    name: str
    base: Node
    step: Node
    columns: tuple[Column, ...]
    is_distinct: bool
    max_level: int | None = None
    level: str | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.base, self.step)


Node = (
    Scan
    | OneRow
    | Project
    | Filter
    | Repeat
    | Generate
    | InnerJoin
    | OuterJoin
    | SemiJoin
    | UnionAll
    | Aggregate
    | Window
    | TopK
    | Recursive
    | Fixpoint
)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    yield node
    for child in node.inputs:
        yield from walk(child)


def identity(columns: Iterable[Column]) -> tuple[tuple[Column, Scalar], ...]:
    """The items of a projection that keeps columns as they are."""
    return tuple((c, Scalar.column(c.name)) for c in columns)


def distinct(node: Node) -> Aggregate:
    """DISTINCT is grouping by every column."""
    return Aggregate(node, tuple(c.name for c in node.columns), ())
