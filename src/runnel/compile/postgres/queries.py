"""Queries: WITH, set operations, VALUES; a SELECT is translated in its own file."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from runnel.compile.places import at
from runnel.compile.postgres.casts import coerce, typed
from runnel.compile.postgres.expressions import Expressions
from runnel.compile.postgres.ordering import direction
from runnel.compile.postgres.relation import Columns, Known, Relation
from runnel.compile.postgres.scope import Scope, folded, write_name
from runnel.compile.postgres.select import limits, translate_select
from runnel.compile.postgres.types import UNKNOWN, Type, common
from runnel.compile.postgres.values import Value, cast, refused
from runnel.errors import InvalidQuery

_TAIL = frozenset({"order", "limit", "offset"})
_HANDLED: dict[type[exp.Expr], frozenset[str]] = {
    exp.SetOperation: frozenset({"with_", "this", "expression", "distinct"}) | _TAIL,
    exp.Subquery: frozenset({"with_", "this", "alias"}) | _TAIL,
    exp.Values: frozenset({"with_", "expressions", "alias"}) | _TAIL,
}


def translate_query(node: exp.Expr, known: Known, outer: Scope) -> Relation:
    """Any query."""
    with at(node):
        return _translated(node, known, outer)


def _translated(node: exp.Expr, known: Known, outer: Scope) -> Relation:
    with_ = node.args.get("with_")
    if with_ is None:
        return _body(node, known, outer)
    texts, known = _ctes(with_, known, outer)
    body = _body(node, known, outer)
    word = "WITH RECURSIVE" if with_.args.get("recursive") else "WITH"
    return Relation(f"{word} {', '.join(texts)} {body.sql}", body.columns)


def _body(node: exp.Expr, known: Known, outer: Scope) -> Relation:
    if isinstance(node, exp.Select):
        return translate_select(node, known, outer, translate_query)
    _check(node)
    if isinstance(node, exp.Subquery):
        inner = translate_query(node.this, known, outer)
        tail = _tail(node, inner.columns)
        return Relation(
            f"SELECT * FROM ({inner.sql}) AS q{tail}" if tail else inner.sql, inner.columns
        )
    if isinstance(node, exp.SetOperation):
        return _set_operation(node, known, outer)
    if isinstance(node, exp.Values):
        return values(node, Expressions(outer, known, translate_query))
    raise refused(f"the query form {node.key.upper()}")


def _check(node: exp.Expr) -> None:
    for kind, handled in _HANDLED.items():
        if isinstance(node, kind):
            for name, value in node.args.items():
                if value and name not in handled:
                    raise refused(f"the clause {name.rstrip('_').upper()}")


def _ctes(with_: exp.Expr, known: Known, outer: Scope) -> tuple[list[str], Known]:
    texts = []
    for cte in with_.expressions:
        if not isinstance(cte.this, exp.Query):
            raise refused("a statement other than a query in WITH")
        name = folded(cte.args["alias"].this)
        names = [folded(c) for c in cte.args["alias"].args.get("columns") or ()]
        inside = known
        if with_.args.get("recursive") and _reads(cte.this, name):
            inside = known.with_cte(name, _anchor(cte.this, names, known, outer))
        body = translate_query(cte.this, inside, outer)
        columns = renamed(body.columns, names)
        listed = ", ".join(write_name(n) for n, _ in columns)
        texts.append(f"{write_name(name)}({listed}) AS ({body.sql})")
        known = known.with_cte(name, columns)
    return texts, known


def _reads(query: exp.Expr, name: str) -> bool:
    return any(t.name.lower() == name.lower() and not t.db for t in query.find_all(exp.Table))


def _anchor(query: exp.Expr, names: Sequence[str], known: Known, outer: Scope) -> Columns:
    if not isinstance(query, exp.Union):
        raise refused("a recursive query that is no UNION")
    return renamed(translate_query(query.left, known, outer).columns, names)


def renamed(columns: Columns, names: Sequence[str]) -> Columns:
    """The columns under other names; those that are not named keep theirs."""
    if len(names) > len(columns):
        raise InvalidQuery(f"{len(names)} names for {len(columns)} columns")
    kept = columns[len(names) :]
    return (*((n, t) for n, (_, t) in zip(names, columns, strict=False)), *kept)


def _set_operation(node: exp.SetOperation, known: Known, outer: Scope) -> Relation:
    left, right = (translate_query(n, known, outer) for n in (node.left, node.right))
    if len(left.columns) != len(right.columns):
        raise InvalidQuery("both sides of a set operation must have as many columns")
    word = type(node).__name__.upper()
    pairs = zip(_types(node.left, left), _types(node.right, right), strict=True)
    types = [common([a, b], word) for a, b in pairs]
    columns = tuple((name, type_) for (name, _), type_ in zip(left.columns, types, strict=True))
    sides = [_in_types(side, columns) for side in (left, right)]
    sql = f"({sides[0]}) {word}{'' if node.args.get('distinct') else ' ALL'} ({sides[1]})"
    tail = _tail(node, columns)
    return Relation(f"SELECT * FROM ({sql}) AS q{tail}" if tail else sql, columns)


def _types(node: exp.Expr, relation: Relation) -> list[Type]:
    """The types of a side; a bare NULL takes that of the other."""
    types = [type_ for _, type_ in relation.columns]
    shown = node.expressions if isinstance(node, exp.Select) else []
    if len(shown) == len(types):
        return [
            UNKNOWN if isinstance(item.unalias(), exp.Null) else type_
            for item, type_ in zip(shown, types, strict=True)
        ]
    return types


def _in_types(side: Relation, columns: Columns) -> str:
    """A side with its columns brought to the types of the result."""
    if all(_is_same(a, b) for (_, a), (_, b) in zip(side.columns, columns, strict=True)):
        return side.sql
    inner = [f"c{place}" for place in range(len(columns))]
    shown = ", ".join(
        f"{name if _is_same(own, type_) else cast(name, type_)} AS {write_name(called)}"
        for name, (_, own), (called, type_) in zip(inner, side.columns, columns, strict=True)
    )
    return f"SELECT {shown} FROM ({side.sql}) AS s({', '.join(inner)})"


def _is_same(left: Type, right: Type) -> bool:
    return left.kind == right.kind and left.digits == right.digits


def _tail(node: exp.Expr, columns: Columns) -> str:
    """ORDER BY over the columns of the result, when LIMIT gives it a meaning."""
    limit = limits(node)
    if not limit:
        return ""
    order = node.args.get("order")
    items = order.expressions if order is not None else ()
    keys = [f"{_result_column(item.this, columns)}{direction(item)}" for item in items]
    return (f" ORDER BY {', '.join(keys)}" if keys else "") + limit


def _result_column(node: exp.Expr, columns: Columns) -> str:
    if isinstance(node, exp.Literal) and not node.is_string:
        return write_name(columns[int(node.name) - 1][0])
    if isinstance(node, exp.Column) and not node.table:
        return write_name(folded(node.this))
    raise refused("ORDER BY an expression after a set operation", hint="order by a column's name")


def values(node: exp.Expr, x: Expressions) -> Relation:
    """VALUES: each column in one type."""
    rows = [[x.of(cell) for cell in _cells(row)] for row in node.expressions]
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise InvalidQuery("the rows of VALUES must be of one length")
    types = [common([row[i].type for row in rows], "VALUES") for i in range(width)]
    shown = [
        [_cell(coerce(cell, type_), place == 0) for cell, type_ in zip(row, types, strict=True)]
        for place, row in enumerate(rows)
    ]
    names = tuple((f"column{i + 1}", type_) for i, type_ in enumerate(types))
    lines = ", ".join(f"({', '.join(row)})" for row in shown)
    aliases = ", ".join(name for name, _ in names)
    return Relation(f"SELECT * FROM (VALUES {lines}) AS v({aliases})", names)


def _cells(row: exp.Expr) -> list[exp.Expr]:
    return list(row.expressions) if isinstance(row, exp.Tuple) else [row]


def _cell(value: Value, is_first: bool) -> str:
    value = typed(value)
    return cast(value.sql, value.type) if is_first and value.type.kind == "numeric" else value.sql
