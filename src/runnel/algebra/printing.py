"""The operator tree as indented text, for explain and for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from runnel.algebra.nodes import (
    Aggregate,
    Call,
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


def print_tree(node: Node, indent: int = 0) -> str:
    """One line for each node, children below their parent."""
    lines = ["  " * indent + label(node)]
    lines.extend(print_tree(child, indent + 1) for child in node.inputs)
    return "\n".join(lines)


def label(node: Node) -> str:
    """One node in words."""
    match node:
        case Scan():
            pairs = zip(node.columns, node.names, strict=True)
            return f"Scan {node.source} [{', '.join(f'{c.name}={n}' for c, n in pairs)}]"
        case OneRow():
            return "OneRow"
        case Project():
            return f"Project [{', '.join(f'{c.name}={s}' for c, s in node.items)}]"
        case Filter() | InnerJoin() | OuterJoin() | SemiJoin():
            return condition_label(node)
        case Repeat():
            return f"Repeat [{node.times} times]"
        case Generate():
            kind = "GenerateOuter" if node.is_outer else "Generate"
            return f"{kind} [{', '.join(c.name for c in node.generated)}={node.function}]"
        case Recursive():
            return f"Recursive {node.name} [{', '.join(c.name for c in node.columns)}]"
        case Fixpoint():
            kind = "UNION" if node.is_distinct else "UNION ALL"
            names = ", ".join(c.name for c in node.columns)
            return f"Fixpoint {node.name} [{names}] {kind}"
        case UnionAll():
            return f"UnionAll [{', '.join(c.name for c in node.columns)}]"
        case Aggregate():
            calls = [f"{c.output.name}={_call(c)}" for c in node.calls]
            return f"Aggregate by [{', '.join(node.keys)}] [{', '.join(calls)}]"
        case Window():
            shown = [f"{c.output.name}={c.function}" for c in node.calls]
            return f"Window by [{', '.join(node.partition)}] [{', '.join(shown)}]"
        case TopK():
            return top_label(node)


def condition_label(
    node: Filter | InnerJoin | OuterJoin | SemiJoin,
    called: Callable[[str], str] = lambda name: name,
) -> str:
    """An operator that is its conditions; `called` is what columns are called."""
    match node:
        case Filter():
            kind = "Filter"
        case InnerJoin():
            kind = "InnerJoin"
        case OuterJoin():
            kind = f"{node.kind.capitalize()}Join"
        case SemiJoin():
            kind = "AntiJoin" if node.is_anti else "SemiJoin"
    return f"{kind} [{' AND '.join(c.render(called) for c in node.conjuncts)}]"


def top_label(node: TopK, called: Callable[[str], str] = lambda name: name) -> str:
    first = "all" if node.limit is None else node.limit
    skipped = f" after {node.offset}" if node.offset else ""
    order = [str(replace(key, column=called(key.column))) for key in node.order]
    return f"TopK [{first}{skipped} by {', '.join(order)}]"


def _call(call: Call) -> str:
    if call.text is not None and not call.is_in_order:
        return str(call.text)
    return f"{call.function}({', '.join(a.name for a in call.arguments)})"
