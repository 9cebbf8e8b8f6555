"""Which columns of a query have values whose last digits depend on the order of evaluation.

Adding floating point numbers in another order gives other last digits. So do sums of them kept in
a state, and averages divided from exact sums, where Spark adds doubles. What is copied, grouped by,
or computed row by row from stored values comes out the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from runnel.algebra.nodes import (
    Aggregate,
    Call,
    Fixpoint,
    Generate,
    Node,
    Project,
    Recursive,
    Scan,
    UnionAll,
    Window,
    WindowCall,
)
from runnel.compile.aggregates import WAYS, is_aggregate
from runnel.compile.differentiate.state import is_inexact
from runnel.compile.parse import parse
from runnel.compile.typing import has_floats

_AVERAGES = ("avg", "mean", "try_avg")
# Functions over a frame that copy a value of it, or count rows.
_COPYING = frozenset(
    "lag lead first first_value last last_value nth_value min max min_by max_by any_value mode "
    "count count_if row_number rank dense_rank percent_rank cume_dist ntile".split()
)
_FROM = ("from_", "from", "joins", "laterals", "pivots")
_Marks = Mapping[str, tuple[bool, ...]]


def inexact_columns(tree: Node, sources: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The names of such columns of a tree; `sources` has those of sources that have any."""
    return _inexact(tree, sources, {})


def may_be_inexact(text: str) -> tuple[bool, ...] | bool:
    """The same of a query that is not compiled: by column, or for all of them."""
    tree = parse(text)
    if not _holds_open(tree):
        return False
    if not isinstance(tree, exp.Select) or not _reads_tables_only(tree):
        return True
    found: list[bool] = []
    names: set[str] = set()
    for item in tree.expressions:
        # A column may be the name of an item before it.
        found.append(_holds_open(item) or any(c.name.lower() in names for c in _columns(item)))
        names |= {item.alias_or_name.lower()} if found[-1] else set()
    return tuple(found)


def _inexact(
    node: Node, sources: Mapping[str, frozenset[str]], recursive: _Marks
) -> frozenset[str]:
    below = [_inexact(child, sources, recursive) for child in _inputs(node)]
    found = frozenset[str]().union(*below)
    match node:
        case Scan():
            given = {name.lower() for name in sources.get(node.source, ())}
            pairs = zip(node.columns, node.names, strict=True)
            return frozenset(c.name for c, name in pairs if name.lower() in given)
        case Project():
            return frozenset(c.name for c, scalar in node.items if scalar.reads & found)
        case Generate():
            made = node.generated if node.function.reads & found else ()
            return found | {c.name for c in made}
        case Aggregate():
            calls = (c.output.name for c in node.calls if _is_inexact_call(c, found))
            return (found & frozenset(node.keys)) | frozenset(calls)
        case Window():
            calls = (c.output.name for c in node.calls if _is_inexact_window(c, found))
            return found | frozenset(calls)
        case UnionAll():
            return _by_position(node, zip(node.inputs, below, strict=True))
        case Recursive():
            marks = recursive[node.name]
            return frozenset(
                c.name for c, is_marked in zip(node.columns, marks, strict=True) if is_marked
            )
        case Fixpoint():
            return _of_fixpoint(node, sources, recursive)
        case _:
            return found & frozenset(c.name for c in node.columns)


def _inputs(node: Node) -> tuple[Node, ...]:
    # The step of a recursion is looked at with what is known of its own rows.
    return () if isinstance(node, Fixpoint) else node.inputs


def _of_fixpoint(
    node: Fixpoint, sources: Mapping[str, frozenset[str]], recursive: _Marks
) -> frozenset[str]:
    marks = tuple(False for _ in node.columns)
    while True:
        known = {**recursive, node.name: marks}
        parts = [(part, _inexact(part, sources, known)) for part in (node.base, node.step)]
        found = _by_position(node, parts)
        now = tuple(column.name in found for column in node.columns)
        if now == marks:
            return found
        marks = now


def _by_position(
    node: UnionAll | Fixpoint, parts: Iterable[tuple[Node, frozenset[str]]]
) -> frozenset[str]:
    return frozenset(
        column.name
        for part, found in parts
        for column, own in zip(node.columns, part.columns, strict=True)
        if own.name in found
    )


def _is_inexact_call(call: Call, found: frozenset[str]) -> bool:
    if is_inexact(call) or {a.name for a in call.arguments} & found:
        return True
    if call.is_in_order:
        return False
    function = call.function.removesuffix("_distinct")
    is_unknown = function not in WAYS and function != "count_star"
    return has_floats(call.output.type) and (function in _AVERAGES or is_unknown)


def _is_inexact_window(call: WindowCall, found: frozenset[str]) -> bool:
    if call.function.reads & found:
        return True
    function = str(call.function).partition("(")[0].strip().lower()
    return has_floats(call.output.type) and function not in _COPYING


def _is_open(node: exp.Expr) -> bool:
    """Whether the value of an expression may depend on the order of rows."""
    # A function of the user's own may be an aggregate.
    return isinstance(node, (exp.Window, exp.Anonymous)) or is_aggregate(node)


def _holds_open(tree: exp.Expr) -> bool:
    return any(map(_is_open, tree.walk()))


def _columns(tree: exp.Expr) -> Iterable[exp.Column]:
    return tree.find_all(exp.Column)


def _reads_tables_only(tree: exp.Select) -> bool:
    """Whether it computes from stored columns alone, and says what its columns are."""
    if any(item.is_star for item in tree.expressions):
        return False
    if any(node is not tree and isinstance(node, exp.Query) for node in tree.walk()):
        return False
    # What FROM computes, as PIVOT does, is no stored column.
    parts = (part for part in tree.iter_expressions() if part.arg_key in _FROM)
    return not any(map(_holds_open, parts))
