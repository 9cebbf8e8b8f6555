"""Table functions over the rows of a node: explode, posexplode, inline, stack and the like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.algebra.nodes import Generate, Node, Project, identity
from runnel.algebra.scalar import Scalar
from runnel.compile.scalars import function_name, resolve, to_scalar
from runnel.compile.scope import Scope
from runnel.compile.type_text import element_of, entry_of, fields_of
from runnel.compile.unify import call, unify
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder

_OF_VARIANT = "variant_explode"
_WITH_OUTER = frozenset({"explode", "posexplode", "inline", _OF_VARIANT})
_FUNCTIONS = _WITH_OUTER | {"stack", "json_tuple"}

Outputs = tuple[tuple[str | None, Column], ...]


@dataclass(frozen=True, slots=True)
class Generator:
    """A call of a table function. `is_outer`: a row for which it gives nothing stays."""

    function: str
    arguments: tuple[exp.Expr, ...]
    is_outer: bool = False

    def outer(self, is_outer: bool) -> Generator:
        return replace(self, is_outer=self.is_outer or is_outer)


def generator_of(node: exp.Expr) -> Generator | None:
    """The table function that a syntax node calls; None when it is none that is kept."""
    if isinstance(node, exp.Unnest):
        # Arrays side by side, positions and the like are more than explode.
        others = any(v for n, v in node.args.items() if n not in ("expressions", "alias"))
        is_plain = len(node.expressions) == 1 and not others
        return Generator("explode", tuple(node.expressions)) if is_plain else None
    name = function_name(node) or ""
    function = name.removesuffix("_outer")
    if function not in _FUNCTIONS or (function != name and function not in _WITH_OUTER):
        return None
    first = [] if isinstance(node, exp.Anonymous) else [node.this]
    arguments = (*first, *(node.args.get("expressions") or ()))
    if any(isinstance(a, exp.Kwarg) for a in arguments):
        raise NotDifferentiable(f"{name}() with named arguments", hint="leave out the names")
    return Generator(function, arguments, function != name)


def generate(
    builder: Builder,
    node: Node,
    scope: Scope,
    generator: Generator,
    names: Sequence[str] = (),
) -> tuple[Generate, Outputs]:
    """The rows with what the function gives for each, its columns called by `names` if given."""
    arguments = [to_scalar(resolve(a, scope)) for a in generator.arguments]
    node, arguments = _with_outer(builder, node, arguments)
    function, found = _described(builder, node, generator.function, arguments)
    if names and len(names) != len(found):
        raise InvalidQuery(
            f"{len(names)} names for the {len(found)} columns of {generator.function}()"
        )
    columns = tuple(builder.fresh(type_) for _, type_ in found)
    called = names or [name for name, _ in found]
    made = Generate(node, function, columns, generator.is_outer)
    return made, tuple(zip(called, columns, strict=True))


def _with_outer(builder: Builder, node: Node, arguments: list[Scalar]) -> tuple[Node, list[Scalar]]:
    """What reads the query around becomes a column first: rows can be given that for each value."""
    own = {c.name for c in node.columns}
    outer = [argument for argument in arguments if not argument.reads <= own]
    if not outer:
        return node, arguments
    columns = [builder.fresh(type_) for type_ in builder.types_of(outer)]
    made = dict(zip(outer, columns, strict=True))
    items = tuple((column, argument) for argument, column in made.items())
    read = [Scalar.column(made[a].name) if a in made else a for a in arguments]
    return Project(node, (*identity(node.columns), *items)), read


def _described(
    builder: Builder, node: Node, function: str, arguments: list[Scalar]
) -> tuple[Scalar, list[tuple[str, str]]]:
    """The call as it is written, and the names and types of its columns as Spark gives them."""
    if function == "stack":
        return _stack(builder, node, arguments)
    if function == "json_tuple":
        return call(function, arguments), [(f"c{i}", "string") for i in range(len(arguments) - 1)]
    (type_,) = builder.types_of(arguments)
    columns = _columns(function, type_)
    if columns is None:
        raise InvalidQuery(f"{function}() of a {type_}")
    position = [("pos", "int")] if function == "posexplode" else []
    return call(function, arguments), [*position, *columns]


def _columns(function: str, type_: str) -> list[tuple[str, str]] | None:
    if function == _OF_VARIANT:
        given = [("pos", "int"), ("key", "string"), ("value", "variant")]
        return given if type_ == "variant" else None
    return _fields(type_) if function == "inline" else _elements(type_)


def _elements(type_: str) -> list[tuple[str, str]] | None:
    entry, element = entry_of(type_), element_of(type_)
    if entry is not None:
        return [("key", entry[0]), ("value", entry[1])]
    return [("col", element)] if element is not None else None


def _fields(type_: str) -> list[tuple[str, str]] | None:
    fields = fields_of(element_of(type_) or "")
    return list(fields) if fields is not None else None


def _stack(
    builder: Builder, node: Node, arguments: list[Scalar]
) -> tuple[Scalar, list[tuple[str, str]]]:
    count, cells = arguments[0].render(), arguments[1:]
    if not count.isdecimal() or int(count) < 1 or not cells:
        raise NotDifferentiable(
            "stack() with a computed number of rows", hint="write it as a plain number"
        )
    width = -(-len(cells) // int(count))
    return stacked(builder, node, [cells[i : i + width] for i in range(0, len(cells), width)],
                   "stack()", int(count))  # fmt: skip


def stacked(
    builder: Builder,
    node: Node,
    rows: Sequence[Sequence[Scalar]],
    construct: str,
    count: int | None = None,
) -> tuple[Scalar, list[tuple[str, str]]]:
    """The call that gives these rows, cells brought to one type a column; missing ones are NULL."""
    count = count or len(rows)
    width = len(rows[0])
    missing = [Scalar.constant("NULL")] * (count * width - sum(len(row) for row in rows))
    cells = [cell for row in rows for cell in row] + missing
    types = []
    columns = builder.columns_of(cells)
    for place in range(width):
        type_, cast = unify(builder, columns, cells[place::width], construct)
        cells[place::width] = cast
        types.append((f"col{place}", type_))
    return call("stack", [Scalar.constant(str(count)), *cells]), types
