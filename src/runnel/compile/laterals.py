"""Table functions in FROM: LATERAL VIEW, JOIN LATERAL, and those that stand by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.algebra.nodes import Filter, Generate, Node, OneRow
from runnel.algebra.scalar import Scalar
from runnel.compile.generators import Generator, Outputs, generate, generator_of
from runnel.compile.inline_tables import inline_table, range_table
from runnel.compile.matching_elements import keep_matching
from runnel.compile.scalars import conjuncts, function_name, resolve, to_scalar
from runnel.compile.scope import Entry, Scope
from runnel.errors import NotDifferentiable

if TYPE_CHECKING:
    from runnel.compile.build import Builder


def lateral_view(
    builder: Builder, node: Node, scope: Scope, lateral: exp.Lateral
) -> tuple[Node, Scope]:
    """The rows with what a LATERAL VIEW gives for each; it sees the columns before it."""
    seen = Scope(scope.entries, builder.outer)
    lateral = builder.local_times.view(
        lateral, lambda time: builder.types_of([to_scalar(resolve(time, seen))])[0]
    )
    generator = _generator(lateral.this).outer(bool(lateral.args.get("outer")))
    return _widened(builder, node, scope, generator, lateral)


def is_lateral_function(node: exp.Expr) -> bool:
    """Whether a FROM item calls a table function that sees the items before it."""
    if isinstance(node, exp.Lateral):
        return not isinstance(node.this, exp.Query) and function_name(node.this) != "range"
    return isinstance(node, exp.Unnest)


def join_lateral(builder: Builder, node: Node, scope: Scope, join: exp.Join) -> tuple[Node, Scope]:
    """JOIN LATERAL f(...): without partners a row goes, after LEFT it stays."""
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if side not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER"):
        raise NotDifferentiable(f"{side or kind} JOIN LATERAL", hint="use JOIN or LEFT JOIN")
    if join.args.get("using") or join.method:
        raise NotDifferentiable("JOIN LATERAL with USING or NATURAL", hint="write it with ON")
    generator = _generator(join.this if isinstance(join.this, exp.Unnest) else join.this.this)
    before = Scope(scope.entries, builder.outer)
    made, scope = _widened(builder, node, scope, generator.outer(side == "LEFT"), join.this)
    conditions = _conditions(join.args.get("on"), Scope(scope.entries, builder.outer))
    if not conditions:
        return made, scope
    if side == "LEFT":
        return keep_matching(builder, made, generator, before, conditions), scope
    return Filter(made, conditions), scope


def _conditions(on: exp.Expr | None, seen: Scope) -> tuple[Scalar, ...]:
    found = [c for c in conjuncts(on) if c != exp.true()] if on is not None else []
    return tuple(to_scalar(resolve(c, seen)) for c in found)


def table_function(builder: Builder, node: exp.Expr) -> tuple[Node, Scope]:
    """A FROM item that is no table and reads no other: VALUES, range(), explode(array(...))."""
    if isinstance(node, exp.Values):
        return inline_table(builder, node)
    function = node if isinstance(node, exp.Unnest) else node.this
    if function_name(function) == "range":
        made, outputs = range_table(builder, function.expressions, _names(node))
        return made, Scope(_entries(outputs, node))
    return _widened(builder, OneRow(), Scope(()), _generator(function), node)


def _generator(function: exp.Expr) -> Generator:
    generator = generator_of(function)
    if generator is not None:
        return generator
    if isinstance(function, exp.Unnest):
        raise NotDifferentiable(
            "UNNEST of several arrays or with positions",
            hint="use inline(arrays_zip(...)) or posexplode(...)",
        )
    raise NotDifferentiable(
        f"the table function {function.sql('spark')[:60]}", hint="use refresh mode FULL or AUTO"
    )


def _widened(
    builder: Builder, node: Node, scope: Scope, generator: Generator, item: exp.Expr
) -> tuple[Generate, Scope]:
    seen = Scope(scope.entries, builder.outer)
    made, outputs = generate(builder, node, seen, generator, _names(item))
    return made, Scope(scope.entries + _entries(outputs, item))


def _entries(outputs: Outputs, item: exp.Expr) -> tuple[Entry, ...]:
    return tuple(Entry(item.alias or None, name, column) for name, column in outputs)


def _names(item: exp.Expr) -> tuple[str, ...]:
    alias = item.args.get("alias")
    return tuple(c.name for c in alias.args.get("columns") or ()) if alias is not None else ()
