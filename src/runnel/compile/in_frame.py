"""Window functions over a RANGE frame, written so that the order of rows that tie decides nothing.

A RANGE holds all rows that tie or none, so it is known which rows are in it but not in what order.
With `p` for the keys of the window's order and then the columns that complete it:

    last_value(x)       max_by(x, p)        first_value(x)      min_by(x, p)
    collect_list(x)     transform(sort_array(collect_list(struct(p, x))), e -> e.x)
    nth_value(x, n)     try_element_at(sort_array(collect_list(struct(p, x))), n).x
    sum(x) of doubles   the fold of `in_order.py` over the sorted values

each over the same frame. Where the order is a descending one it is the other way round. Where keys
go in different directions, no struct is greater for every row that comes later: the list is sorted
key by key then, and its first or last element taken.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from runnel.compile.aggregates import in_order
from runnel.compile.scalars import function_name

_FIRST = frozenset({"first_value", "first", "any_value"})
_LAST = frozenset({"last_value", "last"})
_PARTS = ("partition_by", "order", "spec")


def by_value(window: exp.Window, ties: list[exp.Expr]) -> exp.Expr:
    """The window function as an expression over others that no order of ties decides."""
    asked = _Asked.of(window)
    if asked.name in _FIRST | _LAST and not asked.is_mixed:
        is_last = (asked.name in _LAST) != asked.is_descending
        name = "MAX_BY" if is_last else "MIN_BY"
        by = _place(asked, ties)
        return _over(window, exp.Anonymous(this=name, expressions=[asked.value, by]))
    if (number := _number(asked)) is not None:
        found = exp.Bracket(
            this=_list(window, asked, ties), expressions=[number], offset=1, safe=True
        )
        return exp.Dot(this=exp.Paren(this=found), expression=exp.to_identifier("v"))
    element = exp.to_identifier("__e")
    value = exp.Dot(this=element.copy(), expression=exp.to_identifier("v"))
    return exp.Transform(
        this=_list(window, asked, ties), expression=exp.Lambda(this=value, expressions=[element])
    )


def is_mixed(window: exp.Window) -> bool:
    """Whether some keys of the order go up and others down."""
    return len({bool(o.args.get("desc")) for o in window.args["order"].expressions}) > 1


def ordered_by(window: exp.Window, place: exp.Expr) -> exp.Window:
    """The same over rows whose place in the order is known as a number."""
    made = window.copy()
    made.set("order", exp.Order(expressions=[exp.Ordered(this=place, nulls_first=True)]))
    return made


def fold_over(window: exp.Window) -> exp.Expr | None:
    """An aggregate of floating point numbers as a fold over the frame's sorted values."""
    fold = in_order(window.this)
    if fold is None:
        return None

    def framed(node: exp.Expr) -> exp.Expr:
        return _over(window, node) if isinstance(node, (exp.ArrayAgg, exp.Count)) else node

    return fold.transform(framed)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call by place: its arguments, which rows it leaves out, and the keys that order them."""

    name: str
    arguments: list[exp.Expr]
    conditions: list[exp.Expr]
    keys: list[exp.Expr]
    ordered: list[exp.Ordered]
    is_mixed: bool

    @property
    def value(self) -> exp.Expr:
        return self.arguments[0].copy()

    @property
    def is_descending(self) -> bool:
        return bool(self.ordered[0].args.get("desc"))

    @classmethod
    def of(cls, window: exp.Window) -> _Asked:
        function, conditions, skips_nulls = window.this, [], False
        while isinstance(function, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
            skips_nulls |= isinstance(function, exp.IgnoreNulls)
            if isinstance(function, exp.Filter):
                conditions.append(function.expression.this)
            function = function.this
        arguments = list(function.iter_expressions())
        name = function_name(function) or ""
        if skips_nulls or name == "array_agg":
            conditions.append(arguments[0].copy().is_(exp.null()).not_())
        ordered = window.args["order"].expressions
        mixed = is_mixed(window)
        keys = [key for o in ordered for key in ([o.this] if mixed else _compared(o))]
        return cls(name, arguments, conditions, keys, ordered, mixed)


def _compared(ordered: exp.Ordered) -> list[exp.Expr]:
    """A key as fields of a struct: there NULL is the least, whichever way the order goes."""
    is_usual = bool(ordered.args.get("nulls_first")) != bool(ordered.args.get("desc"))
    key: exp.Expr = ordered.this
    return [key] if is_usual else [key.copy().is_(exp.null()), key]


def _number(asked: _Asked) -> exp.Expr | None:
    """Which element of the frame's list is asked for, from behind if negative; None for all."""
    if asked.name == "nth_value":
        return asked.arguments[1]
    if asked.name in _FIRST:
        return exp.Literal.number(1)
    return exp.Literal.number(-1) if asked.name in _LAST else None


def _place(asked: _Asked, ties: list[exp.Expr], *more: tuple[str, exp.Expr]) -> exp.Expr:
    """Where a row stands in the order; NULL for one that is left out."""
    named = [(f"p{i}", key) for i, key in enumerate([*asked.keys, *ties])]
    place = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name), expression=value.copy())
            for name, value in (*named, *more)
        ]
    )
    if not asked.conditions:
        return place
    return exp.case().when(exp.and_(*(c.copy() for c in asked.conditions)), place)


def _list(window: exp.Window, asked: _Asked, ties: list[exp.Expr]) -> exp.Expr:
    """The frame's rows in their order, each a struct whose last field is the value `v`."""
    rows = exp.ArrayAgg(this=_place(asked, ties, ("v", asked.value)), nulls_excluded=True)
    if asked.is_mixed:
        comparing = _comparing(asked.ordered, len(ties))
        return exp.Anonymous(this="ARRAY_SORT", expressions=[_over(window, rows), comparing])
    made = exp.ArraySort(this=_over(window, rows), nulls_first=exp.true())
    if asked.is_descending:
        made.set("asc", exp.false())
        made.set("nulls_first", exp.false())
    return made


def _comparing(ordered: list[exp.Ordered], ties: int) -> exp.Expr:
    """Which of two places comes first, key by key; ties go up, as the usual order does."""
    ways = [(bool(o.args.get("desc")), bool(o.args.get("nulls_first"))) for o in ordered]
    ways += [(False, True)] * ties
    left, right = exp.to_identifier("__l"), exp.to_identifier("__r")
    found: exp.Expr = exp.Literal.number(0)
    for number, (is_descending, nulls_first) in reversed(list(enumerate(ways))):
        a, b = (_field(side, f"p{number}") for side in (left, right))
        before, after = (exp.Literal.number(n) for n in (-1, 1))
        found = (
            exp.case()
            .when(exp.NullSafeEQ(this=a, expression=b), found)
            .when(a.is_(exp.null()), before if nulls_first else after)
            .when(b.is_(exp.null()), after if nulls_first else before)
            .when(a > b if is_descending else a < b, before)
            .else_(after)
        )
    return exp.Lambda(this=found, expressions=[left, right])


def _field(place: exp.Identifier, name: str) -> exp.Expr:
    return exp.Dot(this=place.copy(), expression=exp.to_identifier(name))


def _over(window: exp.Window, function: exp.Expr) -> exp.Window:
    made = window.copy()
    made.set("this", function.copy())
    return made
