"""A lake without Spark: a catalog, base tables made by delta-rs, stream tables as catalog rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from runnel.catalog import Leases, Owner, Source, StreamTable, open_catalog
from runnel.errors import InternalFault
from runnel.model.columns import Column, Layout
from runnel.model.frontier import Frontier, Pin
from runnel.model.names import TableName
from runnel.model.refresh import RefreshMode, TableState
from runnel.model.settings import Settings
from runnel.refresh.workspace import Workspace

THEN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@dataclass
class Bench:
    """The workspace, and ways to fill it."""

    workspace: Workspace

    def base(self, name: str, **options: Any) -> str:
        """A base table of one column with one row; its path."""
        path = str(self.workspace.path / "warehouse" / name)
        write_deltalake(path, pa.table({"id": [1], "x": ["a"]}), **options)
        return path

    def append(self, name: str) -> None:
        path = self.workspace.path / "warehouse" / name
        write_deltalake(str(path), pa.table({"id": [2], "x": ["b"]}), mode="append")

    def overwrite(self, name: str) -> None:
        path = self.workspace.path / "warehouse" / name
        write_deltalake(str(path), pa.table({"id": [3], "x": ["c"]}), mode="overwrite")

    def stream(self, name: str, *reads: str, **changes: Any) -> StreamTable:
        """A stream table that stands where its sources are."""
        sources = tuple(self.source(read) for read in reads)
        pins = {source.key: self.pin(source) for source in sources}
        fields: dict[str, Any] = {
            "id": uuid.uuid4().hex, "name": TableName.parse(name),
            "query": f"SELECT id FROM {reads[0]}", "mode": RefreshMode.AUTO, "schedule": None,
            "state": TableState.ACTIVE, "comment": None, "incarnation": uuid.uuid4().hex,
            "layout": Layout((Column("c0", "bigint"),), ("c0",), ((Column("id", "bigint"), "c0"),)),
            "settings": {}, "not_differential": None, "sources": sources,
            "frontier": Frontier(pins, THEN), "epoch": 1, "since": 1, "trace_version": 0,
            "reinitialize": None, "consecutive_errors": 0, "last_error": None, "options": {},
            "created_at": THEN, "altered_at": THEN,
        }  # fmt: skip
        table = StreamTable(**{**fields, **changes})
        self.workspace.catalog.add_table(table)
        return table

    def source(self, name: str) -> Source:
        target = TableName.parse(name)
        upstream = self.workspace.catalog.find(target.key)
        if upstream is not None:
            return Source(target.key, "stream", target, None, upstream.id, ("id",))
        return Source(target.key, "delta", target, f"warehouse/{target.name}", None, ("id",))

    def pin(self, source: Source) -> Pin:
        if source.kind == "stream":
            upstream = self.workspace.catalog.find(source.key)
            assert upstream is not None
            return Pin("trace", upstream.incarnation, upstream.epoch)
        table = DeltaTable(str(self.workspace.path / (source.location or "")))
        return Pin("delta", str(table.metadata().id), table.version())


def _no_spark() -> Any:
    raise InternalFault("this needs no Spark")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Empty; using Spark fails."""
    folder = tmp_path / "lake"
    with open_catalog(f"sqlite:///{folder}/_runnel/catalog.db") as catalog:
        leases = Leases(catalog.engine, Owner.current())
        yield Bench(Workspace(folder, catalog, leases, Settings.load(folder), _no_spark))
