"""A table function in the select list.

Without a grouping it is computed for each row of FROM, before windows and LIMIT. Of a grouping the
list is built without it, windows too, and then its rows for each row of that. Several are taken
out one after the other, so that each row meets every combination.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from runnel.algebra.nodes import Node, Project, distinct
from runnel.algebra.scalar import Scalar
from runnel.compile.aggregates import is_aggregate
from runnel.compile.generators import Generator, generate, generator_of
from runnel.compile.ordering import is_limited, limit_relation
from runnel.compile.places import at
from runnel.compile.relation import Relation
from runnel.compile.rewrites.generated_views import GeneratedView, GeneratedViews, unaliased
from runnel.compile.scalars import mark
from runnel.compile.scope import Entry, Scope
from runnel.errors import InvalidQuery, NotDifferentiable

if TYPE_CHECKING:
    from runnel.compile.build import Builder

_PLACE = "__generated__"


@dataclass(frozen=True, slots=True)
class _Split:
    """`inner` has NULL called `place` for the function, and its arguments after all the others."""

    inner: exp.Select
    place: str
    generator: Generator
    names: tuple[str, ...]
    is_distinct: bool

    @property
    def reads(self) -> list[int]:
        """The places of arguments that are computed below."""
        return [i for i, a in enumerate(self.generator.arguments) if not _is_constant(a)]


def has_generator(select: exp.Select) -> bool:
    """Whether an item of the select list is a table function."""
    return any(generator_of(unaliased(item)) for item in select.expressions)


def expand_rows(
    builder: Builder, select: exp.Select, node: Node, scope: Scope
) -> tuple[Node, Scope, GeneratedViews]:
    """The rows with what the functions of the list give for each; `*` does not stand for that."""
    views: dict[int, GeneratedView] = {}
    seen = scope
    for place, item in enumerate(select.expressions):
        generator = generator_of(unaliased(item))
        if generator is None:
            continue
        with at(item):
            node, outputs = generate(builder, node, seen, generator, _names(item))
        view = GeneratedView(f"__generated{len(views)}", [str(name) for name, _ in outputs])
        entries = tuple(
            Entry(view.name, name, column, only_qualified=True)
            for name, (_, column) in zip(view.columns, outputs, strict=True)
        )
        scope = Scope(scope.entries + entries, scope.outer)
        views[place] = view
    return node, scope, GeneratedViews(views)


def build_generated(builder: Builder, select: exp.Select, ctes: Mapping[str, Any]) -> Relation:
    """Build a grouped SELECT with a table function in its list."""
    split = _split(select)
    inner = builder.query(split.inner, ctes)
    first = len(inner.outputs) - len(split.reads)
    arguments = list(split.generator.arguments)
    for place, (_, column) in zip(split.reads, inner.outputs[first:], strict=True):
        arguments[place] = mark(column.name)
    generator = replace(split.generator, arguments=tuple(arguments))
    made, generated = generate(builder, inner.node, Scope(()), generator, split.names)
    index = [name for name, _ in inner.outputs].index(split.place)
    outputs = (*inner.outputs[:index], *generated, *inner.outputs[index + 1 : first])
    shown = [(name, builder.fresh(column.type), column) for name, column in outputs]
    node: Node = Project(made, tuple((c, Scalar.column(own.name)) for _, c, own in shown))
    node = distinct(node) if split.is_distinct else node
    return _limited(builder, select, Relation(node, tuple((name, c) for name, c, _ in shown)))


def _limited(builder: Builder, select: exp.Select, relation: Relation) -> Relation:
    """ORDER BY ... LIMIT of what the function gives; it can name what the list shows."""
    if not is_limited(select):
        return relation
    order = select.args.get("order")
    if order is not None and any(
        is_aggregate(n) or isinstance(n, exp.Window) for n in order.walk()
    ):
        raise _hidden_order()
    try:
        return limit_relation(builder, select, relation)
    except InvalidQuery as error:
        raise _hidden_order() from error


def _hidden_order() -> NotDifferentiable:
    return NotDifferentiable(
        "a table function over groups, ordered by something that is not in the select list",
        hint="add it to the select list, or put the table function into a subquery",
    )


def _split(select: exp.Select) -> _Split:
    _refuse_company(select)
    inner = select.copy()
    for clause in ("distinct", "with_", "order", "limit", "offset"):
        inner.set(clause, None)
    items = list(inner.expressions)
    index = next(i for i, item in enumerate(items) if generator_of(unaliased(item)))
    item = items[index]
    generator = generator_of(unaliased(item))
    assert generator is not None
    place = f"{_PLACE}{sum(i.alias.startswith(_PLACE) for i in items)}"
    items[index] = exp.alias_(exp.null(), place)
    inner.set("expressions", items + [a for a in generator.arguments if not _is_constant(a)])
    return _Split(inner, place, generator, _names(item), bool(select.args.get("distinct")))


def _refuse_company(select: exp.Select) -> None:
    """What does not go together with a table function over groups in one select list."""
    found: list[str] = []
    group, is_distinct = select.args.get("group"), select.args.get("distinct")
    if group and group.args.get("all"):
        found.append("GROUP BY ALL")
    if is_distinct and is_distinct.args.get("on"):
        found.append("DISTINCT ON")
    if select.args.get("qualify"):
        found.append("QUALIFY")
    if found:
        raise NotDifferentiable(
            f"a table function in the select list together with {found[0]}",
            hint="put the table function into a subquery or a LATERAL VIEW",
        )


def _names(item: exp.Expr) -> tuple[str, ...]:
    if isinstance(item, exp.Aliases):
        return tuple(name.name for name in item.expressions)
    return (item.alias,) if item.alias else ()


def _is_constant(node: exp.Expr) -> bool:
    """Whether it stays in the function's text, where some must be constants."""
    return not node.find(exp.Column, exp.Query, exp.AggFunc, exp.Star)
