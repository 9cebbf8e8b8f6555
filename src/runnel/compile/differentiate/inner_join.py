"""A chain of inner joins: with inputs R1..Rn, the change is the sum over the changed Ri of

    new(R1) x .. x new(Ri-1) x change(Ri) x old(Ri+1) x .. x old(Rn)

Each term starts from its change and walks along the join graph, so that the small side is built.
Terms that have joined the same inputs, and read what is left at the same end, go on as their sum:
each input is read fewer times than there are terms. Inputs that did not change are the same in all.
Where three inputs or more changed there are too many terms; where two changed that others tie best,
both terms would read what lies between them: see dual_weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runnel.algebra.nodes import (
    Aggregate,
    InnerJoin,
    Node,
    OuterJoin,
    SemiJoin,
    TopK,
    Window,
    walk,
)
from runnel.algebra.scalar import Scalar
from runnel.compile.differentiate.dual_weights import change_by_dual_weights
from runnel.compile.differentiate.emitter import Emitter, Reading, condition, listed, names_of
from runnel.compile.differentiate.join_graph import JoinGraph, sources
from runnel.compile.differentiate.nearness import distance_of, near_leaf, read_near, tie_of
from runnel.compile.differentiate.nested_join import Met, Use, met_rows, use_of
from runnel.compile.near import Near
from runnel.compile.program import W, hint, step_of
from runnel.model.columns import Column

# Evaluating one of these costs more than reading.
_DEAR = (Aggregate, OuterJoin, SemiJoin, Window, TopK)


def new_inner_join(emitter: Emitter, node: InnerJoin) -> Reading:
    graph = JoinGraph(node, emitter.sizes)
    readings = [emitter.new(child) for child in node.inputs]
    remaining = list(node.conjuncts)
    done = [0]
    columns = list(node.inputs[0].columns)
    sql = readings[0].sql
    while len(done) < len(node.inputs):
        index = graph.next_input(done, range(len(node.inputs)))
        columns += node.inputs[index].columns
        usable, remaining = _usable(remaining, columns)
        sql = _pair(f"({sql})", f"({readings[index].sql})", columns, usable, "")
        done.append(index)
    if remaining:
        sql = f"SELECT * FROM ({sql}) WHERE {condition(remaining)}"
    return Reading(sql, all(r.is_unit for r in readings))


def change_inner_join(emitter: Emitter, node: InnerJoin) -> str | None:
    changes = {i: emitter.change(child) for i, child in enumerate(node.inputs)}
    changed = [i for i, change in changes.items() if change is not None]
    if not changed:
        return None
    graph = JoinGraph(node, emitter.sizes, changed)
    walks = [_start(changes[i], i) for i in changed]
    if (made := change_by_dual_weights(emitter, graph)) is not None:
        walks = [_Walk(made[0], tuple(made[1]), tuple(changed), made[1])]
    for inputs in (graph.core(), range(len(node.inputs))):
        walks = _walked(emitter, graph, walks, inputs)
    assert len(walks) == 1
    return walks[0].step


@dataclass(frozen=True, slots=True)
class _Walk:
    """How far a walk along the join graph has come; `terms` are the inputs whose changes it is of.

    One that is of no change goes from some new rows of an input to those that they meet.
    `distances` are those of the joined inputs' rows from a change (see nearness). `size_known`:
    nothing was joined to the change yet.
    """

    step: str
    done: tuple[int, ...]
    terms: tuple[int, ...]
    distances: Mapping[int, int | None]
    size_known: bool = False

    def reads_new(self, index: int) -> bool:
        return not self.terms or index < self.terms[0]

    @property
    def called(self) -> str:
        numbered = ", ".join(str(i + 1) for i in self.terms)
        if len(self.terms) > 1:
            return f"terms of inputs {numbered}"
        return f"term of input {numbered}" if self.terms else "rows that are asked for"

    def goes_on_like(self, other: _Walk, changed: set[int]) -> bool:
        """Whether both have joined the same, and no changed input left is between their terms."""
        terms = self.terms + other.terms
        left = changed - set(self.done)
        between = left.intersection(range(min(terms), max(terms)))
        return set(self.done) == set(other.done) and not between


def _start(change: str | None, index: int) -> _Walk:
    assert change is not None
    return _Walk(change, (index,), (index,), {index: 0}, size_known=True)


def _walked(
    emitter: Emitter, graph: JoinGraph, walks: list[_Walk], inputs: Sequence[int]
) -> list[_Walk]:
    """The walks, gone on to all of these inputs; the one that is least far goes first."""
    node = graph.node
    walks = _summed(emitter, node, walks)
    while behind := [w for w in walks if any(i not in w.done for i in inputs)]:
        walk = min(behind, key=lambda w: len(w.done))
        walks[walks.index(walk)] = _joined(emitter, graph, walk, inputs)
        walks = _summed(emitter, node, walks)
    return walks


def _summed(emitter: Emitter, node: InnerJoin, walks: list[_Walk]) -> list[_Walk]:
    """The walks that go on alike as one."""
    changed = {i for walk in walks for i in walk.terms}
    found: list[list[_Walk]] = []
    for each in walks:
        alike = next((group for group in found if each.goes_on_like(group[0], changed)), None)
        if alike is None:
            found.append([each])
        else:
            alike.append(each)
    return [group[0] if len(group) == 1 else _sum(emitter, node, group) for group in found]


def _sum(emitter: Emitter, node: InnerJoin, walks: list[_Walk]) -> _Walk:
    done = tuple(sorted(walks[0].done))
    columns = [c for i in done for c in node.inputs[i].columns]
    names = listed(names_of(columns), W)
    sql = "\nUNION ALL\n".join(f"SELECT {names} FROM {step_of(walk.step)}" for walk in walks)
    step = emitter.add("join", "sum of the join's terms", sql, columns)
    terms = tuple(sorted(i for walk in walks for i in walk.terms))
    return _Walk(step, done, terms, {i: _farthest(w.distances[i] for w in walks) for i in done})


def _farthest(distances: Iterable[int | None]) -> int | None:
    found = list(distances)
    return max((d for d in found if d is not None), default=0) if None not in found else None


def _joined(emitter: Emitter, graph: JoinGraph, walk: _Walk, inputs: Sequence[int]) -> _Walk:
    """One more input. After the first the size is unknown, so stages that meet much are kept."""
    node = graph.node
    columns = [c for i in walk.done for c in node.inputs[i].columns]
    index = graph.next_input(walk.done, inputs)
    other = node.inputs[index]
    remaining = _remaining(node, walk.done)
    near = _near(emitter, graph, walk, index)
    if not walk.size_known:
        met = sources(other) if near is None else frozenset({f"near:{near.source}"})
        emitter.keep_if_meeting(walk.step, met)
    source = _met_in(emitter, graph, walk, index)
    if source is None:
        reading = emitter.new(other) if walk.reads_new(index) else emitter.old(other)
        source = _restricted(emitter, other, reading, walk.step, columns, remaining)
    source = read_near(source, near)
    columns += other.columns
    usable, remaining = _usable(remaining, columns)
    sql = _pair(step_of(walk.step), f"({source})", columns, usable, hint("l", walk.step, "r"))
    done = (*walk.done, index)
    if len(done) == len(node.inputs) and remaining:
        sql = f"SELECT * FROM ({sql}) WHERE {condition(remaining)}"
    purpose = f"{walk.called}, joined with input {index + 1}"
    step = emitter.add("term", purpose, sql, columns, near=near)
    return _Walk(step, done, walk.terms, {**walk.distances, index: distance_of(near)})


def _met_in(emitter: Emitter, graph: JoinGraph, walk: _Walk, index: int) -> str | None:
    """The rows of an input that is a join itself, as far as the walk meets them; else None."""
    other = graph.node.inputs[index]
    use = use_of(other)
    # Where other laws are in force a leaf is not what it seems.
    if use is None or not emitter.is_shared or _is_dear(other):
        return None

    def go_on(join: InnerJoin, step: str, start: int, distance: int | None) -> str:
        begun = _Walk(step, (start,), (), {start: distance})
        inner = JoinGraph(join, emitter.sizes)
        return _walked(emitter, inner, [begun], range(inner.count))[0].step

    met = _same_change(emitter, graph, walk, index, use) or _met(graph, walk, index, use)
    sql = met_rows(emitter, use, met, go_on)
    if sql is None or walk.reads_new(index):
        return sql
    return emitter.before(other, Reading(sql, is_unit=False)).sql


def _same_change(
    emitter: Emitter, graph: JoinGraph, walk: _Walk, index: int, use: Use
) -> Met | None:
    """What a use is tied to in the change of another use of the same join, as both read that."""
    mine = use_of(graph.node.inputs[walk.done[0]])
    if not walk.size_known or mine is None or mine.join != use.join:
        return None
    part, mine = mine.beyond(use)
    change = emitter.change(part)
    assert change is not None
    tied = graph.equalities(walk.done[0], index)
    pairs = use.traced((b, sign, a) for a, sign, b in mine.traced(tied))
    return Met(change, pairs) if pairs else None


def _met(graph: JoinGraph, walk: _Walk, index: int, use: Use) -> Met:
    """What a use is tied to in the rows of a walk."""
    found = {i: use.traced(graph.equalities(index, i)) for i in walk.done}
    nearest = min(
        (i for i in found if found[i] and walk.distances[i] is not None),
        key=lambda i: walk.distances[i] or 0,
        default=None,
    )
    if nearest is None:
        return Met(walk.step, tuple(pair for pairs in found.values() for pair in pairs))
    leaf, distance = graph.node.inputs[nearest], walk.distances[nearest]
    return Met(walk.step, found[nearest], leaf, distance)


def _near(emitter: Emitter, graph: JoinGraph, walk: _Walk, index: int) -> Near | None:
    """What is needed of an input: rows that meet those of the joined one nearest to a change."""
    inputs = graph.node.inputs
    ties = [
        tie_of(emitter, inputs[index], graph.equalities(index, i), inputs[i], walk.distances[i])
        for i in walk.done
    ]
    found = [tie for tie in ties if tie is not None]
    return near_leaf(emitter, inputs[index], sorted(found, key=lambda tie: tie.level)[:1])


def _remaining(node: InnerJoin, done: Sequence[int]) -> list[Scalar]:
    """The conjuncts that what is joined already did not decide."""
    if len(done) < 2:
        return list(node.conjuncts)
    return _usable(list(node.conjuncts), [c for i in done for c in node.inputs[i].columns])[1]


def _restricted(
    emitter: Emitter,
    other: Node,
    reading: Reading,
    current: str,
    columns: list[Column],
    remaining: list[Scalar],
) -> str:
    """Restrict an input that is dear to evaluate to what the change can meet.

    Spark pushes the semi join below a grouping; a plain scan needs none, its join does the same.
    """
    if not _is_dear(other):
        return reading.sql
    usable, _ = _usable(remaining, columns + list(other.columns))
    if not usable:
        return reading.sql
    emitter.keep(current)
    names = listed((f"r.{n}" for n in names_of(other.columns)), f"r.{W}")
    return (
        f"SELECT {hint('l', current)} {names} FROM ({reading.sql}) r "
        f"LEFT SEMI JOIN {step_of(current)} l ON {condition(usable)}"
    )


def _is_dear(node: Node) -> bool:
    return any(isinstance(n, _DEAR) for n in walk(node))


def _pair(left: str, right: str, columns: list[Column], usable: list[Scalar], hinted: str) -> str:
    return (
        f"SELECT {hinted} {listed(names_of(columns), f'l.{W} * r.{W} AS {W}')}\n"
        f"FROM {left} l JOIN {right} r ON {condition(usable)}"
    )


def _usable(conjuncts: list[Scalar], columns: list[Column]) -> tuple[list[Scalar], list[Scalar]]:
    names = set(names_of(columns))
    usable = [c for c in conjuncts if c.reads <= names]
    return usable, [c for c in conjuncts if c not in usable]
