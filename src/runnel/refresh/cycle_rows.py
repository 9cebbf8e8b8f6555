"""What a member of a cycle must hold: its query by plain Spark, over rows found from empty."""

from __future__ import annotations

from runnel.catalog import StreamTable
from runnel.compile.program import weight_of
from runnel.compile.sources import redirect, source_names
from runnel.errors import SourceError
from runnel.lake.frames import DataFrame, F
from runnel.model.frontier import Frontier
from runnel.model.names import TableName
from runnel.refresh.bind import Binding, RoundLimit, shown
from runnel.refresh.component import component_of
from runnel.refresh.full import bind_plain, full_rows
from runnel.refresh.workspace import Workspace


def member_rows(bound: Binding, table: StreamTable, frontier: Frontier) -> DataFrame:
    """The user's columns and how often each row is there, without looking at what is stored."""
    holder = bound.workspace.find(table.cycle or "")
    if holder is None:
        raise SourceError(f"what holds the rows of {table.name} is gone")
    at = _holder_frontier(bound.workspace, table, frontier, holder)
    bound.limit = RoundLimit.of(bound.workspace, holder)
    found = shown(full_rows(bound, holder, at), holder.layout)
    relation = bound.view("cycle", bound.keep(found))
    component = component_of(holder)
    member = next(m for m in component.members if m.name.key == table.name.key)
    text = component.body(member, relation)
    sources = {s.key: s for s in (*holder.sources, *table.sources)}
    pins = {**at.pins, **frontier.pins}
    for name in source_names(text):
        if name.key in sources:
            bind_plain(bound, sources[name.key], pins[name.key])

    def pinned(name: TableName) -> str:
        return bound.views.get(f"plain:{name.key}", name.name)

    frame = bound.spark.sql(redirect(text, pinned))
    return frame.withColumn(weight_of(frame.columns), F.lit(1).cast("bigint"))


def _holder_frontier(
    workspace: Workspace, table: StreamTable, frontier: Frontier, holder: StreamTable
) -> Frontier:
    """Where the sources stood when the rows were found that the table was computed from."""
    pin = frontier.pins.get(holder.name.key)
    if pin is not None:
        return _frontier_at(workspace, holder, pin.version)
    for source in table.sources:
        upstream = workspace.upstream(source) if source.kind == "stream" else None
        if upstream is not None and upstream.cycle == holder.name.key:
            below = _frontier_at(workspace, upstream, frontier.pins[source.key].version)
            return _holder_frontier(workspace, upstream, below, holder)
    raise SourceError(f"{table.name} is no longer in a cycle", hint="refresh it first")


def _frontier_at(workspace: Workspace, table: StreamTable, epoch: int) -> Frontier:
    if table.epoch == epoch and table.frontier is not None:
        return table.frontier
    commit = workspace.trace(table).commit_of(epoch)
    if commit is None:
        raise SourceError(f"epoch {epoch} of {table.label} is gone", hint="refresh, then verify")
    return Frontier.from_json(commit.metadata["frontier"])
