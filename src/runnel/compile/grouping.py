"""GROUP BY and aggregate functions: keys and arguments become columns, then one Aggregate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.algebra.nodes import Aggregate, Call, Node
from runnel.compile.lifting import fill, is_slot, with_arguments
from runnel.compile.scalars import mark, marked, resolve
from runnel.compile.scope import Scope
from runnel.compile.typing import is_comparable
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder
    from runnel.compile.select import SelectItem

_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}
# Aggregates that sqlglot does not class as such.
_MORE_AGGREGATES = frozenset(
    "every some bool_and bool_or bit_and bit_or bit_xor collect_set mode median percentile "
    "kurtosis skewness approx_percentile percentile_approx regr_count regr_avgx regr_avgy regr_r2 "
    "regr_slope regr_intercept regr_sxx regr_syy regr_sxy try_sum try_avg histogram_numeric "
    "count_min_sketch any_value first last first_value last_value grouping grouping_id product std "
    "listagg vector_avg vector_sum measure".split()
)


def is_grouped(select: exp.Select) -> bool:
    """Whether the SELECT aggregates, with or without GROUP BY; its subqueries are not asked."""
    if select.args.get("group"):
        return True
    having = select.args.get("having")
    expressions = [*select.expressions, *([having.this] if having else [])]
    nodes = (node for e in expressions for node in _own_nodes(e))
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
    group = _Group(_group_keys(select, scope, items), own)
    rewritten = [SelectItem(i.name, group.rewrite(i.expression)) for i in items]
    having = _having(select, scope, items)
    having = group.rewrite(having) if having is not None else None
    inputs, columns = project(builder, node, group.keys + group.arguments)
    grouped, arguments = columns[: len(group.keys)], columns[len(group.keys) :]
    _refuse_incomparable(grouped)
    calls = _calls(builder, group, arguments)
    is_global = not group.keys and not select.args.get("group")
    aggregate = Aggregate(inputs, tuple(k.name for k in grouped), calls, is_global)
    names = dict(zip(group.slots, [*grouped, *(c.output for c in calls)], strict=True))
    values = {slot: mark(column.name) for slot, column in names.items()}
    return Grouped(
        aggregate,
        [SelectItem(i.name, fill(i.expression, values)) for i in rewritten],
        fill(having, values) if having is not None else None,
        _grouped_scope(scope, {marked(k): c for k, c in zip(group.keys, grouped, strict=True)}),
        {names[slot].name: meaning for slot, meaning in group.meanings.items()},
    )


def _grouped_scope(scope: Scope, keys: Mapping[str | None, Column]) -> Scope:
    entries = (e for e in scope.entries if e.column.name in keys)
    return Scope(tuple(replace(e, column=keys[e.column.name]) for e in entries), scope.outer)


def _refuse_incomparable(keys: tuple[Column, ...]) -> None:
    for key in keys:
        if not is_comparable(key.type):
            raise NotDifferentiable(
                f"GROUP BY a {key.type}", hint="group by to_json() of it, or use refresh mode FULL"
            )


@dataclass
class _Group:
    """Collects keys and calls; `rewrite` replaces them in an expression by numbered slots."""

    keys: list[exp.Expr]
    own: frozenset[str]
    calls: list[tuple[str, tuple[int, ...], exp.Expr]] = field(default_factory=list)
    arguments: list[exp.Expr] = field(default_factory=list)

    @property
    def slots(self) -> list[str]:
        return [f"key{i}" for i in range(len(self.keys))] + self.call_slots

    @property
    def call_slots(self) -> list[str]:
        return [f"call{i}" for i in range(len(self.calls))]

    @property
    def meanings(self) -> dict[str, exp.Expr]:
        calls = [node for _, _, node in self.calls]
        return dict(zip(self.slots, [*self.keys, *calls], strict=True))

    def rewrite(self, node: exp.Expr) -> exp.Expr:
        if node.unnest() in self.keys:
            return mark(f"key{self.keys.index(node.unnest())}")
        if is_aggregate(node) and not is_over_window(node):
            return mark(f"call{self._call(node)}")
        if is_slot(node):
            return node
        if isinstance(node, exp.Column):
            if marked(node) not in self.own:
                return node  # of the query around: one value here
            raise InvalidQuery(
                "a column is neither grouped nor inside an aggregate function",
                hint="add it to GROUP BY, or wrap it in any_value() or max()",
            )
        return with_arguments(node.copy(), self.rewrite)

    def _call(self, node: exp.Expr) -> int:
        function, arguments = _normalize(node)
        read = {marked(column) for column in node.find_all(exp.Column)}
        if read and not read & self.own:
            raise NotDifferentiable(
                f"the aggregate function {_name(node)}() over columns of the outer query",
                hint="compute it in a subquery in FROM of the outer query",
            )
        places = tuple(self._argument(a) for a in arguments)
        for index, (known, known_places, _) in enumerate(self.calls):
            if (known, known_places) == (function, places):
                return index
        self.calls.append((function, places, node))
        return len(self.calls) - 1

    def _argument(self, node: exp.Expr) -> int:
        if node not in self.arguments:
            self.arguments.append(node)
        return self.arguments.index(node)


def _normalize(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """Function and arguments; FILTER becomes CASE, since every function kept here ignores NULLs."""
    condition: exp.Expr | None = None
    if isinstance(node, exp.Filter):
        condition, node = node.expression.this, node.this
    function = _FUNCTIONS.get(type(node))
    if function is None:
        raise NotDifferentiable(
            f"the aggregate function {_name(node)}()", hint="use refresh mode FULL or AUTO"
        )
    inner = node.this
    if isinstance(inner, exp.Distinct):
        arguments = list(inner.expressions)
        function += "_distinct"
    else:
        arguments = [inner, *(node.args.get("expressions") or [])]
    if any(is_aggregate(n) for a in arguments for n in a.walk()):
        raise InvalidQuery("an aggregate function inside another", hint="use a subquery")
    return _simplify_count(function, arguments, condition)


def _simplify_count(
    function: str, arguments: list[exp.Expr], condition: exp.Expr | None
) -> tuple[str, list[exp.Expr]]:
    if function == "count" and all(isinstance(a, (exp.Star, exp.Literal)) for a in arguments):
        if condition is None:
            return "count_star", []
        arguments = [exp.Literal.number(1)]
    elif function == "count" and len(arguments) > 1:
        all_set = exp.and_(*(a.copy().is_(exp.null()).not_() for a in arguments))
        arguments = [exp.case().when(all_set, exp.Literal.number(1))]
    if condition is not None:
        arguments = [exp.case().when(condition.copy(), a.copy()) for a in arguments]
    return function, arguments


def _calls(builder: Builder, group: _Group, arguments: tuple[Column, ...]) -> tuple[Call, ...]:
    chosen = [tuple(arguments[p] for p in places) for _, places, _ in group.calls]
    texts = [_spark_text(f, a) for (f, _, _), a in zip(group.calls, chosen, strict=True)]
    types = builder.typer.types(arguments, texts) if texts else ()
    return tuple(
        Call(function, args, builder.fresh(type_))
        for (function, _, _), args, type_ in zip(group.calls, chosen, types, strict=True)
    )


def _spark_text(function: str, arguments: tuple[Column, ...]) -> str:
    if function == "count_star":
        return "COUNT(*)"
    name, _, is_distinct = function.partition("_")
    return f"{name}({'DISTINCT ' if is_distinct else ''}{', '.join(a.name for a in arguments)})"


def _group_keys(select: exp.Select, scope: Scope, items: list[SelectItem]) -> list[exp.Expr]:
    group = select.args.get("group")
    if group is None:
        return []
    if group.args.get("all"):
        raise NotDifferentiable("GROUP BY ALL", hint="list the grouping columns")
    for part in ("grouping_sets", "cube", "rollup", "totals"):
        if group.args.get(part):
            raise NotDifferentiable("GROUPING SETS, CUBE or ROLLUP")
    keys: list[exp.Expr] = []
    for node in group.expressions:
        if isinstance(node, (exp.Cube, exp.Rollup, exp.GroupingSets)):
            raise NotDifferentiable("GROUPING SETS, CUBE or ROLLUP")
        # Compared without parentheses: an alias stands for its expression in them.
        key = _group_key(node, scope, items).unnest()
        if key not in keys:
            keys.append(key)
    return keys


def _group_key(node: exp.Expr, scope: Scope, items: list[SelectItem]) -> exp.Expr:
    if isinstance(node, exp.Literal) and not node.is_string:
        index = int(node.name)
        if not 1 <= index <= len(items):
            raise InvalidQuery(f"GROUP BY {index}: the select list has {len(items)} items")
        return items[index - 1].expression
    return resolve(node, scope, _aliases(items))


def _having(select: exp.Select, scope: Scope, items: list[SelectItem]) -> exp.Expr | None:
    having = select.args.get("having")
    if having is None:
        return None
    for column in having.this.find_all(exp.Column):
        name = column.name.lower()
        item = _aliases(items).get(name) if not column.table else None
        found = scope.resolve_here([column.name]) if item is not None else None
        if item is not None and found is not None and marked(item) != found[0].name:
            raise NotDifferentiable(
                f"the alias {column.name} in HAVING, which is also a column's name",
                hint="give the select item another alias",
            )
    return resolve(having.this, scope, _aliases(items))


def _aliases(items: list[SelectItem]) -> dict[str, exp.Expr]:
    return {i.name.lower(): i.expression for i in items if i.name}


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node calls an aggregate function."""
    if isinstance(node, exp.Filter):
        return True
    if isinstance(node, exp.AggFunc):
        return True
    if isinstance(node, exp.Any):
        return not isinstance(node.parent, (exp.Like, exp.ILike))
    if not isinstance(node, exp.Func):
        return False
    name = _name(node).lower()
    return name in _MORE_AGGREGATES or "_agg" in name


def is_over_window(node: exp.Expr) -> bool:
    """Whether it is the function of a window, which groups nothing."""
    while isinstance(node.parent, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return node.name
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key
