"""Window functions in a SELECT: each becomes a column of a Window over the SELECT's rows.

Rows that tie in a window's order are ordered further by the columns that the SELECT computes with,
wherever that decides something: rows equal in all of them cannot be told apart in the result. But
of two windows with different orders each has a place for every copy, so copies are numbered first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.algebra.nodes import (
    Aggregate,
    Filter,
    Node,
    Project,
    SortKey,
    Window,
    WindowCall,
    identity,
)
from runnel.algebra.scalar import Scalar, wrap
from runnel.compile.in_frame import by_value, fold_over, is_mixed, ordered_by
from runnel.compile.places import at
from runnel.compile.rewrites.numbered_copies import COPY, numbered
from runnel.compile.scalars import column_type, mark, to_scalar
from runnel.compile.scope import Scope
from runnel.compile.typing import is_orderable
from runnel.compile.unnest.lookup import same_in_all_rows
from runnel.compile.window_forms import (
    Digits,
    digits_of,
    is_by_copy,
    is_by_place,
    is_open,
    is_running,
    order_of,
    refuse_unrepeatable,
    shown,
    window_function,
)
from runnel.errors import NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder

Spell = Callable[[str], exp.Expr | None]
_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_UP_TO_HERE = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def attach_windows(
    builder: Builder, node: Node, expressions: list[exp.Expr], spell: Spell, text: SelectText
) -> tuple[Node, list[exp.Expr]]:
    """The rows with a column for each window function, and the expressions reading these.

    `spell` says how the query's text calls a column, if it can.
    """
    windows = list(dict.fromkeys(w for e in expressions for w in _windows(e)))
    if not windows:
        return node, expressions
    # What a subquery gave to all rows alike orders none of them, and may have no name.
    own = {c.name for c in node.columns} - same_in_all_rows(node)
    ties = list(dict.fromkeys(n for e in expressions for n in to_scalar(e).columns if n in own))
    places = [w for e in expressions for w in _windows(e)]
    attached = _Attached(builder, node, ties, spell)
    by_copy = [w for w in windows if is_by_copy(w)]
    if len({_spec(w) for w in by_copy}) > 1:
        attached.tell_copies_apart(by_copy[0], text)
    values: dict[exp.Window, exp.Expr] = {}
    for window in windows:
        with at(window):
            values[window] = attached.add(window, [p for p in places if p == window])
    return attached.node, [_replaced(e, values) for e in expressions]


@dataclass(frozen=True, slots=True)
class SelectText:
    """The SELECT as it is written, and what its FROM clause brings into sight."""

    select: exp.Select
    scope: Scope


@dataclass
class _Attached:
    """The rows so far; windows of one partition share a node where they follow each other.

    `number` is the column that tells copies apart, where they are numbered.
    """

    builder: Builder
    node: Node
    ties: list[str]
    spell: Spell
    number: str | None = None
    made: list[Column] = field(default_factory=list)
    places: dict[tuple[tuple[str, ...], tuple[SortKey, ...]], str] = field(default_factory=dict)

    def tell_copies_apart(self, first: exp.Window, text: SelectText) -> None:
        """By the keys of groups, or by a number for each of the rows that are equal."""
        keys = _group_keys(self.node)
        if keys is not None:
            self.ties += [key for key in keys if key not in self.ties]
        elif self.ties:
            spelled = [self._spelled(name, first) for name in self.ties]
            self.builder.ties.number_copies(text.select, numbered(text.select, text.scope, spelled))
            # Numbered within the partitions of a window, so that it asks for no others.
            partition = tuple(self._column(e) for e in first.args.get("partition_by") or [])
            order = tuple(SortKey(name) for name in self.ties)
            self.number = self._call(partition, Scalar.constant("ROW_NUMBER()"), order, "").name

    def add(self, window: exp.Window, places: list[exp.Window]) -> exp.Expr:
        """The value of a window function, as an expression over columns."""
        partition = tuple(self._column(e) for e in window.args.get("partition_by") or [])
        order = tuple(self._key(o) for o in order_of(window))
        frame = window.args["spec"].sql("spark") if window.args.get("spec") else ""
        refuse_unrepeatable(window)
        if is_by_place(window):
            placed = self._by_value(window, partition, order, places)
            return self._each(placed, partition, order, frame)
        if is_open(window):
            order += self._completed(window, order, places)
        elif self._is_inexact(window) and order:
            if not is_running(window):
                return self._each(self._folded(window, places), partition, order, frame)
            return mark(self._to_last_peer(window, partition, order).name)
        elif self._is_inexact(window):
            order, frame = self._in_one_order()
        return mark(self._call(partition, to_scalar(window.this), order, frame).name)

    def _by_value(
        self,
        window: exp.Window,
        partition: tuple[str, ...],
        order: tuple[SortKey, ...],
        places: list[exp.Window],
    ) -> exp.Expr:
        ties = self._completing(window, order)
        for place in places:
            self.builder.ties.write_as(place, partial(by_value, ties=[text for _, text in ties]))
        if not is_mixed(window):
            return by_value(window, [mark(name) for name, _ in ties])
        complete = (*order, *(SortKey(name) for name, _ in ties))
        return by_value(ordered_by(window, mark(self._place(partition, complete))), [])

    def _place(self, partition: tuple[str, ...], order: tuple[SortKey, ...]) -> str:
        """A column with the place of each row in a complete order, made once for each of them.

        Copies of a row are told apart by it, and so by what windows made of them before.
        """
        key = (partition, order)
        if key not in self.places:
            before = tuple(SortKey(c.name) for c in self.made if is_orderable(c.type))
            number = Scalar.constant("ROW_NUMBER()")
            self.places[key] = self._call(partition, number, (*order, *before), "").name
        return self.places[key]

    def _folded(self, window: exp.Window, places: list[exp.Window]) -> exp.Expr:
        fold = fold_over(window)
        if fold is None:
            raise NotDifferentiable(
                f"{shown(window)} of floating point numbers with this RANGE frame",
                detail="its last digits depend on the order of rows that tie",
                hint="write a ROWS frame, or cast the argument to DECIMAL",
            )
        for place in places:
            self.builder.ties.write_as(place, lambda written: fold_over(written) or written)
        return fold

    def _each(
        self,
        expression: exp.Expr,
        partition: tuple[str, ...],
        order: tuple[SortKey, ...],
        frame: str,
    ) -> exp.Expr:
        """An expression over windows that are alike, with a column for each of them."""

        def attach(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Window):
                return node
            return mark(self._call(partition, to_scalar(node.this), order, frame).name)

        return expression.transform(attach)

    def _call(
        self, partition: tuple[str, ...], function: Scalar, order: tuple[SortKey, ...], frame: str
    ) -> Column:
        call = self._typed(WindowCall(function, order, frame, Column("", "")), partition)
        node = self.node
        if isinstance(node, Window) and node.partition == partition and not _reads(call, node):
            self.node = Window(node.input, partition, (*node.calls, call))
        else:
            self.node = Window(node, partition, (call,))
        self.made.append(call.output)
        return call.output

    def _typed(self, call: WindowCall, partition: tuple[str, ...]) -> WindowCall:
        read = self.builder.columns_of([call.function])
        columns = tuple(dict.fromkeys((*self.node.columns, *read)))
        type_ = self.builder.typer.types(columns, [call.over(partition)])[0]
        return WindowCall(call.function, call.order, call.frame, self.builder.fresh(type_))

    def _column(self, expression: exp.Expr) -> str:
        """The name of a column with the expression's value, made if there is none."""
        scalar = to_scalar(expression)
        if scalar.bare_column in {c.name for c in self.node.columns}:
            return str(scalar.bare_column)
        column = self.builder.fresh(*self.builder.types_of([scalar]))
        own = identity(self.node.columns)
        self.node = Project(self.node, (*own, (column, scalar)))
        return column.name

    def _key(self, ordered: exp.Ordered) -> SortKey:
        return sort_key(self._column(ordered.this), ordered)

    def _completed(
        self, window: exp.Window, order: tuple[SortKey, ...], places: list[exp.Window]
    ) -> tuple[SortKey, ...]:
        missing = self._completing(window, order)
        if self.number is not None:
            missing.append((self.number, exp.column(COPY)))
        for place in places:
            self.builder.ties.note(place, [spelled for _, spelled in missing])
        return tuple(SortKey(name) for name in (*(n for n, _ in missing), *self.places.values()))

    def _completing(
        self, window: exp.Window, order: tuple[SortKey, ...]
    ) -> list[tuple[str, exp.Expr]]:
        """The columns that complete an order, with how the text calls each."""
        known = {key.column for key in order}
        return [(n, self._spelled(n, window)) for n in self.ties if n not in known]

    def _spelled(self, name: str, window: exp.Window) -> exp.Expr:
        refuse_unorderable(self.node, name, f"{shown(window)} OVER (...)")
        spelled = self.spell(name)
        if spelled is None:
            raise NotDifferentiable(
                f"{shown(window)} OVER (...) beside a subquery",
                detail="rows that tie are ordered by the columns beside it, and that one has no "
                "name",
                hint="compute the subquery in a FROM subquery, or complete the ORDER BY",
            )
        return spelled

    def _is_inexact(self, window: exp.Window) -> bool:
        """Whether the last digits depend on the order of rows that the window leaves open."""
        if digits_of(window) is not Digits.BY_TYPE:
            return digits_of(window) is Digits.BY_ORDER
        function = window_function(window)
        inputs = [a for a in [function.this, *function.expressions] if isinstance(a, exp.Expr)]
        types = self.builder.types_of([to_scalar(a) for a in inputs if not isinstance(a, exp.Star)])
        return any(t in ("float", "double") for t in types)

    def _in_one_order(self) -> tuple[tuple[SortKey, ...], str]:
        """Over the whole partition: any one order of its rows gives the same digits every time."""
        return tuple(SortKey(n) for n in self._orderable()), _WHOLE

    def _orderable(self) -> list[str]:
        return [n for n in self.ties if is_orderable(column_type(self.node.columns, n))]

    def _to_last_peer(
        self, window: exp.Window, partition: tuple[str, ...], order: tuple[SortKey, ...]
    ) -> Column:
        """Up to and with the rows that tie: row by row in one order, then the last one's value."""
        known = {key.column for key in order}
        complete = (*order, *(SortKey(n) for n in self._orderable() if n not in known))
        total = self._call(partition, to_scalar(window.this), complete, _UP_TO_HERE)
        place = self._call(partition, Scalar.constant("ROW_NUMBER()"), complete, "")
        peers = tuple(dict.fromkeys((*partition, *(key.column for key in order))))
        last = wrap("LAST_VALUE(", Scalar.column(total.name), ")")
        return self._call(peers, last, (SortKey(place.name),), _WHOLE)


