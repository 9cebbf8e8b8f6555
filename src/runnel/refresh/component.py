"""Stream tables that read each other, defined together: one table holds the rows of all.

A hidden table keeps the recursion of the component's sets. Each set is shown from it; the other
members keep their own query, over sets that do not depend on them any more.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from runnel.algebra.nodes import Node, Scan
from runnel.catalog import CYCLE, IN_CYCLE, READS, StreamTable
from runnel.compile.components import Component, Member, in_order
from runnel.compile.cycle_columns import infer_columns
from runnel.compile.cycle_places import refuse_at
from runnel.compile.monotone import gives_set, obstacle
from runnel.compile.pipeline import compile_query
from runnel.errors import InvalidQuery, UserError
from runnel.lake.frames import SparkSession
from runnel.lake.typing import SparkTyper
from runnel.model.columns import Column
from runnel.model.names import OF_CYCLE, TableName
from runnel.model.refresh import RefreshMode
from runnel.model.views import Resolution, View
from runnel.refresh.checking import output
from runnel.refresh.definition import (
    Definition,
    Found,
    define,
    plain_layout,
    without_views,
)
from runnel.refresh.hidden import hidden_table
from runnel.refresh.workspace import Workspace

Columns = tuple[Column, ...]


def define_component(
    workspace: Workspace,
    spark: SparkSession,
    drafts: Sequence[StreamTable],
    present: StreamTable | None = None,
) -> tuple[StreamTable, ...]:
    """The table that holds their rows, then the members, each after those it is computed from.

    `drafts` have names and queries; `present` is the table that holds their rows so far.
    """
    staged = workspace.staged(_with_columns(workspace, spark, drafts))
    definitions = {d.name.key: define(staged, spark, d.query, d) for d in drafts}
    members = [_member(d, definitions[d.name.key], definitions.keys()) for d in drafts]
    name = present.name if present else TableName("default", OF_CYCLE + uuid.uuid4().hex[:8])
    component = Component(name, in_order(members))
    views = tuple(dict.fromkeys(v for d in definitions.values() for v in _views(d)))
    holder = _holder(staged, spark, component, drafts[0], views)
    if present is not None:
        holder = replace(holder, id=present.id, incarnation=present.incarnation)
    shown = staged.staged([holder])
    by_key = {d.name.key: d for d in drafts}
    tables = [holder]
    for member in component.members:
        draft, definition = by_key[member.name.key], definitions[member.name.key]
        if member.is_set:
            tables.append(_set(shown, spark, component, member, draft, definition))
        else:
            tables.append(_bag(holder, draft, definition))
    return tuple(tables)


def component_of(holder: StreamTable) -> Component:
    """The component whose rows a table holds."""
    return Component.from_json(holder.name, holder.cycle_members)


def _with_columns(
    workspace: Workspace, spark: SparkSession, drafts: Sequence[StreamTable]
) -> list[StreamTable]:
    """The drafts with the columns that their queries will have."""
    check_cycle_mode(drafts[0].mode)
    _check_settings(drafts)
    by_key = {d.name.key: d for d in drafts}

    def having(known: Mapping[str, Columns]) -> list[StreamTable]:
        return [replace(by_key[key], layout=plain_layout(known[key])) for key in known]

    def ask(text: str, known: Mapping[str, Columns]) -> Columns:
        found = Found(workspace.staged(having(known)))
        return output(spark, text, found.schemas(text))

    seeing = workspace.staged(_as_they_were(workspace, drafts))
    texts = {
        key: without_views(spark, draft.query, draft, Found(seeing)).query
        for key, draft in by_key.items()
    }
    return having(infer_columns(texts, ask))


def _as_they_were(workspace: Workspace, drafts: Sequence[StreamTable]) -> list[StreamTable]:
    """With the columns that a view over them was made for."""
    found = []
    for draft in drafts:
        known = workspace.find(draft.name.key)
        has_none = known is not None and not draft.layout.columns
        found.append(replace(draft, layout=known.layout) if known and has_none else draft)
    return found


def check_cycle_mode(mode: RefreshMode) -> None:
    """What a cycle cannot have yet."""
    if mode is RefreshMode.IMMEDIATE:
        raise UserError(
            "tables that read each other cannot be IMMEDIATE",
            hint="use AUTO, DIFFERENTIAL or FULL",
        )


def _check_settings(drafts: Sequence[StreamTable]) -> None:
    for draft in drafts:
        if draft.settings != drafts[0].settings:
            raise UserError(
                f"{drafts[0].name} and {draft.name} were defined under different session settings",
                detail="tables that read each other are computed as one",
                hint="define them again together",
            )


def _member(draft: StreamTable, definition: Definition, keys: Collection[str]) -> Member:
    if definition.refusal is not None:
        raise definition.refusal
    assert definition.compiled is not None
    tree = definition.compiled.tree

    def is_own(node: Node) -> bool:
        return isinstance(node, Scan) and node.source in keys

    found = obstacle(tree, is_own)
    if found is not None:
        error = InvalidQuery(
            f"{draft.name} cannot read itself, directly or not, through {found}",
            detail="a row more there may take rows away here, so that nothing need come to rest",
            hint="in a cycle use joins, UNION, DISTINCT, EXISTS and IN; put the rest into a table "
            "that reads the cycle from outside",
        )
        raise refuse_at(error, draft.query, found, keys)
    text = definition.compiled.text or _text(definition)
    return Member(draft.name, text, definition.compiled.layout.columns, gives_set(tree))


def _text(definition: Definition) -> str:
    return definition.resolution.text if definition.resolution else definition.query


def _views(definition: Definition) -> tuple[View, ...]:
    return definition.resolution.views if definition.resolution else ()


def _holder(
    workspace: Workspace,
    spark: SparkSession,
    component: Component,
    like: StreamTable,
    views: tuple[View, ...],
) -> StreamTable:
    text, found = component.recursion(), Found(workspace, {s.key: s.known for s in like.sources})
    compiled = compile_query(text, found.schemas(text), SparkTyper(spark))
    used = compiled.used_columns
    return replace(
        hidden_table(
            component.name, like.settings, like.mode, {CYCLE: json.dumps(component.to_json())}
        ),
        query=text, layout=compiled.layout,
        sources=tuple(replace(s, columns=used[s.key]) for s in found.sources(text)),
        resolution=Resolution(text, views) if views else None,
    )  # fmt: skip


def _set(
    workspace: Workspace,
    spark: SparkSession,
    component: Component,
    member: Member,
    draft: StreamTable,
    written: Definition,
) -> StreamTable:
    """A member that is shown from the rows of the component."""
    text = component.shown(member, component.name.sql)
    definition = define(workspace, spark, text)
    named = [(s.key, s.kind, (s.name.schema, s.name.name)) for s in written.sources]
    options = {**draft.options, IN_CYCLE: component.name.key, READS: json.dumps(named)}
    return replace(
        draft, layout=definition.layout, sources=definition.sources, not_differential=None,
        resolution=Resolution(text), options=options,
    )  # fmt: skip


def _bag(holder: StreamTable, draft: StreamTable, definition: Definition) -> StreamTable:
    """A member that counts its rows by its own query."""
    options = {n: v for n, v in draft.options.items() if n != READS}
    return replace(
        draft, layout=definition.layout, sources=definition.sources, not_differential=None,
        resolution=definition.resolution, options={**options, IN_CYCLE: holder.name.key},
    )  # fmt: skip
