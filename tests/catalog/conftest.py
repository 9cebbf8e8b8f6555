"""Catalogs to test: every test runs on SQLite and, when marked postgres, on PostgreSQL."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runnel.catalog import Source, StreamTable, Writer, open_catalog
from runnel.model.columns import Column, Layout
from runnel.model.frontier import Frontier, Pin
from runnel.model.names import TableName
from runnel.model.refresh import RefreshMode, TableState
from runnel.model.schedule import Schedule

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a catalog that does not exist yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/_runnel/catalog.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def catalog(url: str) -> Iterator[Writer]:
    with open_catalog(url) as writer:
        yield writer


@pytest.fixture
def frontier() -> Frontier:
    return Frontier({"default.orders": Pin("delta", "d-1", 7)}, NOW)


@pytest.fixture
def make_table() -> Callable[..., StreamTable]:
    return build_table


def build_table(name: str = "sales", reads: tuple[str, ...] = (), **changes: Any) -> StreamTable:
    """A stream table over `orders` and the stream tables that are named."""
    orders = Source(
        "default.orders", "delta", TableName.parse("orders"), "w/orders", "d-1", ("id", "amount")
    )
    upstream = [
        Source(TableName.parse(r).key, "stream", TableName.parse(r), None, None, ("a",))
        for r in reads
    ]
    fields: dict[str, Any] = {
        "id": uuid.uuid4().hex,
        "name": TableName.parse(name),
        "query": "SELECT id FROM orders",
        "mode": RefreshMode.AUTO,
        "schedule": Schedule.parse("1m"),
        "state": TableState.ACTIVE,
        "comment": None,
        "incarnation": uuid.uuid4().hex,
        "layout": Layout((Column("c0", "bigint"),), ("c0",), ((Column("the id", "bigint"), "c0"),)),
        "settings": {"ansi": "true"},
        "not_differential": None,
        "sources": (orders, *upstream),
        "frontier": None,
        "epoch": 0,
        "since": 0,
        "trace_version": 0,
        "reinitialize": None,
        "consecutive_errors": 0,
        "last_error": None,
        "options": {},
        "created_at": NOW,
        "altered_at": NOW,
    }
    return StreamTable(**{**fields, **changes})
