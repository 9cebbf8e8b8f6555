"""What is refused: a clear error with a hint, nothing half made, and the old table goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refresh.helpers import SALES, check, orders
from runnel.api import Lake
from runnel.errors import (
    AlreadyExists,
    InvalidQuery,
    NotDifferentiable,
    NotFound,
    QueryFailed,
    UserError,
)

pytestmark = pytest.mark.spark

_OPEN = "SELECT id, APPROX_PERCENTILE(id, 0.5) OVER (PARTITION BY amount) AS s FROM orders"
_BAD = [
    ("SELEC 1", InvalidQuery, "parse"),
    ("SELECT * FROM nowhere", NotFound, "nowhere"),
    ("SELECT nothing FROM orders", InvalidQuery, "nothing"),
    ("SELECT id, id FROM orders", InvalidQuery, "two columns called id"),
    ("SELECT rand() AS r FROM orders", InvalidQuery, "deterministic"),
    ("SELECT * FROM orders LIMIT 3", InvalidQuery, "LIMIT"),
    ("SELECT 1 AS x", InvalidQuery, "no table"),
    (_OPEN, NotDifferentiable, "percentile"),
    ("SELECT id / (id - 2) AS x FROM orders", QueryFailed, "(?i)zero"),
    ("SELECT id + 9223372036854775807 AS x FROM orders", QueryFailed, "overflow"),
    ("SELECT upper(cust, 2) AS x FROM orders", InvalidQuery, "requires 1 param"),
    ("SELECT element_at(array(id), 5) AS x FROM orders", QueryFailed, "out of bounds"),
]


def _create(lake: Lake, query: str) -> None:
    lake.create_stream_table("bad", query, refresh_mode="DIFFERENTIAL")


def _replace(lake: Lake, query: str) -> None:
    lake.sql(f"CREATE OR REPLACE STREAM TABLE sales REFRESH MODE DIFFERENTIAL AS {query}")


def _alter(lake: Lake, query: str) -> None:
    lake.alter_stream_table("sales", query=query, schedule="2h", comment="never seen")


@pytest.mark.parametrize(
    ("define", "itself"),
    [
        (_create, "SELECT cust FROM bad"),
        (_replace, "SELECT cust FROM below"),
        (_alter, "SELECT cust FROM below"),
    ],
    ids=["create", "or replace", "alter"],
)
def test_a_bad_query_changes_nothing(
    lake: Lake, tmp_path: Path, define: Callable[[Lake, str], None], itself: str
) -> None:
    source = orders(lake, tmp_path)
    lake.create_stream_table("sales", SALES, schedule="1m", refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("below", "SELECT cust FROM sales", refresh_mode="DIFFERENTIAL")
    before = _seen(lake)
    for query, error, words in [*_BAD, (itself, UserError, "depend on itself")]:
        with pytest.raises(error, match=words) as caught:
            define(lake, query)
        assert caught.value.hint, query
        assert _seen(lake) == before, query
    source.append((4, 12, "2.00"))
    check(lake, "sales", "DIFFERENTIAL")
    check(lake, "below", "DIFFERENTIAL")


def _seen(lake: Lake) -> list[Any]:
    """All that a failed definition might have touched."""
    tables = [
        (t.name, t.query, t.mode, t.schedule, t.comment, t.state, t.epoch, t.consecutive_errors)
        for t in lake.status()
    ]
    rows = sorted(map(tuple, lake.sql("SELECT * FROM sales").collect()))
    storage = lake._workspace.traces_path
    definitions = lake._workspace.path / "_runnel" / "definitions"
    return [tables, rows, *(sorted(p.name for p in f.iterdir()) for f in (storage, definitions))]


def test_a_cycle_is_told_with_its_path(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    lake.create_stream_table("a", "SELECT cust FROM orders")
    lake.create_stream_table("b", "SELECT cust FROM a")
    with pytest.raises(UserError, match="depend on itself") as caught:
        lake.alter_stream_table("a", query="SELECT cust FROM b")
    assert "a -> b -> a" in str(caught.value)
    check(lake, "b", "NO_DATA")


def test_bad_arguments(lake: Lake, tmp_path: Path) -> None:
    orders(lake, tmp_path)
    for name, error, words, options in (
        ("sales", UserError, "not a schedule", {"schedule": "soon"}),
        ("sales", UserError, "too short", {"schedule": "10ms"}),
        ("sales", UserError, "not a refresh mode", {"refresh_mode": "FAST"}),
        ("orders", AlreadyExists, "table", {}),
        ("`my sales`", UserError, "cannot be the name", {}),
        ("a.b.c.d", UserError, "not a table name", {}),
    ):
        with pytest.raises(error, match=words) as caught:
            lake.create_stream_table(name, SALES, **options)
        assert caught.value.hint, words
    with pytest.raises(NotFound, match="sales") as missing:
        lake.refresh("sales")
    assert missing.value.hint
    with pytest.raises(NotDifferentiable) as refused:
        lake.create_stream_table("w", _OPEN, refresh_mode="DIFFERENTIAL")
    place = "at: line 1, column 12: APPROX_PERCENTILE(id, 0.5) OVER (PARTITION BY amount)"
    assert place in str(refused.value)
    assert len(lake.status()) == 0
