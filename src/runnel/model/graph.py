"""The graph of tables and the stream tables that read them, drawn in three ways."""

from __future__ import annotations

import html
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from runnel.model.refresh import RefreshMode, TableState
from runnel.model.tabular import Record


@dataclass(frozen=True, slots=True, repr=False)
class GraphNode(Record):
    """A table; state, mode and schedule are those of a stream table."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("name", "kind", "mode", "state", "schedule")

    name: str
    kind: Literal["delta", "stream"]
    state: TableState | None = None
    mode: RefreshMode | None = None
    schedule: str | None = None

    @property
    def label(self) -> str:
        state = None if self.state is TableState.ACTIVE else self.state
        notes = ", ".join(str(note) for note in (self.mode, self.schedule, state) if note)
        return f"{self.name} [{notes}]" if notes else self.name


@dataclass(frozen=True, slots=True, repr=False)
class GraphEdge(Record):
    """`target` reads `source`."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}"


@dataclass(frozen=True, slots=True, repr=False)
class Graph(Record):
    """All tables, and who reads whom."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]

    def to_json(self) -> dict[str, Any]:
        return self.to_dict()

    def mermaid(self) -> str:
        """The graph in Mermaid's language, for documents and notebooks."""
        ids = {node.name: f"n{i}" for i, node in enumerate(self.nodes)}
        lines = ["graph LR"]
        for node in self.nodes:
            opening, closing = ("[(", ")]") if node.kind == "delta" else ("[", "]")
            label = node.label.replace("&", "&amp;").replace('"', "&quot;")
            lines.append(f'    {ids[node.name]}{opening}"{label}"{closing}')
        lines += [f"    {ids[e.source]} --> {ids[e.target]}" for e in self.edges]
        return "\n".join(lines)

    def __str__(self) -> str:
        """A tree below each table that reads no other; a table met again is not unfolded again."""
        labels = {node.name: node.label for node in self.nodes}
        readers = self._readers()
        seen: set[str] = set()
        lines: list[str] = []
        for root in self._roots():
            if root not in seen:
                lines += _branch(root, readers, labels, seen)
        return "\n".join(lines) or "(no stream tables)"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _readers(self) -> dict[str, list[str]]:
        readers: dict[str, list[str]] = defaultdict(list)
        for edge in self.edges:
            readers[edge.source].append(edge.target)
        return readers

    def _roots(self) -> list[str]:
        """Tables that read nothing come first; the others matter only when they form a cycle."""
        targets = {edge.target for edge in self.edges}
        return sorted((node.name for node in self.nodes), key=lambda name: name in targets)


def _branch(
    name: str, readers: dict[str, list[str]], labels: dict[str, str], seen: set[str]
) -> list[str]:
    label = labels.get(name, name)
    children = readers.get(name, [])
    if name in seen and children:
        return [f"{label} ..."]
    seen.add(name)
    lines = [label]
    for child in children:
        is_last = child == children[-1]
        first, *rest = _branch(child, readers, labels, seen)
        lines.append(("└─ " if is_last else "├─ ") + first)
        lines += [("   " if is_last else "│  ") + line for line in rest]
    return lines
