"""What every verb starts from: the open folder, its session, its alerts."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from runnel.catalog import StreamTable
from runnel.lake.frames import SparkSession
from runnel.lake.interrupts import cancelling
from runnel.model.closing import Closing
from runnel.model.names import TableName
from runnel.model.results import TableStatus
from runnel.model.settings import Settings
from runnel.refresh.keeper import SessionKeeper
from runnel.refresh.workspace import Workspace
from runnel.schedule import seeing
from runnel.schedule.alerting import AlertBook

P = ParamSpec("P")
R = TypeVar("R")
L = TypeVar("L", bound="OpenLake")


class OpenLake(Closing):
    """A lake without its verbs."""

    def __init__(self, workspace: Workspace, keeper: SessionKeeper, book: AlertBook) -> None:
        self._workspace = workspace
        self._keeper = keeper
        self._book = book

    def close(self) -> None:
        """Stop the embedded Spark session, if this lake started one."""
        self._workspace.forget_sessions()
        self._keeper.close()
        self._book.close()
        self._workspace.catalog.close()

    @property
    def spark(self) -> SparkSession:
        """The SparkSession, in which all tables of the lake have their names."""
        self._keeper.sync()
        return self._workspace.spark

    @property
    def settings(self) -> Settings:
        return self._workspace.settings

    def _find(self, name: str | TableName) -> StreamTable:
        return seeing.find_table(self._workspace.catalog, name_of(name))

    def _status(self, name: TableName) -> TableStatus:
        return seeing.status(self._workspace.catalog, self.settings, name.key)[0]


def interruptible(verb: Callable[Concatenate[L, P], R]) -> Callable[Concatenate[L, P], R]:
    """After Ctrl-C nothing that the verb began goes on, and the session can be used again."""

    @wraps(verb)
    def run(lake: L, /, *arguments: P.args, **options: P.kwargs) -> R:
        with cancelling(lambda: lake._keeper.opened):
            return verb(lake, *arguments, **options)

    return run


def name_of(name: str | TableName) -> TableName:
    return name if isinstance(name, TableName) else TableName.parse(name)
