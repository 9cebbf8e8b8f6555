"""Window functions in a SELECT: each becomes a column of a Window over the SELECT's rows.

Rows that tie in a window's order are ordered further by the columns that the SELECT computes with,
wherever that decides something: rows equal in all of them cannot be told apart in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.algebra.nodes import Node, Project, SortKey, Window, WindowCall, identity
from runnel.algebra.scalar import Scalar, wrap
from runnel.compile.aggregates import spark_name
from runnel.compile.places import at
from runnel.compile.scalars import column_type, function_name, mark, to_scalar
from runnel.compile.typing import is_orderable
from runnel.errors import NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder

Spell = Callable[[str], exp.Expr | None]
_PEERS_ALIKE = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
_NUMBERED = frozenset({"row_number", "ntile", "lag", "lead"})
_POSITIONAL = frozenset({"first_value", "last_value", "nth_value", "first", "last", "any_value"})
# A list over a window without an order is sorted instead.
_LIST = "array_agg"
_EXACT = frozenset({"min", "max", "count"})
_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_UP_TO_HERE = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def attach_windows(
    builder: Builder, node: Node, expressions: list[exp.Expr], spell: Spell
) -> tuple[Node, list[exp.Expr]]:
    """The rows with a column for each window function, and the expressions reading these.

    `spell` says how the query's text calls a column, if it can.
    """
    windows = list(dict.fromkeys(w for e in expressions for w in _windows(e)))
    if not windows:
        return node, expressions
    own = {c.name for c in node.columns}
    ties = list(dict.fromkeys(n for e in expressions for n in to_scalar(e).columns if n in own))
    places = [w for e in expressions for w in _windows(e)]
    attached = _Attached(builder, node, ties, spell)
    columns: dict[exp.Window, Column] = {}
    for window in windows:
        with at(window):
            columns[window] = attached.add(window, [p for p in places if p == window])
    return attached.node, [_replaced(e, columns) for e in expressions]


def window_function(window: exp.Window) -> exp.Expr:
    """The function itself, without FILTER and IGNORE NULLS."""
    node = window.this
    while isinstance(node, _WRAPPERS):
        node = node.this
    return node  # type: ignore[no-any-return]


@dataclass
class _Attached:
    """The rows so far; windows of one partition share a node where they follow each other."""

    builder: Builder
    node: Node
    ties: list[str]
    spell: Spell

    def add(self, window: exp.Window, places: list[exp.Window]) -> Column:
        partition = tuple(self._column(e) for e in window.args.get("partition_by") or [])
        order = tuple(self._key(o) for o in _order(window))
        frame = window.args["spec"].sql("spark") if window.args.get("spec") else ""
        function = to_scalar(window.this)
        if _is_open(window):
            order += self._completed(window, order, places)
        elif self._is_inexact(window) and order:
            return self._to_last_peer(window, partition, order)
        elif self._is_inexact(window):
            order, frame = self._in_one_order()
        return self._call(partition, function, order, frame)

    def _call(
        self, partition: tuple[str, ...], function: Scalar, order: tuple[SortKey, ...], frame: str
    ) -> Column:
        call = self._typed(WindowCall(function, order, frame, Column("", "")), partition)
        if isinstance(self.node, Window) and self.node.partition == partition:
            self.node = Window(self.node.input, partition, (*self.node.calls, call))
        else:
            self.node = Window(self.node, partition, (call,))
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
        missing = [n for n in self.ties if n not in {key.column for key in order}]
        spelled = [self._spelled(name, window) for name in missing]
        for place in places:
            self.builder.ties.note(place, spelled)
        return tuple(SortKey(name) for name in missing)

    def _spelled(self, name: str, window: exp.Window) -> exp.Expr:
        refuse_unorderable(self.node, name, f"{_shown(window)} OVER (...)")
        spelled = self.spell(name)
        if spelled is None:
            raise NotDifferentiable(
                f"{_shown(window)} OVER (...) beside a subquery",
                detail="rows that tie are ordered by the columns beside it, and that one has no "
                "name",
                hint="compute the subquery in a FROM subquery, or complete the ORDER BY",
            )
        return spelled

    def _is_inexact(self, window: exp.Window) -> bool:
        """Whether the last digits depend on the order of rows that the window leaves open."""
        function = window_function(window)
        if function_name(function) in _EXACT | _PEERS_ALIKE:
            return False
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
        if not _is_running(window):
            raise NotDifferentiable(
                f"{_shown(window)} of floating point numbers with this RANGE frame",
                detail="its last digits depend on the order of rows that tie",
                hint="write a ROWS frame, or cast the argument to DECIMAL",
            )
        known = {key.column for key in order}
        complete = (*order, *(SortKey(n) for n in self._orderable() if n not in known))
        total = self._call(partition, to_scalar(window.this), complete, _UP_TO_HERE)
        place = self._call(partition, Scalar.constant("ROW_NUMBER()"), complete, "")
        peers = tuple(dict.fromkeys((*partition, *(key.column for key in order))))
        last = wrap("LAST_VALUE(", Scalar.column(total.name), ")")
        return self._call(peers, last, (SortKey(place.name),), _WHOLE)


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


def _shown(window: exp.Window) -> str:
    return f"{spark_name(window_function(window)).upper()}()"


def _is_running(window: exp.Window) -> bool:
    """From the partition's beginning to the rows that tie with the present one."""
    spec = window.args.get("spec")
    if spec is None:
        return True
    ends = (spec.args.get("start"), spec.args.get("end") or "CURRENT ROW")
    return ends == ("UNBOUNDED", "CURRENT ROW") and spec.args.get("start_side") == "PRECEDING"


def _is_open(window: exp.Window) -> bool:
    """Whether the order of rows that tie decides the value."""
    name, spec = function_name(window_function(window)), window.args.get("spec")
    is_rows = spec is not None and spec.args["kind"].upper() == "ROWS"
    is_list = name == _LIST and bool(_order(window))
    if name in _PEERS_ALIKE or not (is_rows or is_list or name in _NUMBERED | _POSITIONAL):
        return False
    if not _order(window):
        raise NotDifferentiable(
            f"{_shown(window)} OVER (...) without ORDER BY",
            detail="which rows come first is open",
            hint="add ORDER BY to the window",
        )
    by_place = is_list or name in _POSITIONAL
    if by_place and not is_rows and not _is_first(window, name or ""):
        raise NotDifferentiable(
            f"{_shown(window)} OVER (...) with a RANGE frame",
            detail="which of the rows that tie comes first or last is open",
            hint="add ROWS BETWEEN ... to the window",
        )
    return True


def _is_first(window: exp.Window, name: str | None) -> bool:
    """first_value from the partition's beginning: the end of the frame does not matter."""
    spec = window.args.get("spec")
    starts = spec is None or spec.args.get("start") == "UNBOUNDED"
    return name in ("first_value", "first") and starts and window.this is window_function(window)


def _order(window: exp.Window) -> list[exp.Ordered]:
    order = window.args.get("order")
    return list(order.expressions) if order is not None else []


def _windows(expression: exp.Expr) -> Iterator[exp.Window]:
    for node in expression.walk():
        if isinstance(node, exp.Window):
            if node.this.find(exp.Window):
                raise NotDifferentiable("a window function inside another", hint="use a subquery")
            yield node


def _replaced(expression: exp.Expr, columns: dict[exp.Window, Column]) -> exp.Expr:
    def replace(node: exp.Expr) -> exp.Expr:
        return mark(columns[node].name) if isinstance(node, exp.Window) else node

    return expression.transform(replace)
