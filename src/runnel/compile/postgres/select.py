"""One SELECT, clause by clause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from runnel.compile.postgres.casts import typed
from runnel.compile.postgres.conditions import condition
from runnel.compile.postgres.distinct_on import distinct_on
from runnel.compile.postgres.expressions import Expressions
from runnel.compile.postgres.from_items import from_clause
from runnel.compile.postgres.naming import column_name
from runnel.compile.postgres.ordering import direction, key_text
from runnel.compile.postgres.relation import Known, Relation
from runnel.compile.postgres.scope import Scope, folded, write_name
from runnel.compile.postgres.series import series_item
from runnel.compile.postgres.values import Value, bare, refused
from runnel.errors import InvalidQuery

_Query = Callable[[exp.Expr, Known, Scope], Relation]
_HANDLED = frozenset(
    "with_ expressions distinct from_ joins where group having windows order limit offset".split()
)


@dataclass(frozen=True, slots=True)
class Item:
    """A column of the result."""

    name: str
    value: Value

    @property
    def sql(self) -> str:
        text, name = bare(self.value.sql), write_name(self.name)
        return text if text == name else f"{text} AS {name}"


def translate_select(node: exp.Select, known: Known, outer: Scope, query: _Query) -> Relation:
    for name, value in node.args.items():
        if value and name not in _HANDLED:
            raise refused(f"the clause {name.rstrip('_').upper()}")
    source, scope = from_clause(node, known, outer, query)
    scope = scope.with_aliases(e.alias for e in node.expressions if isinstance(e, exp.Alias))
    windows = {w.name.lower(): w for w in node.args.get("windows") or ()}
    x = Expressions(scope, known, query, windows)
    items = _items(x, node)
    body = source + _conditions(x, node, items)
    columns = tuple((item.name, item.value.type) for item in items)
    on = node.args["distinct"].args.get("on") if node.args.get("distinct") else None
    if on is not None:
        keys = _group_keys(x, on.expressions, items)
        return distinct_on(items, keys, _order(x, node, items, True), body, limits(node))
    word = "SELECT DISTINCT" if node.args.get("distinct") else "SELECT"
    tail = limits(node)
    order = _order(x, node, items, False) if tail else []
    ordered = f" ORDER BY {', '.join(order)}" if order else ""
    shown = ", ".join(item.sql for item in items)
    return Relation(f"{word} {shown}{body}{ordered}{tail}", columns)


def _items(x: Expressions, node: exp.Select) -> list[Item]:
    items: list[Item] = []
    for place, expression in enumerate(node.expressions, 1):
        star = _star(expression)
        if star is not None:
            qualifier = folded(star.args["table"]) if star.args.get("table") else None
            found = x.scope.star(qualifier)
            items += [Item(entry.name, typed(Value(sql, entry.type))) for entry, sql in found]
            continue
        inner = expression.this if isinstance(expression, exp.Alias) else expression
        value = series_item(x, inner) or x.of(inner)
        items.append(Item(column_name(expression, place), _shown(value)))
    return items


def _star(node: exp.Expr) -> exp.Expr | None:
    is_star = isinstance(node, exp.Star) or isinstance(getattr(node, "this", None), exp.Star)
    return node if is_star and isinstance(node, (exp.Star, exp.Column)) else None


def _shown(value: Value) -> Value:
    if value.interval is not None:
        raise refused(
            "an interval as a column", detail="it cannot be stored",
            hint="extract(epoch from ...) gives its seconds",
        )  # fmt: skip
    if value.type.kind == "json":
        raise refused(
            "a JSON document as a column", hint="use ->> to get text, or pass it on whole"
        )
    return typed(value)


def _conditions(x: Expressions, node: exp.Select, items: list[Item]) -> str:
    text = ""
    if node.args.get("where") is not None:
        text += f" WHERE {bare(condition(x, node.args['where'].this).sql)}"
    if node.args.get("group") is not None:
        text += f" GROUP BY {_group(x, node.args['group'], items)}"
    if node.args.get("having") is not None:
        text += f" HAVING {bare(condition(x, node.args['having'].this).sql)}"
    return text


def _group(x: Expressions, group: exp.Expr, items: list[Item]) -> str:
    if any(v for n, v in group.args.items() if n != "expressions"):
        raise refused("this form of GROUP BY")
    return ", ".join(_group_part(x, part, items) for part in group.expressions)


def _group_part(x: Expressions, part: exp.Expr, items: list[Item]) -> str:
    words: dict[type[exp.Expr], str] = {
        exp.GroupingSets: "GROUPING SETS",
        exp.Cube: "CUBE",
        exp.Rollup: "ROLLUP",
    }
    if type(part) in words:
        inside = ", ".join(_group_part(x, p, items) for p in part.expressions)
        return f"{words[type(part)]} ({inside})"
    if isinstance(part, exp.Tuple):
        return f"({', '.join(_group_keys(x, part.expressions, items))})"
    return _group_keys(x, [part], items)[0]


def _group_keys(x: Expressions, nodes: list[exp.Expr], items: list[Item]) -> list[str]:
    """A name is a column of FROM first, then one of the select list; a number is a place in it."""
    keys = []
    for node in nodes:
        if isinstance(node, exp.Literal) and not node.is_string:
            keys.append(bare(_at(items, int(node.name)).value.sql))
            continue
        item = _named(node, items)
        is_column = item is not None and x.scope.find(item.name, None) is not None
        value = item.value if item is not None and not is_column else typed(x.of(node))
        keys.append(bare(value.sql))
    return keys


def _order(x: Expressions, node: exp.Select, items: list[Item], is_inside: bool) -> list[str]:
    order = node.args.get("order")
    keys = []
    for item in order.expressions if order is not None else ():
        shown = _named(item.this, items)
        if isinstance(item.this, exp.Literal) and not item.this.is_string:
            shown = _at(items, int(item.this.name))
        if shown is None:
            keys.append(key_text(x.of(item.this), item))
        elif is_inside:
            keys.append(key_text(shown.value, item))
        else:
            keys.append(f"{write_name(shown.name)}{direction(item)}")
    return keys


def _at(items: list[Item], place: int) -> Item:
    if not 1 <= place <= len(items):
        raise InvalidQuery(f"there is no column {place} in the select list")
    return items[place - 1]


def _named(node: exp.Expr, items: list[Item]) -> Item | None:
    if not isinstance(node, exp.Column) or node.args.get("table"):
        return None
    return next((i for i in items if i.name.lower() == folded(node.this).lower()), None)


def limits(node: exp.Expr) -> str:
    """LIMIT and OFFSET; FETCH FIRST is another word for it."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    text = ""
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
            raise refused("FETCH FIRST ... WITH TIES", hint="use rank() <= n in a subquery")
        count = limit.args.get("count")
        text = f" LIMIT {_count(count) if count is not None else 1}"
    elif limit is not None and limit.expression.name.upper() not in ("ALL", "NULL", ""):
        text = f" LIMIT {_count(limit.expression)}"
    if offset is not None:
        text += f" OFFSET {_count(offset.expression)}"
    return text


def _count(node: exp.Expr) -> int:
    node = node.unnest()
    if not isinstance(node, exp.Literal) or not node.name.isdigit():
        raise refused("LIMIT or OFFSET of something else than a number")
    return int(node.name)
