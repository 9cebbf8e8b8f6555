"""A chain of inner joins: with inputs R1..Rn, the change is the sum over the changed Ri of

    new(R1) x .. x new(Ri-1) x change(Ri) x old(Ri+1) x .. x old(Rn)

Each term starts from its change and walks along the join graph, so that the small side is built.
"""

from __future__ import annotations

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
        index = _next_input(node, done, columns)
        columns += node.inputs[index].columns
        usable, remaining = _usable(remaining, columns)
        sql = _pair(f"({sql})", f"({readings[index].sql})", columns, usable, "")
        done.append(index)
    if remaining:
        sql = f"SELECT * FROM ({sql}) WHERE {condition(remaining)}"
    return Reading(sql, all(r.is_unit for r in readings))


def change_inner_join(emitter: Emitter, node: InnerJoin) -> str | None:
    terms = [
        _term(emitter, node, index)
        for index, child in enumerate(node.inputs)
        if emitter.change(child) is not None
    ]
    if not terms:
        return None
    if len(terms) == 1:
        return terms[0]
    names = listed(names_of(node.columns), W)
    sql = "\nUNION ALL\n".join(f"SELECT {names} FROM {step_of(term)}" for term in terms)
    return emitter.add("join", "sum of the join's terms", sql, node.columns)


def _term(emitter: Emitter, node: InnerJoin, changed: int) -> str:
    """One term. After the first join the size is unknown, so stages that meet much are kept."""
    current = emitter.change(node.inputs[changed])
    assert current is not None
    remaining = list(node.conjuncts)
    done = [changed]
    columns = list(node.inputs[changed].columns)
    while len(done) < len(node.inputs):
        index = _next_input(node, done, columns)
        other = node.inputs[index]
        if len(done) > 1:
            emitter.keep_if_meeting(current, _sources(other))
        reading = emitter.new(other) if index < changed else emitter.old(other)
        source = _restricted(emitter, other, reading, current, columns, remaining)
        columns += other.columns
        usable, remaining = _usable(remaining, columns)
        sql = _pair(step_of(current), f"({source})", columns, usable, hint("l", current, "r"))
        purpose = f"term of input {changed + 1}, joined with input {index + 1}"
        done.append(index)
        if len(done) == len(node.inputs) and remaining:
            sql = f"SELECT * FROM ({sql}) WHERE {condition(remaining)}"
        current = emitter.add("term", purpose, sql, columns)
    return current


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


def _next_input(node: InnerJoin, done: list[int], columns: list[Column]) -> int:
    """An input that a condition connects to what is joined already, or else the first one left."""
    left = [i for i in range(len(node.inputs)) if i not in done]
    names = set(names_of(columns))
    for index in left:
        own = set(names_of(node.inputs[index].columns))
        for conjunct in node.conjuncts:
            if conjunct.reads & own and conjunct.reads & names and conjunct.reads <= own | names:
                return index
    return left[0]
