"""Expressions of the syntax tree to scalars of the operator tree.

Columns are first replaced by marks (`resolve`), so that two spellings of one column compare equal;
`to_scalar` then cuts the text at the marks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from runnel.algebra.scalar import Scalar
from runnel.compile.dialect import SparkSql
from runnel.compile.lambda_variables import rename_variables
from runnel.compile.scope import Entry, Scope, parts_of
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


def star_entries(node: exp.Expr, scope: Scope) -> list[Entry]:
    """The columns that `*` or `t.*` stands for, but for those that EXCEPT names."""
    star = star_of(node)
    hidden = {e.name.lower() for e in (star.args.get("except_") if star else None) or ()}
    qualifier = node.table if isinstance(node, exp.Column) else None
    found = scope.star(qualifier or None)
    return [entry for entry in found if (entry.name or "").lower() not in hidden]


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
    entries = star_entries(argument, scope)
    if not isinstance(function, exp.Struct):
        return [mark(entry.column.name) for entry in entries]
    names = [exp.to_identifier(entry.name, quoted=True) for entry in entries]
    return [
        exp.PropertyEQ(this=name, expression=mark(entry.column.name))
        for name, entry in zip(names, entries, strict=True)
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
        node: exp.Expr = _mark_at(resolved.name, column)
        for field in fields:
            node = exp.Dot(this=node, expression=exp.Identifier(this=field, quoted=True))
        return node
    if parts[0].lower() in aliases:
        alias: exp.Expr = aliases[parts[0].lower()].copy()
        for field in parts[1:]:
            alias = exp.Dot(this=alias, expression=exp.Identifier(this=field, quoted=True))
        return exp.Paren(this=alias) if not isinstance(alias, exp.Column) else alias
    raise InvalidQuery(f"column {'.'.join(parts)} is not found in the FROM clause")


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
