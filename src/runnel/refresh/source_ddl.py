"""DDL through the lake on what stream tables read: refused when asked to, else never overlooked."""

from __future__ import annotations

from datetime import UTC, datetime

from runnel.catalog import Source, StreamTable
from runnel.compile.parse import parse
from runnel.compile.refuse import strange_functions
from runnel.errors import InUse, RunnelError
from runnel.lake.names import TableKind, describe
from runnel.model.alerts import AlertKind
from runnel.model.ddl import SourceChange, Taken
from runnel.model.names import TableName
from runnel.refresh.workspace import Workspace


def refuse_source_ddl(workspace: Workspace, change: SourceChange) -> None:
    """Raise when stream tables read what the statement would take, and `block_source_ddl` is on."""
    if not workspace.settings.block_source_ddl:
        return
    readers = [t for t in workspace.catalog.tables() if is_concerned(t, change)]
    if readers:
        names = ", ".join(dict.fromkeys(table.owner for table in readers))
        taken = "" if change.columns is None else f" ({', '.join(change.columns)})"
        raise InUse(
            f"stream tables read {_shown(change)}: {names}",
            detail=f"{change.words}{taken} would change what they read; block_source_ddl is on",
            hint="drop or redefine them first, or set block_source_ddl = false",
        )


def note_source_ddl(workspace: Workspace, change: SourceChange) -> None:
    """Let tables start over whose source has moved, or whose function is another one now.

    All else is seen by the source's own log; views are looked after by `schedule.renew`.
    """
    if change.kind is Taken.FUNCTION:
        workspace.forget_functions()
    for table in workspace.catalog.tables():
        reason = None
        if change.kind is Taken.FUNCTION and change.name.name.lower() in _functions(table):
            reason = f"function {change.name} was redefined or dropped"
        elif change.kind in (Taken.TABLE, Taken.SCHEMA):
            reason = _moved(workspace, table, change)
        if reason is not None:
            # With its time: a refresh clears the reason for which it was done, and no later one.
            noted = f"{reason} ({datetime.now(UTC):%H:%M:%S.%f})"
            workspace.catalog.update_table(table.id, reinitialize=noted)
            if table.reinitialize is None:
                workspace.alerts.emit(AlertKind.REINITIALIZE_NEEDED, table.label, reason)


def moved_source(workspace: Workspace, table: StreamTable) -> Source | None:
    """The first source of a table whose name stands for another place now."""
    for source in table.sources:
        if source.kind == "delta":
            location = place_of(workspace, source.name)
            if location is not None and location != source.location:
                return source
    return None


def place_of(workspace: Workspace, name: TableName) -> str | None:
    """Where the Delta table with a name lies, as it is recorded."""
    info = describe(workspace.spark, name)
    if info.kind is not TableKind.DELTA or info.location is None:
        return None
    return workspace.relative(info.location)


def _moved(workspace: Workspace, table: StreamTable, change: SourceChange) -> str | None:
    for source in table.sources:
        is_meant = source.kind == "delta" and _is_named(source.name, change)
        if is_meant and place_of(workspace, source.name) != source.location:
            return f"{source.name} was dropped, or stands for another table now"
    return None


def _is_named(name: TableName, change: SourceChange) -> bool:
    if change.kind is Taken.SCHEMA:
        return name.schema.lower() == change.name.schema.lower()
    return name.key == change.name.key


def is_concerned(table: StreamTable, change: SourceChange) -> bool:
    """Whether a table reads what a statement changes."""
    match change.kind:
        case Taken.TABLE:
            sources = [s for s in table.sources if s.kind == "delta"]
            return any(_is_named(s.name, change) and change.concerns(s.columns) for s in sources)
        case Taken.VIEW:
            return any(_is_named(view.name, change) for view in table.views)
        case Taken.FUNCTION:
            return change.name.name.lower() in _functions(table)
        case Taken.SCHEMA:
            names = [*(s.name for s in table.sources), *(v.name for v in table.views)]
            return any(_is_named(name, change) for name in names)


def _functions(table: StreamTable) -> frozenset[str]:
    """Functions that may be the user's own in a table's query."""
    try:
        return strange_functions(parse(table.text))
    except RunnelError:
        return frozenset()


def _shown(change: SourceChange) -> str:
    if change.kind is Taken.SCHEMA:
        return f"tables of the schema {change.name.schema}"
    return f"{change.kind} {change.name}"
