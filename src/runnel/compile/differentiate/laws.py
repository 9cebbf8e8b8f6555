"""Which law serves which operator."""

from __future__ import annotations

from runnel.algebra.nodes import (
    Aggregate,
    Filter,
    Fixpoint,
    Generate,
    InnerJoin,
    Node,
    OneRow,
    OuterJoin,
    Project,
    Recursive,
    Repeat,
    Scan,
    SemiJoin,
    TopK,
    UnionAll,
    Window,
)
from runnel.compile.differentiate import (
    aggregate,
    fixpoint,
    inner_join,
    linear,
    outer_join,
    semi_join,
    top_k,
    window,
)
from runnel.compile.differentiate.by_keys import change_by_keys
from runnel.compile.differentiate.emitter import Emitter, Reading
from runnel.compile.differentiate.real_rows import real_change
from runnel.compile.program import step_of


def new(emitter: Emitter, node: Node) -> Reading:
    """new(N): the node over its inputs' new contents."""
    match node:
        case Scan():
            return linear.new_scan(emitter, node)
        case OneRow():
            return linear.new_one_row(emitter, node)
        case Project():
            inner = emitter.new(node.input)
            return Reading(linear.project_sql(node, f"({inner.sql})"), inner.is_unit)
        case Filter():
            inner = emitter.new(node.input)
            return Reading(linear.filter_sql(node, f"({inner.sql})"), inner.is_unit)
        case InnerJoin():
            return inner_join.new_inner_join(emitter, node)
        case OuterJoin():
            return outer_join.new_outer_join(emitter, node)
        case SemiJoin():
            return semi_join.new_semi_join(emitter, node)
        case Repeat():
            inner = emitter.new(node.input)
            return Reading(linear.repeat_sql(node, f"({inner.sql})"), is_unit=False)
        case Generate():
            inner = emitter.new(node.input)
            return Reading(linear.generate_sql(node, f"({inner.sql})"), inner.is_unit)
        case UnionAll():
            return linear.new_union(emitter, node)
        case Aggregate():
            return aggregate.new_aggregate(emitter, node)
        case Window():
            return window.new_window(emitter, node)
        case TopK():
            return top_k.new_top_k(emitter, node)
        case Fixpoint():
            return fixpoint.new_fixpoint(emitter, node)
        case Recursive():
            raise fixpoint.outside(node)


def change(emitter: Emitter, node: Node) -> str | None:
    """change(N): the step that gives it, or None."""
    # Where other laws are in force, as in a round of a recursion, a leaf is not what it seems.
    if emitter.change_law is change and (keyed := change_by_keys(emitter, node)) is not None:
        return keyed
    match node:
        case Scan():
            return linear.change_scan(emitter, node)
        case OneRow():
            return None
        case Project() | Filter() | Repeat() | Generate():
            return _change_row_wise(emitter, node)
        case InnerJoin():
            return inner_join.change_inner_join(emitter, node)
        case OuterJoin():
            return outer_join.change_outer_join(emitter, node)
        case SemiJoin():
            return semi_join.change_semi_join(emitter, node)
        case UnionAll():
            return linear.change_union(emitter, node)
        case Aggregate():
            return aggregate.change_aggregate(emitter, node)
        case Window():
            return window.change_window(emitter, node)
        case TopK():
            return top_k.change_top_k(emitter, node)
        case Fixpoint():
            return fixpoint.change_fixpoint(emitter, node)
        case Recursive():
            raise fixpoint.outside(node)


def _change_row_wise(emitter: Emitter, node: Project | Filter | Repeat | Generate) -> str | None:
    inner = emitter.change(node.input)
    if inner is None:
        return None
    inner = real_change(emitter, node, inner)
    source, bound = step_of(inner), f"step:{inner}"
    match node:
        case Project():
            sql = linear.project_sql(node, source)
            return emitter.add(
                "project", "columns of the change", sql, node.columns, bounds=[bound]
            )
        case Filter():
            sql = linear.filter_sql(node, source)
            return emitter.add("filter", "the change, filtered", sql, node.columns, bounds=[bound])
        case Repeat():
            sql = linear.repeat_sql(node, source)
            return emitter.add("repeat", "as often as it counts", sql, node.columns, bounds=[bound])
        case Generate():
            sql = linear.generate_sql(node, source)
            return emitter.add("generate", "the rows each changed row gives", sql, node.columns)
