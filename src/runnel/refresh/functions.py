"""Functions of the user's own: made known, and noticed when they are not what they were."""

from __future__ import annotations

from collections.abc import Iterable

from runnel.lake.frames import SparkSession
from runnel.lake.functions import sql_function
from runnel.model.ddl import SourceChange, Taken
from runnel.model.function_marks import mark_of
from runnel.model.functions import OwnFunction
from runnel.model.names import TableName
from runnel.refresh.source_ddl import note_source_ddl
from runnel.refresh.workspace import Workspace

SQL = "sql:"
"""How the keys of functions begin that were made in SQL."""


def adopt_function(workspace: Workspace, own: OwnFunction) -> None:
    """Let queries call a function; tables that called another one by its name start over."""
    workspace.add_function(own)
    if own.function is None:
        return
    mark = mark_of((own.function, own.returns, own.is_aggregate))
    _note(workspace, own.key, own.name, mark, "register_function")


def watch_functions(workspace: Workspace, spark: SparkSession, names: Iterable[str]) -> bool:
    """Look what SQL functions do by now; whether one did something else when last looked at.

    Then the tables that call it start over, however it was redefined.
    """
    texts = {name: sql_function(spark, name) for name in sorted(names)}
    marks = {name: mark_of(text) for name, text in texts.items() if text is not None}
    noted = [_note(workspace, SQL + n, n, mark, "CREATE FUNCTION") for n, mark in marks.items()]
    return any(noted)


def _note(workspace: Workspace, key: str, name: str, mark: int, words: str) -> bool:
    """Record what a function does; whether it did something else before."""
    known = workspace.catalog.function_mark(key)
    if known == mark:
        return False
    if known is not None:
        # Before it is recorded: a process that dies in between does this once more.
        change = SourceChange(words, Taken.FUNCTION, TableName("default", name))
        note_source_ddl(workspace, change)
    workspace.catalog.record_function(key, mark)
    return known is not None
