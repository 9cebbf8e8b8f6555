"""Expressions of the syntax tree to scalars of the operator tree.

Columns are first replaced by marks (`resolve`), so that two spellings of one column compare equal;
`to_scalar` then cuts the text at the marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from runnel.algebra.scalar import Scalar
from runnel.compile.dialect import SparkSql
from runnel.compile.lambda_variables import rename_variables
from runnel.compile.scope import Scope, parts_of
from runnel.compile.type_text import fields_of
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

_MARK = re.compile(r"__rnmark_(\w+?)__")
_GENERATORS = (exp.Explode, exp.Inline, exp.Unnest)
_GENERATOR_NAMES = frozenset(
    {"stack", "json_tuple", "inline_outer", "variant_explode", "variant_explode_outer"}
)


def mark(column: str) -> exp.Column:
    """The syntax node that stands for a column of the operator tree."""
    return exp.Column(this=exp.Identifier(this=f"__rnmark_{column}__", quoted=False))


def marked(node: exp.Expr) -> str | None:
    """The column a mark stands for."""
    if isinstance(node, exp.Column):
        match = _MARK.fullmatch(node.name)
        return match.group(1) if match else None
    return None


def resolve(
    node: exp.Expr,
    scope: Scope,
    aliases: Mapping[str, exp.Expr] | None = None,
    with_windows: bool = False,
) -> exp.Expr:
    """A copy of the expression with every column replaced by its mark.

    `aliases` are other names in sight (of the SELECT list); the columns of FROM win over them, and
    they win over those of the query around.
    """
    node = rename_variables(_spread(node.copy(), scope))
    check_expression(node, with_windows)

    def replace(inner: exp.Expr) -> exp.Expr:
        if isinstance(inner, exp.Column) and marked(inner) is None:
            return _lookup(inner, scope, aliases or {})
        return inner

    return node.transform(replace)


def star_of(node: exp.Expr) -> exp.Star | None:
    """The star of `*` and `t.*`."""
    if isinstance(node, exp.Column):
        node = node.this
    return node if isinstance(node, exp.Star) else None


def star_items(node: exp.Expr, scope: Scope) -> list[tuple[str | None, exp.Expr]]:
    """What `*`, `t.*` or `s.*` stands for, but for what EXCEPT names; s is a column with fields."""
    star = star_of(node)
    hidden = {e.name.lower() for e in (star.args.get("except_") if star else None) or ()}
    parts = [part.name for part in node.parts[:-1]] if isinstance(node, exp.Column) else []
    entries = scope.table(parts) if parts else scope.star()
    found: list[tuple[str | None, exp.Expr]] = [(e.name, mark(e.column.name)) for e in entries]
    if parts and not entries:
        found = list(_fields(parts, scope))
    return [item for item in found if (item[0] or "").lower() not in hidden]


def _fields(parts: list[str], scope: Scope) -> Iterator[tuple[str, exp.Expr]]:
    """The fields of the struct that a name means."""
    column, inner = scope.resolve_here(parts) or (None, [])
    fields = fields_of(column.type) if column is not None else None
    for name in inner:
        types = {field.lower(): type_ for field, type_ in fields or ()}
        fields = fields_of(types.get(name.lower(), ""))
    if column is None or fields is None:
        raise InvalidQuery(
            f"{'.'.join(parts)}.* names no table of the FROM clause, and no column with fields"
        )
    for name, _ in fields:
        yield name, _dotted(mark(column.name), [*inner, name])


def _spread(node: exp.Expr, scope: Scope) -> exp.Expr:
    """The expression with columns in the place of each star among a function's arguments."""
    for inner in list(node.walk(prune=lambda n: isinstance(n, exp.Query))):
        if not isinstance(inner, (exp.Func, exp.Distinct)) or _counts_rows(inner):
            continue
        first, arguments = inner.args.get("this"), inner.expressions
        if isinstance(first, exp.Expr) and star_of(first) is not None:
            column, *more = _spread_star(first, scope, inner)
            inner.set("this", column)
            inner.set("expressions", [*more, *arguments])
        elif any(star_of(argument) is not None for argument in arguments):
            spread = (_spread_star(argument, scope, inner) for argument in arguments)
            inner.set("expressions", [column for columns in spread for column in columns])
    return node


