"""Rows of a join inside a join, near what is joined already: of a CTE of a join, which is one part.

    l x (A x B) = l x ((A semi l) x B)

A walk begins with the rows of that input of the inner join that is tied to l, and goes along the
inner join's own graph: nothing large meets something large to answer for a few rows. Two uses of a
CTE that meet its change in the same columns ask for the same rows, which are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from runnel.algebra.nodes import Filter, InnerJoin, Node, Project
from runnel.compile.differentiate.emitter import Emitter, listed, names_of
from runnel.compile.differentiate.join_graph import sources
from runnel.compile.differentiate.linear import filter_sql, project_sql
from runnel.compile.differentiate.nearness import Pair, distance_of, near_leaf, read_near, tie_of
from runnel.compile.program import Keep, W, hint, step_of

GoOn = Callable[[InnerJoin, str, int, int | None], str]
"""Joins the other inputs of a join to a step with rows of one, at some distance from a change."""


@dataclass(frozen=True, slots=True)
class Met:
    """The rows of a step that an inner join is tied to, by columns of that join and of the step.

    `leaf` is what they are rows of, if that is known, and `distance` how far from a change.
    """

    step: str
    pairs: tuple[Pair, ...]
    leaf: Node | None = None
    distance: int | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """A join as something reads it: under projections and filters, the outermost first."""

    join: InnerJoin
    above: tuple[Project | Filter, ...]

    def traced(self, pairs: Iterable[Pair]) -> tuple[Pair, ...]:
        """The pairs whose first column is one of the join's, as that calls it."""
        found = [(_origin(a, self.above), sign, b) for a, sign, b in pairs]
        return tuple((a, sign, b) for a, sign, b in found if a is not None)

    def beyond(self, other: Use) -> tuple[Node, Use]:
        """The part with the join in it that both have, and what this one has above that."""
        nodes = [*self.above, self.join]
        theirs = [*other.above, other.join]
        same = 0
        while same < min(len(nodes), len(theirs)) and nodes[-same - 1] == theirs[-same - 1]:
            same += 1
        return nodes[-same], Use(self.join, self.above[: len(nodes) - same])

    def over(self, rows: str) -> str:
        """What is read of some rows of the join."""
        for node in reversed(self.above):
            source = f"({rows})"
            if isinstance(node, Project):
                rows = project_sql(node, source)
            else:
                rows = filter_sql(node, source)
        return rows


def _origin(name: str, above: Iterable[Project | Filter]) -> str | None:
    """What a column is called below some projections; None when it is computed."""
    for node in above:
        if isinstance(node, Project):
            inner = next(s for c, s in node.items if c.name == name).bare_column
            if inner is None:
                return None
            name = inner
    return name


def use_of(node: Node) -> Use | None:
    """How a node reads a join; None when it is something else."""
    above: list[Project | Filter] = []
    while isinstance(node, (Project, Filter)):
        above.append(node)
        node = node.input
    return Use(node, tuple(above)) if isinstance(node, InnerJoin) else None


def met_rows(emitter: Emitter, use: Use, met: Met, go_on: GoOn) -> str | None:
    """The text of a use's new rows, without those that meet nothing; None when no tie leads in."""
    by_input = _by_input(use.join, met.pairs)
    if not by_input:
        return None
    index = max(by_input, key=lambda i: (len(by_input[i]), -i))
    step, distance = _begun(emitter, use.join, index, by_input[index], met)
    key = (use.join, step)
    if key in emitter.walks:
        emitter.keep_if_reading(emitter.walks[key], sources(use.join))
    else:
        emitter.walks[key] = go_on(use.join, step, index, distance)
    names = listed(names_of(use.join.columns), W)
    return use.over(f"SELECT {names} FROM {step_of(emitter.walks[key])}")


def _by_input(join: InnerJoin, pairs: Iterable[Pair]) -> Mapping[int, list[Pair]]:
    owners = {c.name: i for i, child in enumerate(join.inputs) for c in child.columns}
    found: dict[int, list[Pair]] = {}
    for pair in dict.fromkeys(pairs):
        found.setdefault(owners[pair[0]], []).append(pair)
    return found


def _begun(
    emitter: Emitter, join: InnerJoin, index: int, pairs: list[Pair], met: Met
) -> tuple[str, int | None]:
    """The step of an input's rows that meet something, and their distance from a change."""
    leaf = join.inputs[index]
    tie = tie_of(emitter, leaf, pairs, met.leaf, met.distance) if met.leaf is not None else None
    near = near_leaf(emitter, leaf, [tie])
    rows = f"SELECT {listed(names_of(leaf.columns), W)} FROM ({emitter.new(leaf).sql}) r"
    agree = " AND ".join(f"m.{b} {sign} r.{a}" for a, sign, b in pairs)
    exists = f"EXISTS (SELECT {hint('m', met.step)} 1 FROM {step_of(met.step)} m WHERE {agree})"
    sql = f"{read_near(rows, near)} WHERE {exists}"
    key = (join, sql)
    if key not in emitter.walks:
        others = frozenset().union(*(sources(n) for n in join.inputs if n is not leaf))
        # Small inputs are sent to this one: then the join costs no more than reading it.
        emitter.walks[key] = emitter.add(
            "met", f"rows of input {index + 1} of an inner join that are asked for", sql,
            leaf.columns, keep=Keep.RESTRICTING, meets=others, of_small=rows, near=near,
        )  # fmt: skip
    return emitter.walks[key], distance_of(near)
