"""WITH RECURSIVE: a CTE that reads itself is the least R with R = anchor + step(R).

With UNION ALL the step must add up over the rows of R, each by itself: no row's follow-up may
depend on another. With UNION it must be monotone: rows of R may meet each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from runnel.algebra.nodes import Fixpoint, Node, Recursive, UnionAll
from runnel.compile.clauses import refuse_other_clauses
from runnel.compile.derivations import count_derivations
from runnel.compile.dialect import SparkSql, max_recursion_level
from runnel.compile.differentiate.adding_up import hindrance
from runnel.compile.levels import with_levels
from runnel.compile.monotone import obstacle
from runnel.compile.relation import Relation
from runnel.compile.unify import brought_to
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder, Cte

_HINT = "read it once, in FROM or in an inner join, and do the rest above WITH RECURSIVE"


@dataclass(frozen=True, slots=True)
class OwnRows:
    """What a recursive CTE's name means inside it; without columns it may not be read there."""

    name: str
    columns: tuple[tuple[str | None, Column], ...] = ()
    key: str = ""

    def relation(self, builder: Builder) -> Relation:
        if not self.columns:
            raise NotDifferentiable(
                f"{self.name}, read where its rows are not known yet,",
                detail="the first part of a recursive CTE, and CTEs before it, cannot read it",
                hint="write it as: WITH RECURSIVE name AS (anchor UNION ALL step that reads name)",
            )
        columns = tuple((name, builder.fresh(c.type)) for name, c in self.columns)
        return Relation(Recursive(self.key, tuple(c for _, c in columns)), columns)


def refers_to_itself(cte: exp.CTE) -> bool:
    """Whether the query of a CTE reads the CTE's own name."""
    name = cte.alias.lower()
    return any(
        table.name.lower() == name and not table.db and not _is_hidden(table, cte)
        for table in cte.this.find_all(exp.Table)
    )


def recursive_union(tree: exp.Expr) -> str | None:
    """The name of a recursive CTE made by UNION, which Spark itself cannot run."""
    for with_ in tree.find_all(exp.With):
        for cte in with_.expressions if with_.args.get("recursive") else ():
            union = cte.this.unnest() if isinstance(cte.this, exp.Subquery) else cte.this
            is_set = isinstance(union, exp.Union) and bool(union.args.get("distinct"))
            if is_set and refers_to_itself(cte):
                return str(cte.alias)
    return None


def with_union_all(query: str) -> str:
    """The text with ALL behind every UNION: other rows, but the same columns."""
    tokens = SparkSql().tokenize(query)
    for token, following in reversed(list(zip(tokens, [*tokens[1:], None], strict=True))):
        if token.token_type is not TokenType.UNION:
            continue
        kind = following.token_type if following is not None else None
        if kind is TokenType.DISTINCT and following is not None:
            query = f"{query[: following.start]}ALL{query[following.end + 1 :]}"
        elif kind is not TokenType.ALL:
            query = f"{query[: token.end + 1]} ALL{query[token.end + 1 :]}"
    return query


def build_recursive(builder: Builder, cte: Cte) -> Relation:
    """The relation of a recursive CTE."""
    assert cte.own is not None
    name, union = cte.own.alias, cte.query
    while isinstance(union, exp.Subquery) and not union.args.get("with_"):
        union = union.this
    if not isinstance(union, exp.Union):
        raise InvalidQuery(
            f"recursive CTE {name} is not made by UNION ALL or UNION",
            hint=f"write it as: {name} AS (anchor UNION ALL step that reads {name})",
        )
    refuse_other_clauses(union)
    visible = builder.with_(union, {**cte.visible, name.lower(): OwnRows(name)})
    anchor = builder.query(union.left, visible)
    called: tuple[str | None, ...] = cte.names or tuple(n for n, _ in anchor.outputs)
    _check_width(name, len(called), len(anchor.outputs))
    own = tuple(zip(called, (c for _, c in anchor.outputs), strict=True))
    key = f"{name}_{next(builder.numbers)}"
    step = builder.query(union.right, {**visible, name.lower(): OwnRows(name, own, key)})
    _check_width(name, len(own), len(step.outputs))
    is_set = bool(union.args.get("distinct"))
    types = _types(builder, name, own, step)
    columns = tuple(builder.fresh(c.type) for _, c in own)
    start = brought_to(builder, anchor, types)
    parts = _parts(builder, name, key, brought_to(builder, step, types), is_set)
    node = Fixpoint(
        key, _union(builder, [start, *parts[0]]), _union(builder, parts[1]), columns, is_set,
        max_recursion_level(cte.own),
    )  # fmt: skip
    kept = node if is_set else with_levels(builder, node)
    return Relation(kept, tuple(zip(called, columns, strict=True)))


def _parts(builder: Builder, name: str, key: str, step: Node, is_set: bool) -> list[list[Node]]:
    """Branches of the step that start from nothing, and those that read R's rows."""
    hindered = hindrance(step, key)
    if hindered is None:
        return [[], [step]]
    if not is_set or obstacle(step, lambda n: isinstance(n, Recursive) and n.name == key):
        raise _refusal(hindered.replace("{}", name))
    return list(count_derivations(builder, step, key))


def _union(builder: Builder, parts: list[Node]) -> Node:
    if len(parts) == 1:
        return parts[0]
    return UnionAll(tuple(parts), tuple(builder.fresh(c.type) for c in parts[0].columns))


def _refusal(construct: str) -> NotDifferentiable:
    return NotDifferentiable(
        construct,
        detail="what follows from a row must not depend on the other rows of the recursion",
        hint=_HINT,
    )


def _check_width(name: str, left: int, right: int) -> None:
    if left != right:
        raise InvalidQuery(f"recursive CTE {name} has {left} columns here and {right} there")


def _types(
    builder: Builder, name: str, own: tuple[tuple[str | None, Column], ...], step: Relation
) -> list[str]:
    """The anchor's types; the step's values are brought to them where nothing can be lost."""
    for (called, mine), (_, other) in zip(own, step.outputs, strict=True):
        if mine.type == other.type:
            continue
        wider = builder.typer.types((mine, other), [f"coalesce({mine.name}, {other.name})"])[0]
        if wider != mine.type:
            raise InvalidQuery(
                f"column {called} of {name} is {mine.type} in its anchor, {other.type} in its step",
                hint=f"cast it in the anchor: CAST(... AS {wider.upper()})",
            )
    return [c.type for _, c in own]


def _is_hidden(table: exp.Table, cte: exp.CTE) -> bool:
    """Whether a WITH clause inside the CTE gives its name to something else."""
    node = table.parent
    while node is not None and node is not cte:
        with_ = node.args.get("with_")
        if with_ is not None and any(
            inner.alias.lower() == table.name.lower() for inner in with_.expressions
        ):
            return True
        node = node.parent
    return False


Visible = Mapping[str, "Cte | OwnRows"]
