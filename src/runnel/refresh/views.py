"""Views of a query: found when a table is defined, and watched when it is refreshed.

The definition of every view is stored with the table, so that a process whose Spark does not know
the view goes on with it. A catalog view is compared with it whenever Spark runs, a temporary one
while the process lives that defined the table: what others call by its name is something else.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from runnel.catalog import StreamTable
from runnel.compile.sources import table_references
from runnel.errors import NotFound, RunnelError, SourceError
from runnel.lake.frames import SparkSession
from runnel.lake.views import NOT_A_VIEW, find_view, is_lasting, stamp_of
from runnel.model.names import TableName
from runnel.model.views import View
from runnel.refresh.workspace import Workspace

_log = logging.getLogger("runnel")
_GLOBAL = "global_temp"


@dataclass(frozen=True, slots=True)
class ViewFinder:
    """Finds a view by name: in the session, else among those that were stored with the table.

    `is_here`: temporary views of this session are those the query means.
    """

    workspace: Workspace
    stored: Mapping[str, View]
    is_here: bool

    @staticmethod
    def of(workspace: Workspace, table: StreamTable | None) -> ViewFinder:
        if table is None:
            return ViewFinder(workspace, {}, True)
        stored = {view.key: replace(view, is_new=False) for view in table.views}
        return ViewFinder(workspace, stored, table.incarnation in workspace.defined_here)

    def __call__(self, name: TableName, is_free: bool) -> View | None:
        if is_free and (view := self._temporary(TableName("default", name.name))) is not None:
            return view
        if self.workspace.find(name.key) is not None:
            return None
        view = find_view(self.workspace.spark, name, is_temporary=False)
        if view is not None and str(self.workspace.traces_path) in view.text:
            raise NotFound(f"stream table {name} does not exist", detail="it was dropped")
        return view or self._missing(name)

    def _temporary(self, name: TableName) -> View | None:
        if self.is_here:
            view = find_view(self.workspace.spark, name, is_temporary=True)
            if view is not None:
                return view
        return self.stored.get(f"temporary:{name.key}")

    def _missing(self, name: TableName) -> View | None:
        """The stored view, unless something else has its name now."""
        kind = "temporary" if name.schema.lower() == _GLOBAL else "catalog"
        view = self.stored.get(f"{kind}:{name.key}")
        if view is None or stamp_of(self.workspace.spark, view) is not None:
            return None
        return view


def names_behind(
    workspace: Workspace, table: StreamTable, known: Collection[str] = ()
) -> frozenset[str]:
    """The keys of the tables that a query reads, itself or through views, before it is compiled.

    `known` are those of tables that are about to be made: what else still has such a name, in a
    Spark that served a table of that name before, is not looked at.
    """
    find, found = ViewFinder.of(workspace, table), set[str]()
    texts, seen = [(table.query, "default", True)], set[str]()
    while texts:
        text, schema, is_free = texts.pop()
        for reference in table_references(text, schema):
            key = reference.name.key
            may_be_temporary = is_free and not reference.is_qualified
            view = find(reference.name, may_be_temporary) if key not in known else None
            if view is None:
                found.add(key)
            elif view.key not in seen:
                seen.add(view.key)
                texts.append((view.text, view.schema, view.is_temporary))
    return frozenset(found)


def redefined_view(
    workspace: Workspace, spark: SparkSession, table: StreamTable, stamps: dict[str, str | None]
) -> View | None:
    """The first view of a table that has another definition by now; SourceError when one is gone.

    `stamps` holds what was asked before in the same pass.
    """
    if table.new_view is not None:
        return table.new_view
    is_here = table.incarnation in workspace.defined_here
    for view in table.views:
        if view.is_temporary and not is_here:
            continue
        if view.key not in stamps:
            stamps[view.key] = stamp_of(spark, view)
        stamp = stamps[view.key]
        if stamp is None:
            _note_missing(workspace, spark, table, view)
        elif stamp != view.stamp:
            return view
        elif not view.is_temporary:
            workspace.seen_views.add(view.key)
    return None


def record_views(workspace: Workspace, table: StreamTable) -> StreamTable:
    """Store with a table what its views are in this session; those that became others are new.

    A process that does not know them goes by that.
    """
    is_here = table.incarnation in workspace.defined_here
    views = tuple(
        _as_it_is(workspace.spark, view) if is_here or not view.is_temporary else view
        for view in table.views
    )
    if views == table.views or table.resolution is None:
        return table
    resolution = replace(table.resolution, views=views)
    workspace.catalog.update_table(table.id, resolution=resolution)
    return replace(table, resolution=resolution)


def _as_it_is(spark: SparkSession, view: View) -> View:
    """What cannot be put into a query any more stays as it was: a refresh here says why."""
    if stamp_of(spark, view) in (None, NOT_A_VIEW, view.stamp):
        return view
    is_local = view.is_temporary and view.name.schema.lower() != _GLOBAL
    try:
        found = find_view(spark, view.name, is_temporary=is_local)
    except RunnelError:
        return view
    return replace(found, is_new=True) if found is not None and found.key == view.key else view


def _note_missing(
    workspace: Workspace, spark: SparkSession, table: StreamTable, view: View
) -> None:
    if view.is_temporary:
        _log.warning("%s: temporary view %s is gone; what it was is used", table.name, view.name)
        workspace.defined_here.discard(table.incarnation)
    elif view.key in workspace.seen_views or is_lasting(spark):
        raise SourceError(
            f"view {view.name}, which {table.name} reads, is gone",
            detail=f"it was: {' '.join(view.text.split())[:200]}",
            hint=f"create it again, or define the table without it: ALTER STREAM TABLE "
            f"{table.name} AS ...",
        )
