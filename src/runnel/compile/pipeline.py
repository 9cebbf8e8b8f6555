"""From query text to a compiled query: parse, build, normalise, then differentiate on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from runnel.algebra.nodes import Aggregate, Fixpoint, Node, Scan, walk
from runnel.compile.build import Builder, SourceSchema
from runnel.compile.collated import refuse_collated_columns
from runnel.compile.differentiate import laws
from runnel.compile.differentiate.aggregate import group_state
from runnel.compile.differentiate.emitter import Emitter, consolidated, listed, names_of
from runnel.compile.differentiate.root_aggregate import change_root_aggregate
from runnel.compile.differentiate.root_fixpoint import change_root_fixpoint, full_root_fixpoint
from runnel.compile.differentiate.root_top_k import change_root_top, flagged
from runnel.compile.differentiate.state import state_of
from runnel.compile.differentiate.top_k import top
from runnel.compile.guard import guard
from runnel.compile.inexact_columns import inexact_columns
from runnel.compile.normalize.flatten_joins import flatten_joins
from runnel.compile.normalize.merge_projects import merge_projects
from runnel.compile.normalize.prune_columns import prune_columns
from runnel.compile.normalize.push_filters import push_filters
from runnel.compile.normalize.share_parts import share_parts
from runnel.compile.padded import refuse_padded
from runnel.compile.parse import parse
from runnel.compile.places import point
from runnel.compile.program import Program, W, step_of
from runnel.compile.refuse import refuse
from runnel.compile.rewrites.determinism import make_deterministic, written
from runnel.compile.rewrites.fix_time import refuse_time
from runnel.compile.rewrites.named_tuples import name_tuples
from runnel.compile.rewrites.named_windows import expand_named_windows
from runnel.compile.rewrites.ordered_folds import needs_order, number_calls, put_in_order
from runnel.compile.rewrites.ties import number_places
from runnel.compile.rewrites.time_windows import expand_time_windows
from runnel.compile.root import Root, root_of
from runnel.compile.simplify import simplify
from runnel.compile.typing import Typer
from runnel.compile.unnest.free import free_columns
from runnel.errors import InvalidQuery, NotDifferentiable, UserError
from runnel.model.columns import WEIGHT, Column, Layout

PASSES = (
    merge_projects,
    flatten_joins,
    push_filters,
    merge_projects,
    flatten_joins,
    prune_columns,
)


_Window = tuple[frozenset[str], frozenset[str], frozenset[tuple[str, int]]]
"""Which sources changed, which of them only grew, and how large sources are."""


@dataclass
class CompiledQuery:
    """A query that can be maintained differentially."""

    tree: Node
    root: Root
    kinds: Mapping[str, str]
    text: str | None = None
    """The query with every choice made that SQL leaves open; None when the user's own has none."""
    shared: tuple[Node, ...] = ()
    """Parts that stand in the tree more than once."""
    outputs: tuple[str, ...] = ()
    """What the tree calls the user's columns."""
    _programs: dict[_Window, Program] = field(default_factory=dict)

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

    @property
    def can_overflow(self) -> bool:
        """Whether adding a change may overflow where the query itself does not."""
        aggregates = (node for node in walk(self.tree) if isinstance(node, Aggregate))
        return any(column.can_overflow for node in aggregates for column in state_of(node).columns)

    def inexact(self, sources: Mapping[str, frozenset[str]]) -> tuple[bool, ...]:
        """Of each of the user's columns: whether its last digits depend on the order of rows.

        `sources` has the columns of sources of which that is known.
        """
        found = inexact_columns(self.tree, sources)
        return tuple(name in found for name in self.outputs)

    def full(self) -> str:
        """The text of the last step of `full_program`."""
        return self.full_program().output.sql

    def full_program(self) -> Program:
        """The stored rows of the whole result at the new versions, each with its `__weight`."""
        emitter = _emitter(self.kinds, frozenset(), frozenset())
        sql = _full(emitter, self.root)
        emitter.add("output", "the whole result", sql, self.layout.stored)
        return simplify(Program(tuple(emitter.steps.values())))

    def program(
        self,
        changed: frozenset[str],
        growing: frozenset[str] = frozenset(),
        sizes: Mapping[str, int] | None = None,
    ) -> Program:
        """The change program for a window in which these sources changed; cached.

        `growing` are those that only grew. `sizes` says of sources how large they are, roughly.
        """
        key = (changed, growing & changed, frozenset((sizes or {}).items()))
        if key not in self._programs:
            self._programs[key] = _differentiate(self, *key)
        return self._programs[key]


def compile_query(
    query: str,
    sources: Sequence[SourceSchema],
    typer: Typer,
    names: Sequence[str] | None = None,
    *,
    is_instant: bool = False,
) -> CompiledQuery:
    """Compile a query; `names` are the output names as Spark gives them.

    `is_instant`: what asks for the time is taken as it is; good for the text only.

    Raises InvalidQuery when no mode can keep it, NotDifferentiable when only FULL can.
    """
    parsed = parse(query)
    refuse(query, parsed)
    try:
        return _compile(parsed, sources, typer, names, is_instant)
    except UserError as error:
        point(error, query)
        raise


