"""GROUP BY session_window(ts, gap): each row learns its session from the rows of its other keys.

    before          MAX(end) OVER (the rows that start earlier)     with end = ts + gap
    session start   the last start up to here that lies behind all ends before it
    session end     MAX(end) OVER (the rows of that session)

Rows that start together are told apart nowhere, so no order of theirs decides anything. The text
keeps the function, which Spark evaluates itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from runnel.algebra.nodes import Filter, Node, Project, SortKey, Window, WindowCall, identity
from runnel.algebra.scalar import Scalar
from runnel.compile.dialect import SparkSql
from runnel.compile.grouping import group_keys
from runnel.compile.places import at
from runnel.compile.scalars import function_name, mark, resolve, to_scalar
from runnel.compile.scope import Entry, Scope
from runnel.errors import NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder

_NAME = "session_window"
_EARLIER = "RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '1' MICROSECOND PRECEDING"
_TIMES = ("timestamp", "timestamp_ntz")


def has_sessions(select: exp.Select) -> bool:
    """Whether the SELECT itself groups by sessions."""
    return any(True for _ in _calls(select))


def attach_sessions(
    builder: Builder, select: exp.Select, node: Node, scope: Scope
) -> tuple[exp.Select, Node, Scope]:
    """The rows with their session in a column of that name, and the SELECT that reads it."""
    from runnel.compile.select import select_items

    select = select.copy()
    calls = list(_calls(select))
    with at(calls[0]):
        if any(call != calls[0] for call in calls):
            raise _refusal("several windows of time in one SELECT")
        sessions = _Sessions(builder, node)
        start, end = sessions.add_events(calls[0], scope)
        for call in calls:
            call.replace(exp.column(_NAME))
        seen = _with(scope, start)
        keys, sets = group_keys(select, seen, select_items(select, seen))
        if sets is not None or mark(start.name) not in keys:
            raise _refusal("session_window() in a grouping set, or without GROUP BY")
        others = [key for key in keys if key != mark(start.name)]
        session = sessions.merge(others, start, end)
    return select, sessions.node, _with(scope, session)


class _Sessions:
    """The rows so far; each step adds columns to them."""

    def __init__(self, builder: Builder, node: Node) -> None:
        self.builder = builder
        self.node = node

    def add_events(self, call: exp.Anonymous, scope: Scope) -> tuple[Column, Column]:
        """From when to when each row keeps its session open; those without any go."""
        if len(call.expressions) != 2:
            raise _refusal("session_window() with these arguments")
        time, gap = (resolve(argument, scope) for argument in call.expressions)
        start = self._add(to_scalar(time))
        if start.type not in _TIMES:
            raise _refusal(f"session_window() of {start.type}")
        length = exp.cast(gap, exp.DataType.build("interval", dialect=SparkSql))
        end = self._add(to_scalar(exp.Add(this=mark(start.name), expression=length)))
        self.node = Filter(self.node, (_scalar(f"{end.name} > {start.name}", start, end),))
        return start, end

    def merge(self, keys: list[exp.Expr], start: Column, end: Column) -> Column:
        partition = tuple(self._add(to_scalar(key)).name for key in keys)
        by_start = (SortKey(start.name),)
        before = self._over(partition, _scalar(f"MAX({end.name})", end), by_start, _EARLIER)
        opens = f"CASE WHEN COALESCE({start.name} > {before.name}, TRUE) THEN {start.name} END"
        opened = self._add(_scalar(opens, start, before), start.type)
        first = self._over(partition, _scalar(f"MAX({opened.name})", opened), by_start, "")
        last = self._over((*partition, first.name), _scalar(f"MAX({end.name})", end), (), "")
        type_ = f"struct<start:{start.type},end:{start.type}>"
        made = f"STRUCT({first.name} AS start, {last.name} AS `end`)"
        return self._add(_scalar(made, first, last), type_)

    def _add(self, value: Scalar, type_: str | None = None) -> Column:
        column = self.builder.fresh(type_ or self.builder.types_of([value])[0])
        self.node = Project(self.node, (*identity(self.node.columns), (column, value)))
        return column

    def _over(
        self, partition: tuple[str, ...], function: Scalar, order: tuple[SortKey, ...], frame: str
    ) -> Column:
        output = self.builder.fresh(self.builder.known[function.columns[0]].type)
        call = WindowCall(function, order, frame, output)
        self.node = Window(self.node, partition, (call,))
        return output


def _scalar(text: str, *columns: Column) -> Scalar:
    """An expression written with the names of columns."""
    tree = sqlglot.parse_one(text, dialect=SparkSql)
    names = {c.name for c in columns}

    def replace(node: exp.Expr) -> exp.Expr:
        return mark(node.name) if isinstance(node, exp.Column) and node.name in names else node

    return to_scalar(tree.transform(replace))


def _calls(select: exp.Select) -> Iterator[exp.Anonymous]:
    """Those of the SELECT itself, not of its subqueries."""
    for node in select.walk(prune=lambda n: isinstance(n, exp.Query) and n is not select):
        if isinstance(node, exp.Anonymous) and function_name(node) == _NAME:
            yield node


def _with(scope: Scope, column: Column) -> Scope:
    return Scope((*scope.entries, Entry(None, _NAME, column)), scope.outer)


def _refusal(construct: str) -> NotDifferentiable:
    return NotDifferentiable(
        construct,
        detail="sessions are found among the rows that are equal in the other keys of GROUP BY",
        hint="GROUP BY keys, session_window(ts, '5 minutes'), or use refresh mode FULL or AUTO",
    )
