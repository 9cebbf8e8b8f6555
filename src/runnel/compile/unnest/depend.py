"""A subquery evaluated for all values of a domain D at once: D is joined in where it is read.

    D x sigma(N) = sigma(D x N)               likewise projection and inner join
    D x group[k](N) = group[D, k](D x N)      a global one keeps every d: a left join from D
    D x window[k](N) = window[D, k](D x N)    LIMIT too, by row numbers
    D x (L op R) = (D x L) op (D x R)         on equal d: outer, semi and anti joins, UNION ALL

What does not read D stays outside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from runnel.algebra.nodes import (
    Aggregate,
    Filter,
    Generate,
    InnerJoin,
    JoinKind,
    Node,
    OneRow,
    OuterJoin,
    Project,
    Repeat,
    SemiJoin,
    TopK,
    UnionAll,
    Window,
    identity,
)
from runnel.algebra.scalar import Scalar
from runnel.compile.unnest.domain import Domain, same
from runnel.compile.unnest.first_rows import first_rows
from runnel.compile.unnest.free import free_columns
from runnel.compile.unnest.nothing import over_nothing
from runnel.errors import NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder

_Dependent = tuple[Node, tuple[Column, ...]]


@dataclass(frozen=True, slots=True)
class Depend:
    """Joins one domain into trees; each comes back with the columns that hold its d."""

    builder: Builder
    domain: Domain

    def rows(self, node: Node) -> _Dependent:
        """The node's rows for every d."""
        if not self._is_free(node):
            copy, keys = self.domain.copy()
            return (copy if isinstance(node, OneRow) else InnerJoin((copy, node), ())), keys
        match node:
            case Filter():
                below, keys = self.rows(node.input)
                return Filter(below, self._bound(node.conjuncts, keys)), keys
            case Project():
                return self._project(node)
            case Repeat():
                below, keys = self.rows(node.input)
                return Repeat(below, *self._bound((node.times,), keys)), keys
            case InnerJoin():
                return self._inner_join(node)
            case SemiJoin():
                return self._semi_join(node)
            case OuterJoin():
                return self._outer_join(node)
            case UnionAll():
                return self._union(node)
            case Aggregate():
                return self._aggregate(node)
            case Generate():
                below, keys = self.rows(node.input)
                (function,) = self._bound((node.function,), keys)
                return replace(node, input=below, function=function), keys
            case Window():
                return self._window(node)
            case TopK():
                return self.rows(first_rows(self.builder, node))
            case _:
                raise NotDifferentiable(
                    "WITH RECURSIVE that refers to the outer query",
                    hint="let the recursion start from all values, and filter what it gives",
                )

    def _is_free(self, node: Node) -> bool:
        return bool(free_columns(node) & {c.name for c in self.domain.columns})

    def _bound(self, scalars: tuple[Scalar, ...], keys: tuple[Column, ...]) -> tuple[Scalar, ...]:
        values = self.domain.values(keys)
        return tuple(s.substitute(values) for s in scalars)

    def _project(self, node: Project) -> _Dependent:
        below, keys = self.rows(node.input)
        columns = tuple(c for c, _ in node.items)
        scalars = self._bound(tuple(s for _, s in node.items), keys)
        items = tuple(zip(columns, scalars, strict=True))
        return Project(below, (*items, *identity(keys))), keys

    def _inner_join(self, node: InnerJoin) -> _Dependent:
        inputs: list[Node] = []
        copies: list[tuple[Column, ...]] = []
        for child in node.inputs:
            if not self._is_free(child):
                inputs.append(child)
                continue
            below, keys = self.rows(child)
            inputs.append(below)
            copies.append(keys)
        if not copies:
            copy, keys = self.domain.copy()
            inputs.insert(0, copy)
            copies.append(keys)
        keys = copies[0]
        equal = tuple(c for other in copies[1:] for c in same(keys, other))
        return InnerJoin(tuple(inputs), self._bound(node.conjuncts, keys) + equal), keys

    def _semi_join(self, node: SemiJoin) -> _Dependent:
        left, keys = self.rows(node.left)
        right, equal = self._right(node.right, keys)
        conjuncts = self._bound(node.conjuncts, keys) + equal
        return SemiJoin(left, right, conjuncts, node.is_anti), keys

    def _right(self, node: Node, keys: tuple[Column, ...]) -> tuple[Node, tuple[Scalar, ...]]:
        """The other side of a join, for the same d where it depends on it."""
        if not self._is_free(node):
            return node, ()
        right, other = self.rows(node)
        return right, same(keys, other)

    def _outer_join(self, node: OuterJoin) -> _Dependent:
        if node.kind is JoinKind.FULL:
            return self._full_join(node)
        left, keys = self.rows(node.left)
        right, equal = self._right(node.right, keys)
        return replace(
            node, left=left, right=right, conjuncts=self._bound(node.conjuncts, keys) + equal
        ), keys

    def _full_join(self, node: OuterJoin) -> _Dependent:
        """Either side may be the padded one, so d comes from the one that is there."""
        left, keys = self.rows(node.left)
        right, other = self.rows(node.right)
        is_left = self.builder.fresh("boolean")
        flagged = Project(left, (*identity(left.columns), (is_left, Scalar.constant("TRUE"))))
        conjuncts = self._bound(node.conjuncts, keys) + same(keys, other)
        joined = OuterJoin(node.kind, flagged, right, conjuncts)
        chosen = tuple(
            (
                self.builder.fresh(a.type),
                Scalar(("CASE WHEN ", " THEN ", " ELSE ", " END"), (is_left.name, a.name, b.name)),
            )
            for a, b in zip(keys, other, strict=True)
        )
        return Project(joined, (*identity(node.columns), *chosen)), tuple(c for c, _ in chosen)

    def _union(self, node: UnionAll) -> _Dependent:
        inputs = []
        for child in node.inputs:
            below, keys = self.rows(child)
            inputs.append(Project(below, identity((*child.columns, *keys))))
        keys = tuple(self.builder.fresh(k.type) for k in self.domain.node.columns)
        return UnionAll(tuple(inputs), (*node.columns, *keys)), keys

    def _aggregate(self, node: Aggregate) -> _Dependent:
        below, keys = self.rows(node.input)
        names = (*node.keys, *(k.name for k in keys))
        if not node.is_global:
            return Aggregate(below, names, node.calls), keys
        calls = tuple(replace(c, output=self.builder.fresh(c.output.type)) for c in node.calls)
        every, own = self.domain.copy()
        joined = OuterJoin(JoinKind.LEFT, every, Aggregate(below, names, calls), same(own, keys))
        values = tuple(
            (old.output, over_nothing(new)) for old, new in zip(node.calls, calls, strict=True)
        )
        return Project(joined, (*identity(own), *values)), own

    def _window(self, node: Window) -> _Dependent:
        below, keys = self.rows(node.input)
        functions = self._bound(tuple(call.function for call in node.calls), keys)
        calls = tuple(
            replace(call, function=function)
            for call, function in zip(node.calls, functions, strict=True)
        )
        return Window(below, (*node.partition, *(k.name for k in keys)), calls), keys
