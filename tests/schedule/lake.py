"""A real catalog over sources that are only version numbers: everything but Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from catalog.conftest import build_table
from runnel.catalog import Leases, Owner, Source, StreamTable, open_catalog
from runnel.catalog.engine import writing
from runnel.catalog.rows import source_to_row, table_to_row
from runnel.catalog.schema import dependencies, stream_tables
from runnel.errors import SourceError
from runnel.model.frontier import Frontier, Pin
from runnel.model.names import TableName
from runnel.model.schedule import Schedule
from runnel.model.settings import Settings
from runnel.refresh.workspace import Workspace
from runnel.schedule.views import instant


class FakeLog:
    """A base source: its version can be set, and looking is counted; `gate`: who looks waits."""

    looks = 0
    gate: threading.Event | None = None
    _counting = threading.Lock()

    def __init__(self, name: str) -> None:
        self.name = name
        self.version = 1
        self.is_broken = False

    def latest_version(self) -> int:
        with self._counting:
            type(self).looks += 1
        if self.gate is not None:
            self.gate.wait(60)
        if self.is_broken:
            raise SourceError(f"{self.name} cannot be read")
        return self.version

    def table_id(self, version: int) -> str:
        return f"id of {self.name}"


class FakeLake:
    """Tables with contents as of `timestamp`, in a catalog of their own."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        catalog = open_catalog(f"sqlite:///{folder}/_runnel/catalog.db")
        leases = Leases(catalog.engine, Owner.current())
        chosen = Settings.load(folder, settings, {"": ""})
        self.workspace = Workspace(folder, catalog, leases, chosen, _no_spark)
        self.statements: list[str] = []
        self._bulk: dict[str, StreamTable] | None = None
        sa.event.listen(catalog.engine, "before_cursor_execute", self._count)

    def base(self, name: str) -> FakeLog:
        logs: dict[str, Any] = self.workspace._logs
        return logs.setdefault(f"w/{name}", FakeLog(name))  # type: ignore[no-any-return]

    def add(
        self, name: str, schedule: str | None, *sources: str, at: float, **more: Any
    ) -> StreamTable:
        """A table over base sources (x...) and stream tables, filled at an instant."""
        read = tuple(self._source(source) for source in sources)
        pins = {s.key: self._pin(s) for s in read}
        fields: dict[str, Any] = {
            "schedule": Schedule.parse(schedule) if schedule else None,
            "sources": read,
            "frontier": Frontier(pins, instant(at)),
            "epoch": 1,
            **more,
        }
        table = build_table(name, **fields)
        if self._bulk is None:
            self.workspace.catalog.add_table(table)
        else:
            self._bulk[table.name.key] = table
        return table

    @contextmanager
    def many(self) -> Iterator[None]:
        """Tables added inside are stored together at the end."""
        self._bulk = {}
        yield
        tables, self._bulk = list(self._bulk.values()), None
        edges = [source_to_row(t.id, i, s) for t in tables for i, s in enumerate(t.sources)]
        with writing(self.workspace.catalog.engine) as connection:
            connection.execute(stream_tables.insert(), [table_to_row(t) for t in tables])
            connection.execute(dependencies.insert(), edges)

    def stored(self, table: StreamTable) -> StreamTable:
        """The table as the catalog has it now."""
        found = self.workspace.catalog.get(table.id)
        assert found is not None
        return found

    def at(self, name: str) -> float:
        table = self.workspace.catalog.find(f"default.{name}")
        assert table is not None
        assert table.frontier is not None
        return table.frontier.data_timestamp.timestamp()

    def counted(self, act: Callable[[], Any]) -> tuple[Any, list[str]]:
        """What an act gives, and the statements it took, without transaction control."""
        self.statements.clear()
        given = act()
        words = ("SELECT", "INSERT", "UPDATE", "DELETE")
        return given, [text for text in self.statements if text.startswith(words)]

    def _source(self, name: str) -> Source:
        found = TableName.parse(name)
        if name.startswith("x"):
            self.base(name)
            return Source(found.key, "delta", found, f"w/{name}", f"id of {name}", ("a",))
        return Source(found.key, "stream", found, None, None, ("a",))

    def _pin(self, source: Source) -> Pin:
        if source.kind == "delta":
            return Pin("delta", f"id of {source.name}", self.base(source.name.name).version)
        known = (self._bulk or {}).get(source.name.key)
        table = known or self.workspace.catalog.find(source.name.key)
        assert table is not None
        return Pin("trace", table.incarnation, table.epoch)

    def _count(self, conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
        self.statements.append(statement)


def _no_spark() -> Any:
    raise AssertionError("Spark was started")
