"""A table function in the select list: the list without it, then its rows for each row of that.

Several are taken out one after the other, so that each row meets every combination.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from runnel.algebra.nodes import Project, distinct
from runnel.algebra.scalar import Scalar
from runnel.compile.generators import Generator, generate, generator_of
from runnel.compile.relation import Relation
from runnel.compile.scalars import mark
from runnel.compile.scope import Scope
from runnel.errors import NotDifferentiable

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
    return any(generator_of(_unaliased(item)) for item in select.expressions)


def build_generated(builder: Builder, select: exp.Select, ctes: Mapping[str, Any]) -> Relation:
    """Build a SELECT with a table function in its list."""
    split = _split(select)
    inner = builder.query(split.inner, ctes)
    first = len(inner.outputs) - len(split.reads)
    arguments = list(split.generator.arguments)
    for place, (_, column) in zip(split.reads, inner.outputs[first:], strict=True):
        arguments[place] = mark(column.name)
    generator = replace(split.generator, arguments=tuple(arguments))
    node, generated = generate(builder, inner.node, Scope(()), generator, split.names)
    at = [name for name, _ in inner.outputs].index(split.place)
    outputs = (*inner.outputs[:at], *generated, *inner.outputs[at + 1 : first])
    shown = [(name, builder.fresh(column.type), column) for name, column in outputs]
    node = Project(node, tuple((c, Scalar.column(own.name)) for _, c, own in shown))
    return Relation(
        distinct(node) if split.is_distinct else node, tuple((name, c) for name, c, _ in shown)
    )


def _split(select: exp.Select) -> _Split:
    _refuse_company(select)
    inner = select.copy()
    inner.set("distinct", None)
    inner.set("with_", None)
    items = list(inner.expressions)
    at = next(i for i, item in enumerate(items) if generator_of(_unaliased(item)))
    item = items[at]
    generator = generator_of(_unaliased(item))
    assert generator is not None
    place = f"{_PLACE}{sum(i.alias.startswith(_PLACE) for i in items)}"
    items[at] = exp.alias_(exp.null(), place)
    inner.set("expressions", items + [a for a in generator.arguments if not _is_constant(a)])
    return _Split(inner, place, generator, _names(item), bool(select.args.get("distinct")))


def _refuse_company(select: exp.Select) -> None:
    """What does not go together with a table function in one select list."""
    found: list[str] = []
    if any(item.find(exp.Window) for item in select.expressions):
        found.append("a window function")
    group, is_distinct = select.args.get("group"), select.args.get("distinct")
    if group and group.args.get("all"):
        found.append("GROUP BY ALL")
    if is_distinct and is_distinct.args.get("on"):
        found.append("DISTINCT ON")
    found += [name.upper() for name in ("limit", "offset", "qualify") if select.args.get(name)]
    if found:
        raise NotDifferentiable(
            f"a table function in the select list together with {found[0]}",
            hint="put the table function into a subquery or a LATERAL VIEW",
        )


def _unaliased(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item


def _names(item: exp.Expr) -> tuple[str, ...]:
    if isinstance(item, exp.Aliases):
        return tuple(name.name for name in item.expressions)
    return (item.alias,) if item.alias else ()


def _is_constant(node: exp.Expr) -> bool:
    """Whether it stays in the function's text, where some must be constants."""
    return not node.find(exp.Column, exp.Query, exp.AggFunc, exp.Star)