def _spec(window: exp.Window) -> tuple[exp.Expr, ...]:
    return (exp.Tuple(expressions=window.args.get("partition_by")), *order_of(window))


def _group_keys(node: Node) -> tuple[str, ...] | None:
    """The keys of the groups that rows are, if they are groups."""
    while isinstance(node, Filter):
        node = node.input
    return node.keys if isinstance(node, Aggregate) else None


def sort_key(column: str, ordered: exp.Ordered) -> SortKey:
    return SortKey(column, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first")))


def refuse_unorderable(node: Node, name: str, what: str) -> None:
    type_ = column_type(node.columns, name)
    if not is_orderable(type_):
        raise NotDifferentiable(
            f"{what} over a column of type {type_}",
            detail="rows that tie are ordered by all columns, and values of that type have none",
            hint="leave the column out, or use refresh mode FULL or AUTO",
        )


def _windows(expression: exp.Expr) -> Iterator[exp.Window]:
    for node in expression.walk():
        if isinstance(node, exp.Window):
            if node.this.find(exp.Window):
                raise NotDifferentiable("a window function inside another", hint="use a subquery")
            yield node


def _reads(call: WindowCall, node: Window) -> bool:
    """Whether a call reads what the node's own compute, and so cannot stand beside them."""
    return not call.reads.isdisjoint(own.output.name for own in node.calls)


def _replaced(expression: exp.Expr, values: dict[exp.Window, exp.Expr]) -> exp.Expr:
    def replace(node: exp.Expr) -> exp.Expr:
        return values[node].copy() if isinstance(node, exp.Window) else node

    return expression.transform(replace)
