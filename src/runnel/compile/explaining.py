"""The operator tree with the law each operator uses, and what is dear about it."""

from __future__ import annotations

from collections.abc import Iterator

from runnel.algebra.describing import Names, describe, is_renaming, names_in
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
    walk,
)
from runnel.compile.differentiate.by_keys import useful_partition
from runnel.compile.differentiate.join_graph import sources
from runnel.compile.differentiate.state import Kind, state_of
from runnel.compile.differentiate.worlds import asks_for_partners
from runnel.compile.root import Root

_EVERY_ROW = "every change evaluates all of its rows again"


def explained_tree(tree: Node, root: Root) -> str:
    """One line for each operator, with its law."""
    return "\n".join(_lines(tree, root, names_in(tree), 0))


def costly(tree: Node, root: Root) -> tuple[str, ...]:
    """Operators whose refresh does not cost in proportion to the change, and why."""
    names = names_in(tree)
    found = ((describe(node, names), _why(node, root)) for node in walk(tree))
    return tuple(dict.fromkeys(f"{operator}: {why}" for operator, why in found if why))


def _lines(
    node: Node, root: Root, names: Names, depth: int, is_below: bool = False
) -> Iterator[str]:
    """`is_below`: it belongs to a part that is evaluated as a whole."""
    key = None if is_below or _is_root(node, root) else _touched_key(node, names)
    if not is_renaming(node):
        law = _law(node, root)
        if key is not None:
            law = f"this and what is below it for the touched values of {key}, before and after"
        elif is_below and not isinstance(node, Scan):
            law = "part of that"
        yield f"{'  ' * depth}{describe(node, names)} -- {law}"
        depth += 1
    for child in node.inputs:
        yield from _lines(child, root, names, depth, is_below or key is not None)


def _is_root(node: Node, root: Root) -> bool:
    return isinstance(node, Aggregate) and _is_stored(node, root)


def _touched_key(node: Node, names: Names) -> str | None:
    """The key that a part of the tree falls apart by, when everything changed."""
    partition = useful_partition(node, sources(node), {})
    if partition is None:
        return None
    return " = ".join(dict.fromkeys(names.get(key, key) for key in partition.keys.values()))


def _law(node: Node, root: Root) -> str:
    match node:
        case Scan():
            return "the change is read, netted"
        case Project() | Filter() | Repeat() | Generate() | UnionAll():
            return "row by row"
        case InnerJoin():
            return "one term for each input that changed, or the join after minus the join before"
        case OuterJoin():
            return "the inner join, and rows that gain or lose their only partner"
        case SemiJoin():
            return "rows whose partners came or went"
        case Aggregate():
            return _aggregate_law(node, root)
        case Window():
            return "touched partitions, before and after"
        case TopK():
            if root.top is not None and root.top.node is node:
                return "the stored first rows and the change"
            return "both ends evaluated"
        case Fixpoint():
            start = "" if _is_stored(node, root) else "the old rows evaluated; "
            return f"{start}what goes and what comes is followed from the changed rows on"
        case Recursive():
            return "the rows found so far"
        case OneRow():
            return "never changes"


def _aggregate_law(node: Aggregate, root: Root) -> str:
    in_order = "; floating point in the order of its values" * any(
        c.is_in_order for c in node.calls
    )
    if not _is_stored(node, root):
        return f"touched groups, before and after{in_order}"
    kinds = {column.kind for column in state_of(node).columns}
    if Kind.VALUE in kinds:
        return f"touched groups recomputed{in_order}"
    if Kind.EXTREME in kinds:
        return "stored state plus the change; a group that loses its extreme is recomputed"
    return "stored state plus the change"


def _is_stored(node: Aggregate | Fixpoint, root: Root) -> bool:
    inner = root.top.rows if root.top is not None else root
    return inner.node is node and (inner.state is not None or isinstance(node, Fixpoint))


def _why(node: Node, root: Root) -> str | None:
    match node:
        case Window() if not node.partition:
            return f"without PARTITION BY {_EVERY_ROW}"
        case TopK() if root.top is None or root.top.node is not node:
            return f"below another operator {_EVERY_ROW}"
        case Aggregate() if not node.keys and not _is_stored(node, root):
            return f"without GROUP BY below another operator {_EVERY_ROW}"
        case Fixpoint() if not _is_stored(node, root):
            return f"below another operator {_EVERY_ROW}"
        case Fixpoint() if asks_for_partners(node):
            return "a change of what its step asks by EXISTS, IN or LEFT JOIN evaluates all rows"
        case InnerJoin() if _has_loose_input(node):
            return "no condition ties one input to the others, so a changed row meets all of it"
        case _:
            return None


def _has_loose_input(node: InnerJoin) -> bool:
    """Whether the join graph falls apart; a single row or constants are no reason to worry."""
    names = [{c.name for c in child.columns} for child in node.inputs if not _is_single(child)]
    if len(names) < 2:
        return False
    reached = names[0]
    waiting = names[1:]
    while waiting:
        tied = [
            n for n in waiting if any(c.reads & n and c.reads & reached for c in node.conjuncts)
        ]
        if not tied:
            return True
        waiting = [n for n in waiting if n not in tied]
        reached = reached.union(*tied)
    return False


def _is_single(node: Node) -> bool:
    while isinstance(node, Project):
        node = node.input
    if isinstance(node, Aggregate):
        return node.is_global
    return not any(isinstance(n, Scan) for n in walk(node))
