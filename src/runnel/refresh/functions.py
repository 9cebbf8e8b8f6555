"""Functions of the user's own: made known, and noticed when they are not what they were."""

from __future__ import annotations

from runnel.model.ddl import SourceChange, Taken
from runnel.model.function_marks import mark_of
from runnel.model.functions import OwnFunction
from runnel.model.names import TableName
from runnel.refresh.source_ddl import note_source_ddl
from runnel.refresh.workspace import Workspace


def adopt_function(workspace: Workspace, own: OwnFunction) -> None:
    """Let queries call a function; tables that called another one by its name start over."""
    workspace.add_function(own)
    if own.function is None:
        return
    mark = mark_of((own.function, own.returns, own.is_aggregate))
    known = workspace.catalog.function_mark(own.key)
    if known == mark:
        return
    if known is not None:
        # Before it is recorded: a process that dies in between does this once more.
        name = TableName("default", own.name)
        note_source_ddl(workspace, SourceChange("register_function", Taken.FUNCTION, name))
    workspace.catalog.record_function(own.key, mark)
