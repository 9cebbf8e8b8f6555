"""GROUP BY and aggregate functions: keys and arguments become columns, then one Aggregate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.algebra.nodes import Aggregate, Call, Node
from runnel.algebra.scalar import Scalar
from runnel.compile.aggregates import AROUND, call_form, is_aggregate
from runnel.compile.differentiate.state import is_inexact, keeps_sums
from runnel.compile.grouping_sets import KeySets, expand, grouping_value, key_sets
from runnel.compile.having import having_of
from runnel.compile.lifting import fill, is_slot, with_arguments
from runnel.compile.places import at
from runnel.compile.scalars import mark, marked, resolve, to_scalar
from runnel.compile.scope import Scope
from runnel.compile.typing import is_comparable
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder
    from runnel.compile.select import SelectItem


def is_grouped(select: exp.Select) -> bool:
    """Whether the SELECT aggregates, with or without GROUP BY; its subqueries are not asked.

    HAVING alone makes one group of all rows.
    """
    if select.args.get("group") or select.args.get("having"):
        return True
    nodes = (node for e in select.expressions for node in _own_nodes(e))
    return any(is_aggregate(node) and not is_over_window(node) for node in nodes)


def _own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    return node.walk(prune=lambda inner: isinstance(inner, exp.Query))


@dataclass(frozen=True, slots=True)
class Grouped:
    """The Aggregate, and the select list and HAVING rewritten to read its output.

    `scope` is what subqueries see that are evaluated for each group: the columns grouped by,
    `meanings` is each output column as an expression over the input.
    """

    node: Node
    items: list[SelectItem]
    having: exp.Expr | None
    scope: Scope
    meanings: dict[str, exp.Expr]


def build_grouping(
    builder: Builder,
    select: exp.Select,
    node: Node,
    scope: Scope,
    items: list[SelectItem],
) -> Grouped:
    """Group the rows."""
    from runnel.compile.select import SelectItem, project

    own = frozenset(c.name for c in node.columns)
    keys, sets = group_keys(select, scope, items)
    group = _Group(keys, own)
    rewritten = [SelectItem(i.name, group.rewrite(i.expression)) for i in items]
    having = having_of(select, scope, aliases_of(items), keys)
    having = group.rewrite(having) if having is not None else None
    inputs, columns = project(builder, node, group.keys + group.arguments)
    grouped, arguments = columns[: len(group.keys)], columns[len(group.keys) :]
    _refuse_incomparable(group.keys, grouped)
    number: Column | None = None
    if sets is not None and not sets.is_everything:
        inputs, grouped, number = expand(builder, inputs, grouped, sets)
    calls = _calls(builder, group, arguments)
    names = tuple(k.name for k in (*grouped, *([number] if number else ())))
    aggregate = Aggregate(inputs, names, calls, _is_global(select, group, sets))
    columns_of = dict(zip(group.slots, [*grouped, *(c.output for c in calls)], strict=True))
    values: dict[str, exp.Expr] = {slot: mark(column.name) for slot, column in columns_of.items()}
    for slot, asked in group.groupings.items():
        values[slot] = grouping_value(asked, sets, number)
    return Grouped(
        aggregate,
        [SelectItem(i.name, fill(i.expression, values)) for i in rewritten],
        fill(having, values) if having is not None else None,
        _grouped_scope(scope, {marked(k): c for k, c in zip(group.keys, grouped, strict=True)}),
        _meanings(group, columns_of, number),
    )


def _grouped_scope(scope: Scope, keys: Mapping[str | None, Column]) -> Scope:
    entries = (e for e in scope.entries if e.column.name in keys)
    return Scope(tuple(replace(e, column=keys[e.column.name]) for e in entries), scope.outer)


def _meanings(
    group: _Group, columns: dict[str, Column], number: Column | None
) -> dict[str, exp.Expr]:
    meanings = {columns[slot].name: meaning for slot, meaning in group.meanings.items()}
    # Sets are numbered in the order of their GROUPING_ID().
    return meanings | ({number.name: exp.GroupingId()} if number is not None else {})


def _is_global(select: exp.Select, group: _Group, sets: KeySets | None) -> bool:
    """Whether the one group is there over no rows too."""
    if group.keys:
        return False
    by = select.args.get("group")
    return by is None or bool(by.args.get("all")) or (sets is not None and sets.is_everything)


def _refuse_incomparable(keys: list[exp.Expr], columns: tuple[Column, ...]) -> None:
    for key, column in zip(keys, columns, strict=True):
        with at(key):
            if not is_comparable(column.type):
                raise NotDifferentiable(
                    f"GROUP BY a {column.type}",
                    hint="group by to_json() of it, or use refresh mode FULL",
                )


_CallParts = tuple[str, tuple[int, ...], exp.Expr | None, exp.Expr | None, bool]
"""Function, places of its arguments, and the two texts and `is_moment` of a `CallForm`."""


@dataclass
class _Group:
    """Collects keys and calls; `rewrite` replaces them in an expression by numbered slots."""

    keys: list[exp.Expr]
    own: frozenset[str]
    calls: list[_CallParts] = field(default_factory=list)
    places: list[list[exp.Expr]] = field(default_factory=list)
    arguments: list[exp.Expr] = field(default_factory=list)
    nodes: list[exp.Expr] = field(default_factory=list)
    groupings: dict[str, exp.Expr] = field(default_factory=dict)

    @property
    def slots(self) -> list[str]:
        return [f"key{i}" for i in range(len(self.keys))] + self.call_slots

    @property
    def call_slots(self) -> list[str]:
        return [f"call{i}" for i in range(len(self.calls))]

    @property
    def meanings(self) -> dict[str, exp.Expr]:
        return dict(zip(self.slots, [*self.keys, *self.nodes], strict=True))

    def rewrite(self, node: exp.Expr) -> exp.Expr:
        if node.unnest() in self.keys:
            return mark(f"key{self.keys.index(node.unnest())}")
        if isinstance(node, (exp.Grouping, exp.GroupingId)):
            slot = f"grouping{len(self.groupings)}"
            self.groupings[slot] = node
            return mark(slot)
        if is_aggregate(node) and not is_over_window(node):
            return mark(f"call{self._call(node)}")
        if is_slot(node):
            return node
        if isinstance(node, exp.Column):
            if marked(node) not in self.own:
                return node  # of the query around: one value here
            raise InvalidQuery(
                "a column is neither grouped nor inside an aggregate function",
                hint="add it to GROUP BY, or wrap it in max()",
            )
        return with_arguments(node.copy(), self.rewrite)

    def _call(self, node: exp.Expr) -> int:
        with at(node):
            if any(is_slot(inner) for inner in node.walk()):
                raise NotDifferentiable(
                    "a subquery inside an aggregate function",
                    hint="compute its value in a subquery in FROM, and aggregate that",
                )
            form = call_form(node)
            read = {marked(column) for column in node.find_all(exp.Column)}
            if read and not read & self.own:
                raise NotDifferentiable(
                    f"the aggregate function {form.function}() over columns of the outer query",
                    hint="compute it in a subquery in FROM of the outer query",
                )
        arguments = tuple(self._argument(a) for a in form.arguments)
        call = (form.function, arguments, form.text, form.in_order, form.is_moment)
        if call not in self.calls:
            self.calls.append(call)
            self.nodes.append(node)
            self.places.append([])
        self.places[self.calls.index(call)].append(node)
        return self.calls.index(call)

    def _argument(self, node: exp.Expr) -> int:
        if node not in self.arguments:
            self.arguments.append(node)
        return self.arguments.index(node)


def _calls(builder: Builder, group: _Group, arguments: tuple[Column, ...]) -> tuple[Call, ...]:
    made = []
    for function, places, text, fold, _ in group.calls:
        chosen = tuple(arguments[place] for place in places)
        made.append((function, chosen, _opaque(text, chosen), _opaque(fold, chosen)))
    asked = [
        text.render() if text is not None else _spark_text(function, chosen)
        for function, chosen, text, _ in made
    ]
    types = builder.typer.types(arguments, asked) if asked else ()
    for (function, _, _, _), type_ in zip(made, types, strict=True):
        if not is_comparable(type_):
            raise NotDifferentiable(
                f"{function}() of a {type_}", hint="aggregate to_json() of it instead"
            )
    calls = (
        Call(function, chosen, builder.fresh(type_), text, fold)
        for (function, chosen, text, fold), type_ in zip(made, types, strict=True)
    )
    moments = (is_moment for *_, is_moment in group.calls)
    found = zip(calls, moments, group.places, strict=True)
    return tuple(_kept(builder, call, is_moment, nodes) for call, is_moment, nodes in found)


def _kept(builder: Builder, call: Call, is_moment: bool, nodes: list[exp.Expr]) -> Call:
    """The call without a text where sums stand for it; its places are noted."""
    if is_moment and keeps_sums(call) and builder.folds.note_sums(call, nodes):
        return replace(call, text=None, in_order=None)
    if is_inexact(call):
        builder.folds.note(call, nodes)
    return call


def _opaque(text: exp.Expr | None, arguments: tuple[Column, ...]) -> Scalar | None:
    if text is None:
        return None
    return to_scalar(fill(text, {f"arg{n}": mark(a.name) for n, a in enumerate(arguments)}))


def _spark_text(function: str, arguments: tuple[Column, ...]) -> str:
    if function == "count_star":
        return "COUNT(*)"
    name, _, is_distinct = function.partition("_")
    return f"{name}({'DISTINCT ' if is_distinct else ''}{', '.join(a.name for a in arguments)})"


def group_keys(
    select: exp.Select, scope: Scope, items: list[SelectItem]
) -> tuple[list[exp.Expr], KeySets | None]:
    """The keys without parentheses, since an alias stands for its expression in them."""
    group = select.args.get("group")
    if group is None:
        return [], None
    if group.args.get("all"):
        plain = [i.expression.unnest() for i in items if not _is_computed_later(i.expression)]
        others = [key for key in plain if not isinstance(key, exp.Literal)]
        return list(dict.fromkeys(others or plain)), None
    if group.args.get("totals"):
        raise NotDifferentiable(
            "GROUP BY ... WITH TOTALS", hint="write GROUP BY GROUPING SETS ((...), ())"
        )
    sets = key_sets(group, lambda node: _group_key(node, scope, items))
    if sets is not None:
        return sets.keys, sets
    resolved = [_group_key(node, scope, items).unnest() for node in group.expressions]
    return list(dict.fromkeys(resolved)), None


def _is_computed_later(expression: exp.Expr) -> bool:
    later = (exp.Window, exp.Grouping, exp.GroupingId)
    nodes = expression.walk()
    return any(is_aggregate(n) or is_slot(n) or isinstance(n, later) for n in nodes)


def _group_key(node: exp.Expr, scope: Scope, items: list[SelectItem]) -> exp.Expr:
    if isinstance(node, exp.Literal) and not node.is_string:
        index = int(node.name)
        if not 1 <= index <= len(items):
            raise InvalidQuery(f"GROUP BY {index}: the select list has {len(items)} items")
        return items[index - 1].expression
    return resolve(node, scope, aliases_of(items))


def aliases_of(items: list[SelectItem]) -> dict[str, exp.Expr]:
    """What the names of a select list stand for."""
    return {i.name.lower(): i.expression for i in items if i.name}


def is_over_window(node: exp.Expr) -> bool:
    """Whether it is the function of a window, which groups nothing."""
    while isinstance(node.parent, AROUND):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"
