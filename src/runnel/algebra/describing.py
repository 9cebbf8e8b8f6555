"""Operators in the words of the query: columns under the names of their tables, not our own."""

from __future__ import annotations

from collections.abc import Mapping

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
from runnel.algebra.printing import condition_label, top_label
from runnel.algebra.scalar import Scalar

_LONGEST = 48
Names = Mapping[str, str]


def names_in(tree: Node) -> dict[str, str]:
    """What every column of a tree is called: `t.k`, `sum(t.x)`; a table's second use is `t#2`."""
    names: dict[str, str] = {}
    _name(tree, names, {})
    return names


def describe(node: Node, names: Names) -> str:
    """One operator in words."""
    match node:
        case Scan():
            own = next((names[c.name].rpartition(".")[0] for c in node.columns), "")
            return f"Scan {own or _short(node.source)} [{', '.join(node.names)}]"
        case OneRow():
            return "OneRow"
        case Project():
            shown = [_text(s, names) for _, s in node.items]
            return f"Project [{', '.join(dict.fromkeys(shown))}]"
        case Filter() | InnerJoin() | OuterJoin() | SemiJoin():
            return condition_label(node, lambda name: names.get(name, name))
        case Repeat():
            return f"Repeat [{_text(node.times, names)} times]"
        case Generate():
            kind = "GenerateOuter" if node.is_outer else "Generate"
            return f"{kind} [{_text(node.function, names)}]"
        case Recursive():
            return f"Recursive {_own(node.name)}"
        case Fixpoint():
            return f"Fixpoint {_own(node.name)} {'UNION' if node.is_distinct else 'UNION ALL'}"
        case UnionAll():
            return f"UnionAll [{_listed(node, names)}]"
        case Aggregate():
            keys = ", ".join(names.get(key, key) for key in node.keys)
            calls = ", ".join(_cut(_call(call, names)) for call in node.calls)
            return f"Aggregate by [{keys}] [{calls}]"
        case Window():
            keys = ", ".join(names.get(key, key) for key in node.partition)
            shown = [_text(call.function, names) for call in node.calls]
            return f"Window by [{keys}] [{', '.join(shown)}]"
        case TopK():
            return top_label(node, lambda name: names.get(name, name))


def is_renaming(node: Node) -> bool:
    """Whether the operator only picks columns, which says nothing here."""
    return isinstance(node, Project) and all(s.bare_column for _, s in node.items)


def _name(node: Node, names: dict[str, str], uses: dict[str, int]) -> None:
    for child in node.inputs:
        _name(child, names, uses)
    match node:
        case Scan():
            uses[node.source] = uses.get(node.source, 0) + 1
            own = _short(node.source) + (f"#{n}" if (n := uses[node.source]) > 1 else "")
            pairs = zip(node.columns, node.names, strict=True)
            names.update({c.name: f"{own}.{n}" for c, n in pairs if c.name not in names})
        case Project():
            names.update({c.name: _text(s, names) for c, s in node.items})
        case Aggregate():
            names.update({c.output.name: _cut(_call(c, names)) for c in node.calls})
        case Window():
            for call in node.calls:
                names[call.output.name] = f"{_text(call.function, names)} over"
        case Generate():
            shown = _text(node.function, names)
            names.update({c.name: shown for c in node.generated})
        case Recursive():
            own = _own(node.name)
            names.update({c.name: f"{own}.{i}" for i, c in enumerate(node.columns, 1)})
        case UnionAll() | Fixpoint():
            for place, column in enumerate(node.columns):
                each = [names.get(i.columns[place].name, column.name) for i in node.inputs]
                # Numbers that tell the branches apart, such as those of grouping sets.
                names[column.name] = "branch" if all(map(str.isdigit, each)) else each[0]
        case _:
            pass


def _short(source: str) -> str:
    return source.removeprefix("default.")


def _own(name: str) -> str:
    """A recursion's name without the number that tells it from others."""
    return name.rpartition("_")[0] or name


def _text(scalar: Scalar, names: Names) -> str:
    return _cut(scalar.render(lambda name: names.get(name, name)))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _listed(node: Node, names: Names) -> str:
    return ", ".join(names.get(c.name, c.name) for c in node.columns)


def _call(call: Call, names: Names) -> str:
    if call.text is not None and not call.is_in_order:
        return call.text.render(lambda name: names.get(name, name))
    name = call.function.removesuffix("_distinct")
    if name == "count_star":
        return "count(*)"
    listed = ", ".join(names.get(a.name, a.name) for a in call.arguments)
    return f"{name}({'DISTINCT ' * (call.function != name)}{listed})"
