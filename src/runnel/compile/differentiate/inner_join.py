"""A chain of inner joins: with inputs R1..Rn, the change is the sum over the changed Ri of

    new(R1) x .. x new(Ri-1) x change(Ri) x old(Ri+1) x .. x old(Rn)

Each term starts from its change and walks along the join graph, so that the small side is built.
Inputs that did not change are the same in all terms: they are joined to the sum of these, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runnel.algebra.nodes import (
    Aggregate,
    InnerJoin,
    Node,
    OuterJoin,
    Scan,
    SemiJoin,
    TopK,
    Window,
    walk,
)
from runnel.algebra.scalar import Scalar
from runnel.compile.differentiate.emitter import Emitter, Reading, condition, listed, names_of
from runnel.compile.differentiate.join_graph import core
from runnel.compile.program import W, hint, step_of
from runnel.model.columns import Column

# Evaluating one of these costs more than reading.
_DEAR = (Aggregate, OuterJoin, SemiJoin, Window, TopK)


def new_inner_join(emitter: Emitter, node: InnerJoin) -> Reading:
    readings = [emitter.new(child) for child in node.inputs]
    remaining = list(node.conjuncts)
    done = [0]
    columns = list(node.inputs[0].columns)
    sql = readings[0].sql
    while len(done) < len(node.inputs):
        index = _next_input(node, done, columns, range(len(node.inputs)))
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
    first = core(node, changed)
    terms = [_walked(emitter, node, _start(changes[i], i), first) for i in changed]
    joined = terms[0] if len(terms) == 1 else _sum(emitter, node, terms)
    return _walked(emitter, node, joined, range(len(node.inputs))).step


@dataclass(frozen=True, slots=True)
class _Walk:
    """How far a walk along the join graph has come; `term` is the input whose change it began with.

    `size_known`: nothing was joined to the change yet.
    """

    step: str
    done: tuple[int, ...]
    term: int | None
    size_known: bool = False


def _start(change: str | None, index: int) -> _Walk:
    assert change is not None
    return _Walk(change, (index,), index, size_known=True)


def _sum(emitter: Emitter, node: InnerJoin, terms: list[_Walk]) -> _Walk:
    columns = [c for i in sorted(terms[0].done) for c in node.inputs[i].columns]
    names = listed(names_of(columns), W)
    sql = "\nUNION ALL\n".join(f"SELECT {names} FROM {step_of(term.step)}" for term in terms)
    step = emitter.add("join", "sum of the join's terms", sql, columns)
    return _Walk(step, tuple(sorted(terms[0].done)), None)


def _walked(emitter: Emitter, node: InnerJoin, walk: _Walk, inputs: Sequence[int]) -> _Walk:
    """The walk, gone on to all of these inputs."""
    while any(i not in walk.done for i in inputs):
        walk = _joined(emitter, node, walk, inputs)
    return walk


def _joined(emitter: Emitter, node: InnerJoin, walk: _Walk, inputs: Sequence[int]) -> _Walk:
    """One more input. After the first the size is unknown, so stages that meet much are kept."""
    columns = [c for i in walk.done for c in node.inputs[i].columns]
    index = _next_input(node, walk.done, columns, inputs)
    other = node.inputs[index]
    remaining = _remaining(node, walk.done)
    if not walk.size_known:
        emitter.keep_if_meeting(walk.step, _sources(other))
    is_new = walk.term is None or index < walk.term
    reading = emitter.new(other) if is_new else emitter.old(other)
    source = _restricted(emitter, other, reading, walk.step, columns, remaining)
    columns += other.columns
    usable, remaining = _usable(remaining, columns)
    sql = _pair(step_of(walk.step), f"({source})", columns, usable, hint("l", walk.step, "r"))
    done = (*walk.done, index)
    if len(done) == len(node.inputs) and remaining:
        sql = f"SELECT * FROM ({sql}) WHERE {condition(remaining)}"
    begun = "the terms" if walk.term is None else f"term of input {walk.term + 1}"
    step = emitter.add("term", f"{begun}, joined with input {index + 1}", sql, columns)
    return _Walk(step, done, walk.term)


def _remaining(node: InnerJoin, done: Sequence[int]) -> list[Scalar]:
    """The conjuncts that what is joined already did not decide."""
    if len(done) < 2:
        return list(node.conjuncts)
    return _usable(list(node.conjuncts), [c for i in done for c in node.inputs[i].columns])[1]


def _sources(node: Node) -> frozenset[str]:
    return frozenset(n.source for n in walk(node) if isinstance(n, Scan))


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
    if not any(isinstance(n, _DEAR) for n in walk(other)):
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


def _pair(left: str, right: str, columns: list[Column], usable: list[Scalar], hinted: str) -> str:
    return (
        f"SELECT {hinted} {listed(names_of(columns), f'l.{W} * r.{W} AS {W}')}\n"
        f"FROM {left} l JOIN {right} r ON {condition(usable)}"
    )


def _usable(conjuncts: list[Scalar], columns: list[Column]) -> tuple[list[Scalar], list[Scalar]]:
    names = set(names_of(columns))
    usable = [c for c in conjuncts if c.reads <= names]
    return usable, [c for c in conjuncts if c not in usable]


def _next_input(
    node: InnerJoin, done: Sequence[int], columns: list[Column], inputs: Sequence[int]
) -> int:
    """An input that a condition connects to what is joined already, or else the first one left."""
    left = [i for i in inputs if i not in done]
    names = set(names_of(columns))
    for index in left:
        own = set(names_of(node.inputs[index].columns))
        for conjunct in node.conjuncts:
            if conjunct.reads & own and conjunct.reads & names and conjunct.reads <= own | names:
                return index
    return left[0]