def _compile(
    parsed: exp.Query,
    sources: Sequence[SourceSchema],
    typer: Typer,
    names: Sequence[str] | None,
    is_instant: bool,
) -> CompiledQuery:
    if not is_instant:
        refuse_time(parsed)
    refuse_padded(parsed, frozenset().union(*(s.chars for s in sources)))
    syntax = make_deterministic(parsed)
    is_rewritten = syntax is not parsed
    syntax = name_tuples(expand_time_windows(expand_named_windows(syntax)))
    number_places(syntax)
    number_calls(syntax)
    builder = Builder({s.key: s for s in sources}, typer)
    relation = builder.query(syntax, {})
    tree = relation.node
    if free_columns(tree):
        raise NotDifferentiable(
            "a reference to an outer query that no row gives",
            hint="write the subquery as a join, or use refresh mode FULL or AUTO",
        )
    outputs = tuple(column for _, column in relation.outputs)
    called = tuple(names) if names is not None else _default_names(relation.outputs)
    if len(called) != len(outputs):
        raise InvalidQuery(f"expected {len(called)} output columns, compiled {len(outputs)}")
    tree, shared = share_parts(tree, [r.node for r in builder.ctes.values()], _normalize)
    refuse_collated_columns(tree, syntax)
    completed = builder.ties.written(syntax) or (syntax if is_rewritten else None)
    root = root_of(tree, outputs, called)
    is_ordered = needs_order(tree, root.stored_node)
    if is_ordered:
        tree, shared = put_in_order(tree), tuple(map(put_in_order, shared))
        root = root_of(tree, outputs, called)
    summed = builder.folds.written(completed or syntax, with_order=is_ordered)
    completed = summed or completed
    if completed is not None:
        completed = builder.local_times.written(completed)
    text = written(completed) if completed is not None else None
    kinds, own_names = {s.key: s.kind for s in sources}, tuple(c.name for c in outputs)
    compiled = CompiledQuery(tree, root, kinds, text, shared, own_names)
    # Compiling the change of every source finds what cannot be kept before anything is created.
    with builder.folds.blamed():
        compiled.program(frozenset(compiled.kinds))
    return compiled


def _normalize(tree: Node) -> Node:
    for rewrite in PASSES:
        tree = rewrite(tree)
    return tree


def _differentiate(
    query: CompiledQuery,
    changed: frozenset[str],
    growing: frozenset[str],
    sizes: frozenset[tuple[str, int]],
) -> Program:
    emitter = _emitter(query.kinds, changed, growing, query.shared, dict(sizes))
    empty_if_empty = _change(emitter, query.root)
    program = simplify(Program(tuple(emitter.steps.values()), empty_if_empty))
    guard(program, query.layout, changed)
    return program


def _full(emitter: Emitter, root: Root) -> str:
    if root.top is not None:
        if root.top.flag is not None:
            return flagged(root.top, _netted_rows(root.top.rows, _full(emitter, root.top.rows)))
        reading = top(root.top.node, emitter.new(root.top.node.input))
        return _stored(root.top.rows, reading.sql, W)
    if isinstance(root.node, Fixpoint):
        return full_root_fixpoint(emitter, root.node, root.items)
    if root.state is None:
        return _stored(root, emitter.new(root.node).sql, W)
    assert isinstance(root.node, Aggregate)
    grouped = group_state(root.node, root.state, emitter.new(root.node.input))
    return _stored(root, grouped, "CAST(1 AS BIGINT)")


def _netted_rows(root: Root, sql: str) -> str:
    """Each stored row once; a state has no row twice."""
    if root.state is not None:
        return sql
    return consolidated(sql, names_of(root.layout.stored), "> 0", WEIGHT)


def _change(emitter: Emitter, root: Root) -> str | None:
    """Write the steps of a root's change; one whose emptiness means that there is none."""
    if root.top is not None:
        _change(emitter, root.top.rows)
        rows = emitter.rename_last("rows")
        if rows is not None:
            change_root_top(emitter, root.top, rows)
        return rows
    if isinstance(root.node, Fixpoint):
        return change_root_fixpoint(emitter, root.node, root.stored, root.items)
    if root.state is None:
        change = emitter.change(root.node)
        if change is not None:
            sql = _netted(root, step_of(change))
            emitter.add("output", "netted", sql, [c for c, _ in root.items])
        return None
    assert isinstance(root.node, Aggregate)
    return change_root_aggregate(emitter, root.node, root.state, root.stored, root.items)


def _emitter(
    kinds: Mapping[str, str],
    changed: frozenset[str],
    growing: frozenset[str],
    shared: tuple[Node, ...] = (),
    sizes: Mapping[str, int] | None = None,
) -> Emitter:
    return Emitter(
        kinds, changed, growing, laws.new, laws.change, shared, sizes or {}, is_shared=True
    )


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
