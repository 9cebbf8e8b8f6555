"""Rows of a recursion by UNION ALL know their level: 0 in the anchor, one more with each step.

A row of UNION ALL has one derivation, so its level is a column like any other. It is stored, and a
refresh that goes on from stored rows meets the same bound as an evaluation from the beginning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from runnel.algebra.nodes import Fixpoint, InnerJoin, Node, Project, Recursive, UnionAll
from runnel.algebra.scalar import Scalar, wrap
from runnel.compile.differentiate.worlds import is_recursive
from runnel.compile.normalize.rebuild import with_inputs
from runnel.model.columns import Column

if TYPE_CHECKING:
    from runnel.compile.build import Builder

_TYPE = "int"


def with_levels(builder: Builder, node: Fixpoint) -> Node:
    """The same rows, of a recursion that has the level of each behind its other columns."""
    base = _beside(node.base, builder.fresh(_TYPE), Scalar.constant("0"))
    step = _one_level_on(builder, node.step, node.name)
    level = builder.fresh(_TYPE)
    made = replace(node, base=base, step=step, columns=(*node.columns, level), level=level.name)
    return Project(made, tuple((c, Scalar.column(c.name)) for c in node.columns))


def _one_level_on(builder: Builder, step: Node, key: str) -> Node:
    """The step's rows, each one level beyond the row of the recursion that it follows from."""
    carrying, level = _carrying(builder, step, key)
    following = wrap("", Scalar.column(level.name), " + 1")
    own = tuple((c, Scalar.column(c.name)) for c in step.columns)
    return Project(carrying, (*own, (builder.fresh(_TYPE), following)))


def _carrying(builder: Builder, node: Node, key: str) -> tuple[Node, Column]:
    """The node with the level of its recursive rows somewhere among its columns.

    Only operators that add up over these rows are met, each with one such input (UNION ALL: all).
    """
    match node:
        case Recursive():
            level = builder.fresh(_TYPE)
            return replace(node, columns=(*node.columns, level)), level
        case Project():
            below, level = _carrying(builder, node.input, key)
            own = builder.fresh(_TYPE)
            return _beside(replace(node, input=below), own, Scalar.column(level.name)), own
        case UnionAll():
            own = builder.fresh(_TYPE)
            parts = tuple(_last(builder, part, key) for part in node.inputs)
            return UnionAll(parts, (*node.columns, own)), own
        case InnerJoin():
            place = [is_recursive(child, key) for child in node.inputs].index(True)
        case _:
            place = 0
    below, level = _carrying(builder, node.inputs[place], key)
    return with_inputs(node, (*node.inputs[:place], below, *node.inputs[place + 1 :])), level


def _last(builder: Builder, part: Node, key: str) -> Node:
    """A branch of a union with its level behind its own columns."""
    carrying, level = _carrying(builder, part, key)
    own = tuple((c, Scalar.column(c.name)) for c in part.columns)
    return Project(carrying, (*own, (builder.fresh(_TYPE), Scalar.column(level.name))))


def _beside(node: Node, column: Column, value: Scalar) -> Project:
    """A projection, or what becomes one, with one more column."""
    if isinstance(node, Project):
        return replace(node, items=(*node.items, (column, value)))
    own = tuple((c, Scalar.column(c.name)) for c in node.columns)
    return Project(node, (*own, (column, value)))
