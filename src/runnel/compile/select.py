"""One SELECT: FROM, WHERE, grouping, HAVING, the select list, DISTINCT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from runnel.algebra.nodes import Filter, Node, OneRow, Project, distinct, identity
from runnel.compile.grouping import aliases_of, build_grouping, is_grouped
from runnel.compile.laterals import lateral_view
from runnel.compile.lifting import fill
from runnel.compile.ordering import Ordering
from runnel.compile.places import at
from runnel.compile.relation import Relation
from runnel.compile.scalars import (
    conjuncts,
    marked,
    resolve,
    star_items,
    star_of,
    to_scalar,
)
from runnel.compile.scope import Entry, Scope
from runnel.compile.select_generator import build_generated, expand_rows, has_generator
from runnel.compile.select_subqueries import filled_select, lifted_select
from runnel.compile.session_windows import attach_sessions, has_sessions
from runnel.compile.subqueries import attach_all, filter_by
from runnel.compile.windows import SelectText, Spell, attach_windows
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder


@dataclass(frozen=True, slots=True)
class SelectItem:
    """A resolved item of the select list and the name others may call it by.

    `origin` is the column that it passes on under its own name.
    """

    name: str | None
    expression: exp.Expr
    origin: Entry | None = None


def build_select(builder: Builder, select: exp.Select, ctes: Mapping[str, Any]) -> Relation:
    """Build a SELECT bottom up, in the order SQL evaluates its clauses."""
    if has_generator(select) and is_grouped(select):
        return build_generated(builder, select, ctes)
    node, scope = rows_of(builder, select, ctes)
    written = select
    select, early, late = lifted_select(select)
    node, values = attach_all(builder, node, scope, early, ctes)
    select = filled_select(select, values)
    node, scope, generated = expand_rows(builder, select, node, scope)
    builder.ties.show_generated(written, generated)
    text = SelectText(generated.shown(written), scope)
    select = generated.shown(select)
    if has_sessions(select):
        select, node, scope = attach_sessions(builder, select, node, scope)
    shown = select_items(select, scope)
    ordering = Ordering.of(select, scope, shown)
    qualify = _qualify(select, scope, shown)
    keys = [SelectItem(None, e) for e, _ in ordering.keys] if ordering else []
    items = [*shown, *keys, *([SelectItem(None, qualify)] if qualify is not None else [])]
    spell: Spell = scope.spell
    if is_grouped(select):
        grouped = build_grouping(builder, select, node, scope, items)
        node, values = attach_all(builder, grouped.node, grouped.scope, late, ctes)
        items = _filled(grouped.items, values)
        spell = _speller(grouped.meanings, scope)
        if grouped.having is not None:
            having = conjuncts(fill(grouped.having, values))
            node = Filter(node, tuple(to_scalar(c) for c in having))
    node, expressions = attach_windows(builder, node, [i.expression for i in items], spell, text)
    if qualify is not None:
        node = Filter(node, tuple(to_scalar(c) for c in conjuncts(expressions.pop())))
    node, outputs = _output(builder, select, node, expressions, len(shown), ordering)
    named = zip((item.name for item in shown), outputs, strict=True)
    return Relation(node, tuple(named), tuple(item.origin for item in shown))


def _output(
    builder: Builder,
    select: exp.Select,
    node: Node,
    expressions: list[exp.Expr],
    shown: int,
    ordering: Ordering | None,
) -> tuple[Node, tuple[Column, ...]]:
    """The select list, DISTINCT, then LIMIT; its keys stand after the shown expressions."""
    places = ordering.places(expressions) if ordering is not None else []
    node, columns = project(builder, node, expressions)
    outputs, keys = columns[:shown], tuple(columns[place] for place in places)
    if is_distinct := select.args.get("distinct"):
        if is_distinct.args.get("on"):
            raise NotDifferentiable(
                "DISTINCT ON",
                hint="write QUALIFY ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) = 1, or "
                "give the query as dialect postgres",
            )
        if any(place >= shown for place in places):
            raise InvalidQuery(
                "SELECT DISTINCT is ordered by something that is not in the select list",
                hint="add it to the select list",
            )
        node = distinct(Project(node, identity(outputs)))
    if ordering is not None:
        node = ordering.apply(builder, node, outputs, keys)
    return node, outputs


def _qualify(select: exp.Select, scope: Scope, items: list[SelectItem]) -> exp.Expr | None:
    qualify = select.args.get("qualify")
    if qualify is None:
        return None
    return resolve(qualify.this, scope, aliases_of(items), with_windows=True)


def _speller(meanings: Mapping[str, exp.Expr], scope: Scope) -> Spell:
    """How the text calls keys and aggregates of a grouped query."""

    def replace(node: exp.Expr) -> exp.Expr:
        name = marked(node)
        return (scope.spell(name) or node) if name is not None else node

    def spell(name: str) -> exp.Expr | None:
        return meanings[name].transform(replace) if name in meanings else None

    return spell


def rows_of(builder: Builder, select: exp.Select, ctes: Mapping[str, Any]) -> tuple[Node, Scope]:
    """FROM and WHERE."""
    node, scope = _from(builder, select, ctes)
    scope = Scope(scope.entries, builder.outer)
    where = select.args.get("where")
    return (filter_by(builder, node, scope, where.this, ctes) if where else node), scope


def _filled(items: list[SelectItem], values: Mapping[str, exp.Expr]) -> list[SelectItem]:
    return [SelectItem(i.name, fill(i.expression, values)) for i in items]


def project(
    builder: Builder, node: Node, expressions: list[exp.Expr]
) -> tuple[Node, tuple[Column, ...]]:
    """Compute resolved expressions over a node; a bare column keeps its type without asking."""
    scalars = [to_scalar(e) for e in expressions]
    columns = tuple(builder.fresh(type_) for type_ in builder.types_of(scalars))
    return Project(node, tuple(zip(columns, scalars, strict=True))), columns


def select_items(select: exp.Select, scope: Scope) -> list[SelectItem]:
    """Expand stars, resolve columns; an alias may be used by the items after it."""
    items: list[SelectItem] = []
    aliases: dict[str, exp.Expr] = {}
    for node in select.expressions:
        if (star := star_of(node)) is not None:
            items.extend(_expand(star, node, scope))
            continue
        with at(node):
            expression = resolve(node.unalias(), scope, aliases, with_windows=True)
        name = node.alias or (node.name if isinstance(node, (exp.Column, exp.Dot)) else None)
        items.append(_item(node, name if marked(node) is None else None, expression, scope))
        if node.alias:
            aliases[node.alias.lower()] = expression
    return items


def _item(node: exp.Expr, name: str | None, expression: exp.Expr, scope: Scope) -> SelectItem:
    column = marked(expression) if isinstance(node, exp.Column) else None
    return SelectItem(name, expression, scope.origin(column, name) if column else None)


def _from(builder: Builder, select: exp.Select, ctes: Mapping[str, Any]) -> tuple[Node, Scope]:
    from_ = select.args.get("from_")
    node: Node = OneRow()
    scope = Scope(())
    if from_ is not None:
        node, scope = builder.joined(from_.this, select.args.get("joins") or [], ctes)
    for lateral in select.args.get("laterals") or ():
        node, scope = lateral_view(builder, node, scope, lateral)
    return node, scope


def _expand(star: exp.Star, node: exp.Expr, scope: Scope) -> list[SelectItem]:
    if star.args.get("rename"):
        raise NotDifferentiable("* RENAME", hint="list the columns")
    # |> SET x = ... is read as * REPLACE.
    replaced = {e.alias.lower(): e.this for e in star.args.get("replace") or ()}
    found = []
    for name, shown in star_items(node, scope):
        value = replaced.get((name or "").lower())
        with at(value or node):
            made = resolve(value, scope, with_windows=True) if value else shown
        column = None if value else marked(shown)
        found.append(SelectItem(name, made, scope.origin(column, name) if column else None))
    if not found:
        raise InvalidQuery("* stands for no column here")
    return found
