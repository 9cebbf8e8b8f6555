"""Stream tables made up for questions about the graph: nothing is stored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from runnel.catalog import Source, StreamTable
from runnel.model.columns import Column, Layout
from runnel.model.names import TableName
from runnel.model.refresh import RefreshMode, TableState

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LAYOUT = Layout((Column("c0", "bigint"),), ("c0",), ((Column("id", "bigint"), "c0"),))


def graph(reads: Mapping[str, str], **options: Mapping[str, Any]) -> list[StreamTable]:
    """Tables by name, each with the names it reads; a name that no table has is a base table.

    `options` change single tables: `d={"schedule": ...}`.
    """
    return [
        table(name, text.split(), reads, **options.get(name, {})) for name, text in reads.items()
    ]


def table(name: str, reads: list[str], streams: Mapping[str, str], **changes: Any) -> StreamTable:
    fields: dict[str, Any] = {
        "id": name, "name": TableName.parse(name), "query": "", "mode": RefreshMode.AUTO,
        "schedule": None, "state": TableState.ACTIVE, "comment": None, "incarnation": f"i-{name}",
        "layout": LAYOUT, "settings": {}, "not_differential": None,
        "sources": tuple(source(r, r in streams) for r in reads), "frontier": None, "epoch": 1,
        "since": 0, "trace_version": 0, "reinitialize": None, "consecutive_errors": 0,
        "last_error": None, "options": {}, "created_at": NOW, "altered_at": NOW,
    }  # fmt: skip
    return StreamTable(**{**fields, **changes})


def source(name: str, is_stream: bool) -> Source:
    known = TableName.parse(name)
    kind = "stream" if is_stream else "delta"
    return Source(known.key, kind, known, None if is_stream else f"w/{name}", None, ("id",))


def asking(consistency: str) -> dict[str, Any]:
    return {"options": {"diamond_consistency": consistency}}
