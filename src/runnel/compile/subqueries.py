"""EXISTS and IN: rows with, or without, a partner; as a condition, or as a value of its own.

x NOT IN (SELECT y ...) keeps a row only when no y can be equal: an unknown comparison counts as
a match, and over no rows at all everything is kept, NULL too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from runnel.algebra.nodes import Filter, Node, Project, SemiJoin, UnionAll, identity
from runnel.algebra.scalar import Scalar, join, wrap
from runnel.compile.lifting import fill, is_any_row, is_exists, is_in_subquery, lift
from runnel.compile.places import at
from runnel.compile.scalars import conjuncts, mark, resolve, to_scalar
from runnel.compile.scope import Scope
from runnel.compile.unnest.lookup import look_up_rows
from runnel.errors import InvalidQuery
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder


def filter_by(
    builder: Builder, node: Node, scope: Scope, condition: exp.Expr, ctes: Mapping[str, Any]
) -> Node:
    """The filtered rows; what needs no subquery filters first, so that fewer rows ask."""
    plain: list[exp.Expr] = []
    asking: list[exp.Expr] = []
    tests: list[tuple[exp.Expr, bool]] = []
    for conjunct in conjuncts(condition):
        test, is_negated = _without_not(conjunct)
        if is_membership(test):
            tests.append((test, is_negated))
        elif conjunct.find(exp.Query):
            asking.append(conjunct)
        else:
            plain.append(conjunct)
    resolved = []
    for conjunct in plain:
        with at(conjunct):
            resolved.append(resolve(conjunct, scope))
    node = _filtered(node, resolved)
    for conjunct in asking:
        lifted, pending = lift(conjunct)
        with at(conjunct):
            node, columns = attach_all(builder, node, scope, pending, ctes)
            node = _filtered(node, [resolve(fill(lifted, columns), scope)])
    for test, is_negated in tests:
        with at(test):
            node = _Test.of(builder, node, scope, test, ctes).keep(is_negated)
    return node


def _filtered(node: Node, conditions: list[exp.Expr]) -> Node:
    return Filter(node, tuple(to_scalar(c) for c in conditions)) if conditions else node


def is_membership(node: exp.Expr) -> bool:
    """Whether it is EXISTS or IN over a subquery."""
    return is_exists(node) or is_in_subquery(node)


def without_limit(query: exp.Expr) -> exp.Expr:
    """What EXISTS asks: that there is a row does not depend on a limit of one or more."""
    query = query.unnest()
    if is_any_row(query):
        query = query.copy()
        query.set("limit", None)
    return query


def attach_all(
    builder: Builder,
    node: Node,
    scope: Scope,
    pending: Mapping[str, exp.Expr],
    ctes: Mapping[str, Any],
) -> tuple[Node, dict[str, exp.Expr]]:
    """Bring the values of subqueries to every row; the expression that stands for each."""
    from runnel.compile.scalar_subqueries import attach_scalar

    values: dict[str, exp.Expr] = {}
    for slot, query in pending.items():
        test, is_negated = _without_not(query)
        known = next((s for s in values if pending[s] == query), None)
        if known is not None:
            values[slot] = values[known]
        elif is_membership(test):
            tested = _Test.of(builder, node, scope, test, ctes)
            node, column = tested.mark(builder, is_negated)
            values[slot] = mark(column.name)
        else:
            node, values[slot] = attach_scalar(builder, node, scope, query, ctes)
    return node, values


@dataclass(frozen=True, slots=True)
class _Test:
    """Rows, what they are looked up in, and the conditions; `equal` are those of IN."""

    node: Node
    right: Node
    conditions: tuple[Scalar, ...]
    equal: tuple[Scalar, ...]

    @staticmethod
    def of(
        builder: Builder, node: Node, scope: Scope, test: exp.Expr, ctes: Mapping[str, Any]
    ) -> _Test:
        if not isinstance(test, exp.In):
            found = builder.inner_query(without_limit(test.this), ctes, scope)
            lookup = look_up_rows(builder, node, found.node)
            return _Test(node, lookup.right, lookup.conditions, ())
        found = builder.inner_query(test.args["query"], ctes, scope)
        wanted, pending = lift(test.this)
        node, values = attach_all(builder, node, scope, pending, ctes)
        lookup = look_up_rows(builder, node, found.node)
        outputs = tuple(lookup.values[c.name] for _, c in found.outputs)
        equal = _equal(resolve(fill(wanted, values), scope), outputs)
        return _Test(node, lookup.right, lookup.conditions, equal)

    def keep(self, is_negated: bool) -> Node:
        return self._no() if is_negated else self._yes()

    def mark(self, builder: Builder, is_negated: bool) -> tuple[Node, Column]:
        """All rows, with a column that says what the test says of them."""
        right = self._possible() if is_negated else self.conditions + self.equal
        with_partner = SemiJoin(self.node, self.right, right)
        without = SemiJoin(self.node, self.right, right, is_anti=True)
        answers = ("FALSE", "TRUE") if is_negated else ("TRUE", "FALSE")
        branches = tuple(
            _with_value(builder, part, answer)
            for answer, part in zip(answers, (with_partner, without), strict=True)
        )
        answer = builder.fresh("boolean")
        return UnionAll(branches, (*self.node.columns, answer)), answer

    def _yes(self) -> Node:
        return SemiJoin(self.node, self.right, self.conditions + self.equal)

    def _no(self) -> Node:
        return SemiJoin(self.node, self.right, self._possible(), is_anti=True)

    def _possible(self) -> tuple[Scalar, ...]:
        """The conditions, a comparison that is unknown taken for true."""
        return self.conditions + ((_unless_false(self.equal),) if self.equal else ())


def _with_value(builder: Builder, node: Node, value: str) -> Node:
    own = [*identity(node.columns)]
    return Project(node, (*own, (builder.fresh("boolean"), Scalar.constant(value))))


def _without_not(node: exp.Expr) -> tuple[exp.Expr, bool]:
    is_negated = False
    while isinstance(node, (exp.Paren, exp.Not)):
        is_negated ^= isinstance(node, exp.Not)
        node = node.this
    return node, is_negated


def _equal(wanted: exp.Expr, outputs: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """What is looked for equals what the subquery gives, column by column."""
    wanted = wanted.unnest()
    values = wanted.expressions if isinstance(wanted, exp.Tuple) else [wanted]
    if len(values) != len(outputs):
        raise InvalidQuery(
            f"{len(values)} values IN a subquery of {len(outputs)} columns",
            hint="give the subquery as many columns",
        )
    scalars = [to_scalar(value) for value in values]
    return tuple(
        join(wrap("(", a, ") = "), wrap("(", b, ")")) for a, b in zip(scalars, outputs, strict=True)
    )


def _unless_false(conditions: tuple[Scalar, ...]) -> Scalar:
    """True where the conjunction is true or unknown."""
    both = conditions[0]
    for other in conditions[1:]:
        both = join(wrap("", both, " AND "), other)
    return wrap("COALESCE(", both, ", TRUE)")