def _counts_rows(node: exp.Expr) -> bool:
    return isinstance(node, exp.Count) and node.this == exp.Star()


def _spread_star(argument: exp.Expr, scope: Scope, function: exp.Expr) -> list[exp.Expr]:
    if star_of(argument) is None:
        return [argument]
    items = star_items(argument, scope)
    if not isinstance(function, exp.Struct):
        return [value for _, value in items]
    return [
        exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=value)
        for name, value in items
    ]


def to_scalar(node: exp.Expr) -> Scalar:
    """The scalar for a resolved expression."""
    text = _text(node)
    pieces: list[str] = []
    columns: list[str] = []
    position = 0
    for match in _MARK.finditer(text):
        pieces.append(text[position : match.start()])
        columns.append(match.group(1))
        position = match.end()
    pieces.append(text[position:])
    return Scalar(tuple(pieces), tuple(columns))


def _text(node: exp.Expr) -> str:
    """Spark SQL for an expression; what cannot be written as it was meant is refused."""
    try:
        return node.sql(SparkSql, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise NotDifferentiable(
            f"an expression with {node.key}()",
            detail=str(error),
            hint="use refresh mode FULL or AUTO",
        ) from None


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """Split an AND chain."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        return conjuncts(node.left) + conjuncts(node.right)
    return [node]


def column_type(columns: tuple[Column, ...], name: str) -> str:
    return next(c.type for c in columns if c.name == name)


def check_expression(node: exp.Expr, with_windows: bool = False) -> None:
    """Refuse what the differential engine cannot keep inside an expression."""
    for inner in node.walk():
        if isinstance(inner, exp.Window) and not with_windows:
            raise NotDifferentiable(
                f"the window function {inner.this.sql('spark')} OVER (...) in this place",
                hint="compute it in a FROM subquery",
            )
        if isinstance(inner, exp.Query) or isinstance(inner.args.get("query"), exp.Query):
            raise NotDifferentiable(
                "a subquery inside an expression",
                detail=f"found {_shorten(inner.sql('spark'))}",
                hint="write it as a join, or use refresh mode FULL or AUTO",
            )
        if isinstance(inner, exp.Star) and not isinstance(inner.parent, exp.Count):
            raise NotDifferentiable("* inside a function", hint="list the columns")
        if isinstance(inner, _GENERATORS) or function_name(inner) in _GENERATOR_NAMES:
            raise NotDifferentiable(
                f"the table function {_shorten(inner.sql('spark'))} inside an expression",
                hint="put it into a LATERAL VIEW and use its columns",
            )


def _lookup(column: exp.Column, scope: Scope, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
    parts = parts_of(column)
    found = scope.resolve_here(parts)
    if found is None and parts[0].lower() not in aliases:
        found = scope.resolve(parts)
    if found is not None:
        resolved, fields = found
        return _dotted(_mark_at(resolved.name, column), fields)
    if parts[0].lower() in aliases:
        alias = _dotted(aliases[parts[0].lower()].copy(), parts[1:])
        return exp.Paren(this=alias) if not isinstance(alias, exp.Column) else alias
    raise InvalidQuery(f"column {'.'.join(parts)} is not found in the FROM clause")


def _dotted(node: exp.Expr, fields: list[str]) -> exp.Expr:
    for field in fields:
        node = exp.Dot(this=node, expression=exp.Identifier(this=field, quoted=True))
    return node


def _mark_at(name: str, column: exp.Column) -> exp.Column:
    """A mark that knows where the column stood in the text."""
    made = mark(name)
    places = [part.meta for part in column.parts if "start" in part.meta]
    if places:
        made.this.meta.update(start=places[0]["start"], end=places[-1]["end"])
    return made


def function_name(node: exp.Expr) -> str | None:
    """The name of the function that a node calls, in lower case."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else None


def _shorten(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
