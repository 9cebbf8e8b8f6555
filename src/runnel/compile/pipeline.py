"""From query text to a compiled query: parse, build, normalise, then differentiate on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from runnel.algebra.nodes import Aggregate, Node, Scan, walk
from runnel.compile.build import Builder, SourceSchema
from runnel.compile.differentiate import laws
from runnel.compile.differentiate.aggregate import group_state
from runnel.compile.differentiate.emitter import Emitter, consolidated, listed, names_of
from runnel.compile.differentiate.root_aggregate import change_root_aggregate
from runnel.compile.guard import guard
from runnel.compile.normalize.flatten_joins import flatten_joins
from runnel.compile.normalize.merge_projects import merge_projects
from runnel.compile.normalize.prune_columns import prune_columns
from runnel.compile.normalize.push_filters import push_filters
from runnel.compile.parse import parse
from runnel.compile.program import Program, W, step_of
from runnel.compile.refuse import refuse
from runnel.compile.rewrites.determinism import make_deterministic, written
from runnel.compile.root import Root, root_of
from runnel.compile.simplify import simplify
from runnel.compile.typing import Typer
from runnel.errors import InvalidQuery
from runnel.model.columns import WEIGHT, Column, Layout

PASSES = (
    merge_projects,
    flatten_joins,
    push_filters,
    merge_projects,
    flatten_joins,
    prune_columns,
)


@dataclass
class CompiledQuery:
    """A query that can be maintained differentially."""

    tree: Node
    root: Root
    kinds: Mapping[str, str]
    text: str | None = None
    """The query as rewritten to be deterministic; None when the user's own text is."""
    _programs: dict[tuple[frozenset[str], frozenset[str]], Program] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        return self.root.layout

    @property
    def used_columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of each source that the query depends on."""
        used: dict[str, dict[str, None]] = {key: {} for key in self.kinds}
        for node in walk(self.tree):
            if isinstance(node, Scan):
                used[node.source].update(dict.fromkeys(node.names))
        return {key: tuple(names) for key, names in used.items()}

    def full(self) -> str:
        """The stored rows of the whole result at the new versions, each with its `__weight`."""
        emitter = _emitter(self.kinds, frozenset(), frozenset())
        root = self.root
        if root.state is None:
            reading = emitter.new(self.tree)
            return _stored(root, reading.sql, W)
        assert isinstance(root.node, Aggregate)
        grouped = group_state(root.node, root.state, emitter.new(root.node.input))
        return _stored(root, grouped, "CAST(1 AS BIGINT)")

    def program(self, changed: frozenset[str], growing: frozenset[str] = frozenset()) -> Program:
        """The change program for a window in which these sources changed; cached."""
        key = (changed, growing & changed)
        if key not in self._programs:
            self._programs[key] = _differentiate(self, *key)
        return self._programs[key]


def compile_query(
    query: str,
    sources: Sequence[SourceSchema],
    typer: Typer,
    names: Sequence[str] | None = None,
) -> CompiledQuery:
    """Compile a query; `names` are the output names as Spark gives them.

    Raises InvalidQuery when no mode can keep it, NotDifferentiable when only FULL can.
    """
    parsed = parse(query)
    refuse(parsed)
    syntax = make_deterministic(parsed)
    text = written(syntax) if syntax is not parsed else None
    builder = Builder({s.key: s for s in sources}, typer)
    relation = builder.query(syntax, {})
    tree = relation.node
    outputs = tuple(column for _, column in relation.outputs)
    called = tuple(names) if names is not None else _default_names(relation.outputs)
    if len(called) != len(outputs):
        raise InvalidQuery(f"expected {len(called)} output columns, compiled {len(outputs)}")
    for rewrite in PASSES:
        tree = rewrite(tree)
    kinds = {s.key: s.kind for s in sources}
    compiled = CompiledQuery(tree, root_of(tree, outputs, called), kinds, text)
    # Compiling the change of every source finds what cannot be kept before anything is created.
    compiled.program(frozenset(compiled.kinds))
    return compiled


def _differentiate(
    query: CompiledQuery, changed: frozenset[str], growing: frozenset[str]
) -> Program:
    emitter = _emitter(query.kinds, changed, growing)
    root = query.root
    empty_if_empty = None
    if root.state is None:
        change = emitter.change(query.tree)
        if change is not None:
            sql = _netted(root, step_of(change))
            emitter.add("output", "netted", sql, [c for c, _ in root.items])
    else:
        assert isinstance(root.node, Aggregate)
        empty_if_empty = change_root_aggregate(
            emitter, root.node, root.state, root.stored, root.items
        )
    program = simplify(Program(tuple(emitter.steps.values()), empty_if_empty))
    guard(program, query.layout, changed)
    return program


def _emitter(kinds: Mapping[str, str], changed: frozenset[str], growing: frozenset[str]) -> Emitter:
    return Emitter(kinds, changed, growing, laws.new, laws.change)


def _stored(root: Root, sql: str, weight: str) -> str:
    items = [f"{scalar} AS {column.name}" for column, scalar in root.items]
    return f"SELECT {listed(items, f'{weight} AS {WEIGHT}')} FROM ({sql})"


def _netted(root: Root, source: str) -> str:
    names = names_of(c for c, _ in root.items)
    renamed = f"SELECT {listed([f'{s} AS {c.name}' for c, s in root.items], W)} FROM {source}"
    netted = consolidated(renamed, names)
    return f"SELECT {listed(names, f'{W} AS {WEIGHT}')} FROM ({netted})"


def _default_names(outputs: Sequence[tuple[str | None, Column]]) -> tuple[str, ...]:
    return tuple(name or f"col{i}" for i, (name, _) in enumerate(outputs))
