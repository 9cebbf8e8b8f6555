"""One SELECT: FROM, WHERE, grouping, HAVING, the select list, DISTINCT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from runnel.algebra.nodes import Filter, Node, OneRow, Project, distinct
from runnel.algebra.scalar import Scalar
from runnel.compile.grouping import build_grouping, is_grouped
from runnel.compile.laterals import lateral_view
from runnel.compile.lifting import fill, lift
from runnel.compile.ordering import Ordering, is_limited
from runnel.compile.places import at
from runnel.compile.relation import Relation
from runnel.compile.scalars import column_type, conjuncts, mark, marked, resolve, to_scalar
from runnel.compile.scope import Scope
from runnel.compile.select_generator import build_generated, has_generator
from runnel.compile.subqueries import attach_all, filter_by
from runnel.compile.windows import Spell, attach_windows
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder


@dataclass(frozen=True, slots=True)
class SelectItem:
    """A resolved item of the select list and the name others may call it by."""

    name: str | None
    expression: exp.Expr


def build_select(builder: Builder, select: exp.Select, ctes: Mapping[str, Any]) -> Relation:
    """Build a SELECT bottom up, in the order SQL evaluates its clauses."""
    if has_generator(select):
        return build_generated(builder, select, ctes)
    node, scope, _ = rows_of(builder, select, ctes, None)
    select, pending = _lifted(select)
    shown = select_items(select, scope)
    ordering = Ordering.of(select, scope, shown)
    qualify = _qualify(select, scope, shown)
    keys = [SelectItem(None, e) for e, _ in ordering.keys] if ordering else []
    items = [*shown, *keys, *([SelectItem(None, qualify)] if qualify is not None else [])]
    spell: Spell = scope.spell
    if is_grouped(select):
        grouped = build_grouping(builder, select, node, scope, items)
        node, values = attach_all(builder, grouped.node, Scope(()), pending, ctes)
        items = _filled(grouped.items, values)
        spell = _speller(grouped.meanings, scope)
        if grouped.having is not None:
            having = conjuncts(fill(grouped.having, values))
            node = Filter(node, tuple(to_scalar(c) for c in having))
    else:
        if select.args.get("having"):
            raise NotDifferentiable("HAVING without aggregation")
        node, values = attach_all(builder, node, scope, pending, ctes)
        items = _filled(items, values)
    node, expressions = attach_windows(builder, node, [i.expression for i in items], spell)
    if qualify is not None:
        node = Filter(node, tuple(to_scalar(c) for c in conjuncts(expressions.pop())))
    node, outputs = _output(builder, select, node, expressions, len(shown), ordering)
    return Relation(node, tuple(zip((item.name for item in shown), outputs, strict=True)))


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
            raise NotDifferentiable("DISTINCT ON")
        if any(place >= shown for place in places):
            raise InvalidQuery(
                "SELECT DISTINCT is ordered by something that is not in the select list",
                hint="add it to the select list",
            )
        node = distinct(Project(node, tuple((c, Scalar.column(c.name)) for c in outputs)))
    if ordering is not None:
        node = ordering.apply(builder, node, outputs, keys)
    return node, outputs


def _qualify(select: exp.Select, scope: Scope, items: list[SelectItem]) -> exp.Expr | None:
    qualify = select.args.get("qualify")
    if qualify is None:
        return None
    aliases = {i.name.lower(): i.expression for i in items if i.name}
    return resolve(qualify.this, scope, aliases, with_windows=True)


def _speller(meanings: Mapping[str, exp.Expr], scope: Scope) -> Spell:
    """How the text calls keys and aggregates of a grouped query."""

    def replace(node: exp.Expr) -> exp.Expr:
        name = marked(node)
        return (scope.spell(name) or node) if name is not None else node

    def spell(name: str) -> exp.Expr | None:
        return meanings[name].transform(replace) if name in meanings else None

    return spell


def select_rows(
    builder: Builder, select: exp.Select, ctes: Mapping[str, Any], outer: Scope
) -> tuple[Node, tuple[Scalar, ...], list[exp.Expr]]:
    """The rows of a SELECT that neither groups nor limits, for a test that only compares them.

    Its output as expressions over the rows, and its conditions that read the outer query.
    """
    node, scope, correlated = rows_of(builder, select, ctes, outer)
    if correlated:
        refuse_whole(select)
    items = select_items(select, scope)
    return node, tuple(to_scalar(item.expression) for item in items), correlated


def needs_whole(select: exp.Select) -> bool:
    """Whether a row of the result depends on the other rows, other than by grouping."""
    own = select.walk(prune=lambda n: isinstance(n, exp.Query) and n is not select)
    return is_limited(select) or any(isinstance(node, exp.Window) for node in own)


def refuse_whole(select: exp.Select) -> None:
    """Refuse a correlated subquery that looks at several of its rows."""
    if needs_whole(select):
        raise NotDifferentiable(
            "LIMIT or a window function in a correlated subquery",
            hint="use a window function in a FROM subquery and join it",
        )


def rows_of(
    builder: Builder, select: exp.Select, ctes: Mapping[str, Any], outer: Scope | None
) -> tuple[Node, Scope, list[exp.Expr]]:
    """FROM and WHERE, and the resolved conjuncts of WHERE that read the outer query."""
    node, scope = _from(builder, select, ctes)
    scope = Scope(scope.entries, outer)
    where = select.args.get("where")
    if where is None:
        return node, scope, []
    node, correlated = filter_by(builder, node, scope, where.this, ctes)
    return node, scope, correlated


def _lifted(select: exp.Select) -> tuple[exp.Select, dict[str, exp.Expr]]:
    """The SELECT without the subqueries of its list and HAVING, and these by slot."""
    if not any(e.find(exp.Query) for e in (*select.expressions, select.args.get("having")) if e):
        return select, {}
    copy = select.copy()
    pending: dict[str, exp.Expr] = {}
    shown = []
    for node in copy.expressions:
        lifted, found = lift(node)
        shown.append(lifted)
        pending |= found
    copy.set("expressions", shown)
    if having := copy.args.get("having"):
        lifted, found = lift(having.this)
        having.set("this", lifted)
        pending |= found
    return copy, pending


def _filled(items: list[SelectItem], values: Mapping[str, exp.Expr]) -> list[SelectItem]:
    return [SelectItem(i.name, fill(i.expression, values)) for i in items]


def project(
    builder: Builder, node: Node, expressions: list[exp.Expr]
) -> tuple[Node, tuple[Column, ...]]:
    """Compute resolved expressions over a node; a bare column keeps its type without asking."""
    scalars = [to_scalar(e) for e in expressions]
    computed = [s for s in scalars if s.bare_column is None]
    answers = iter(
        builder.typer.types(node.columns, [s.render() for s in computed]) if computed else ()
    )
    columns = tuple(
        builder.fresh(column_type(node.columns, s.bare_column) if s.bare_column else next(answers))
        for s in scalars
    )
    return Project(node, tuple(zip(columns, scalars, strict=True))), columns


def select_items(select: exp.Select, scope: Scope) -> list[SelectItem]:
    """Expand stars, resolve columns; an alias may be used by the items after it."""
    items: list[SelectItem] = []
    aliases: dict[str, exp.Expr] = {}
    for node in select.expressions:
        if (star := _star(node)) is not None:
            items.extend(_expand(star, node, scope))
            continue
        with at(node):
            expression = resolve(node.unalias(), scope, aliases, with_windows=True)
        name = node.alias or (node.name if isinstance(node, (exp.Column, exp.Dot)) else None)
        items.append(SelectItem(name, expression))
        if node.alias:
            aliases[node.alias.lower()] = expression
    return items


def _from(builder: Builder, select: exp.Select, ctes: Mapping[str, Any]) -> tuple[Node, Scope]:
    from_ = select.args.get("from_")
    node: Node = OneRow()
    scope = Scope(())
    if from_ is not None:
        node, scope = builder.joined(from_.this, select.args.get("joins") or [], ctes)
    for lateral in select.args.get("laterals") or ():
        node, scope = lateral_view(builder, node, scope, lateral)
    return node, scope


def _star(node: exp.Expr) -> exp.Star | None:
    if isinstance(node, exp.Star):
        return node
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        return node.this
    return None


def _expand(star: exp.Star, node: exp.Expr, scope: Scope) -> list[SelectItem]:
    if star.args.get("replace") or star.args.get("rename"):
        raise NotDifferentiable("* REPLACE or RENAME", hint="list the columns")
    hidden = {e.name.lower() for e in star.args.get("except_") or ()}
    qualifier = node.table if isinstance(node, exp.Column) else None
    found = [
        SelectItem(e.name, mark(e.column.name))
        for e in scope.star(qualifier or None)
        if (e.name or "").lower() not in hidden
    ]
    if not found:
        raise InvalidQuery("* stands for no column here")
    return found
