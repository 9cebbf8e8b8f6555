"""GROUPING SETS, CUBE and ROLLUP: every row once for each set, its other keys NULL, then one GROUP.

The number of the set is one more key, so that a set that is written twice counts twice, and a NULL
that stands for "all" is not one of the data. As in Spark, () shows no row over no input, unless it
is the only set: then it is the aggregate without GROUP BY.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from sqlglot import exp

from runnel.algebra.nodes import InnerJoin, Node, OneRow, Project, UnionAll, identity
from runnel.algebra.scalar import Scalar
from runnel.compile.scalars import mark
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder

_KINDS = (exp.Cube, exp.Rollup, exp.GroupingSets)
_MOST_SETS = 1024
_Key = Callable[[exp.Expr], exp.Expr]


@dataclass(frozen=True, slots=True)
class KeySets:
    """The distinct keys in order of mention, and each set as places in them."""

    keys: list[exp.Expr]
    sets: list[frozenset[int]]

    @property
    def is_everything(self) -> bool:
        return self.sets == [frozenset()]


def key_sets(group: exp.Group, key: _Key) -> KeySets | None:
    """The grouping sets of a GROUP BY; None when it has keys only. `key` resolves one."""
    order, parts = _parts(group)
    if not any(isinstance(part, _KINDS) for part in parts):
        return None
    keys: list[exp.Expr] = []

    def place(node: exp.Expr) -> int:
        found = key(node).unnest()
        if found not in keys:
            keys.append(found)
        return keys.index(found)

    for node in order:
        place(node)
    choices = [_sets(part, place) for part in parts]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > _MOST_SETS:
        raise NotDifferentiable(
            f"{count} grouping sets", hint=f"write at most {_MOST_SETS}, or use refresh mode FULL"
        )
    merged = [frozenset[int]().union(*chosen) for chosen in product(*choices)]
    return KeySets(keys, sorted(merged, key=lambda chosen: _id(chosen, range(len(keys)))))


def _parts(group: exp.Group) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The keys in the order they are numbered by, if it is given, and what GROUP BY lists.

    `a, b WITH CUBE` is CUBE (a, b); `a, b GROUPING SETS (...)` only orders the keys of the sets.
    """
    listed = list(group.expressions)
    order: list[exp.Expr] = []
    for name in ("cube", "rollup", "grouping_sets"):
        for node in group.args.get(name) or ():
            if isinstance(node, exp.GroupingSets):
                order, listed = listed, [node]
            elif node.expressions:
                listed.append(node)
            else:
                listed = [type(node)(expressions=listed)]
    return order, listed


def _sets(node: exp.Expr, place: Callable[[exp.Expr], int]) -> list[frozenset[int]]:
    if isinstance(node, exp.GroupingSets):
        return [chosen for part in node.expressions for chosen in _sets_of_part(part, place)]
    if not isinstance(node, _KINDS):
        return [frozenset({place(node)})]
    parts = [frozenset(map(place, _members(part))) for part in node.expressions]
    if isinstance(node, exp.Rollup):
        return [_union(parts[:length]) for length in range(len(parts), -1, -1)]
    if 2 ** len(parts) > _MOST_SETS:
        raise NotDifferentiable(f"CUBE of {len(parts)} keys", hint="list the GROUPING SETS wanted")
    subsets = product((True, False), repeat=len(parts))
    return [_union(p for p, wanted in zip(parts, s, strict=True) if wanted) for s in subsets]


def _sets_of_part(part: exp.Expr, place: Callable[[exp.Expr], int]) -> list[frozenset[int]]:
    if isinstance(part, _KINDS):
        return _sets(part, place)
    return [frozenset(map(place, _members(part)))]


def _members(part: exp.Expr) -> list[exp.Expr]:
    if isinstance(part, exp.Tuple):
        return list(part.expressions)
    return [part.this] if isinstance(part, exp.Paren) else [part]


def _union(parts: Iterable[frozenset[int]]) -> frozenset[int]:
    return frozenset[int]().union(*parts)


def expand(
    builder: Builder, node: Node, keys: Sequence[Column], sets: KeySets
) -> tuple[Node, tuple[Column, ...], Column]:
    """Each row once for each set: the node, the keys as the set has them, the set's number.

    Keys beyond those of the sets are in all of them.
    """
    numbers, number = _numbers(builder, len(sets.sets))
    shown = []
    for index, key in enumerate(keys):
        places = [n for n, chosen in enumerate(sets.sets) if index in chosen]
        is_everywhere = index >= len(sets.keys) or len(places) == len(sets.sets)
        value = Scalar.column(key.name) if is_everywhere else _where(number, places, key)
        shown.append((builder.fresh(key.type), value))
    kept = [*identity(c for c in node.columns if c not in keys)]
    rows = InnerJoin((node, numbers), ())
    expanded = Project(rows, (*shown, *kept, (number, Scalar.column(number.name))))
    return expanded, tuple(column for column, _ in shown), number


def _numbers(builder: Builder, count: int) -> tuple[Node, Column]:
    """One row for each number below `count`."""
    ones = tuple(
        Project(OneRow(), ((builder.fresh("int"), Scalar.constant(str(n))),)) for n in range(count)
    )
    number = builder.fresh("int")
    return UnionAll(ones, (number,)), number


def _where(number: Column, places: list[int], key: Column) -> Scalar:
    listed = ", ".join(map(str, places))
    return Scalar(("CASE WHEN ", f" IN ({listed}) THEN ", " END"), (number.name, key.name))


def grouping_value(node: exp.Expr, sets: KeySets | None, number: Column | None) -> exp.Expr:
    """GROUPING(key) or GROUPING_ID(keys): one bit for each key, set where the set lacks it."""
    if sets is None:
        raise InvalidQuery(f"{node.key}() is for GROUPING SETS, CUBE and ROLLUP")
    asked = list(node.iter_expressions())
    is_id = isinstance(node, exp.GroupingId)
    if any(a.unnest() not in sets.keys for a in asked):
        raise InvalidQuery("GROUPING() of what is not a key of GROUP BY", hint="name a key")
    places = [sets.keys.index(a.unnest()) for a in asked] or list(range(len(sets.keys)))
    values = [_id(chosen, places) for chosen in sets.sets]
    value: exp.Expr = exp.Literal.number(values[0])
    if number is not None and len(set(values)) > 1:
        value = exp.Case(this=mark(number.name), ifs=[])
        for index, chosen in enumerate(values):
            value = value.when(exp.Literal.number(index), exp.Literal.number(chosen))
    return exp.cast(value, "BIGINT" if is_id else "TINYINT")


def _id(chosen: frozenset[int], places: Sequence[int]) -> int:
    return sum((place not in chosen) << n for n, place in enumerate(reversed(places)))
