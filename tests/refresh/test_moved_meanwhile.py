"""Whoever reads a table while another process moves it on sees a state that was committed, no error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refresh.helpers import SALES, Source, check
from runnel.api import Lake
from runnel.refresh import execute, newest, verify

pytestmark = pytest.mark.spark

OTHER = "SELECT cust, MAX(amount) AS total, COUNT(*) AS n FROM orders GROUP BY cust"


def once(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[[], object]
) -> None:
    """Something happens the first time that a function is called, before or after it."""
    real, left = getattr(module, name), [act]

    def wrapped(*given: Any, **named: Any) -> Any:
        found = real(*given, **named) if name == "catch_up" else None
        while left:
            left.pop()()
        return found if name == "catch_up" else real(*given, **named)

    monkeypatch.setattr(module, name, wrapped)


def move_on(other: Lake, source: Source) -> None:
    """Two refreshes of everything, and what was before can no longer be told apart."""
    for number in (50, 51):
        source.append((number, 10, "1.00"))
        other.refresh()
    for status in other.status():
        other.compact(status.name)


def redefine(other: Lake, _: Source) -> None:
    other.alter_stream_table("sales", query=OTHER)


def vacuum(other: Lake, source: Source) -> None:
    """Like `move_on`, with no file left of what was before."""
    move_on(other, source)
    table = other._workspace.catalog.find("default.sales")
    assert table is not None
    trace = other._workspace.trace(table)
    live = {file.path for file in trace.log.snapshot(trace.log.latest_version()).files}
    for path in Path(trace.path).rglob("run-*/*.parquet"):
        if str(path) not in live:
            path.unlink()


@pytest.mark.parametrize("mode", ["DIFFERENTIAL", "FULL"])
@pytest.mark.parametrize("act", [move_on, vacuum, redefine])
def test_reading_a_table(
    lake: Lake, other: Lake, source: Source, monkeypatch: pytest.MonkeyPatch, mode: str,
    act: Callable[[Lake, Source], None],
) -> None:  # fmt: skip
    lake.create_stream_table("sales", SALES, refresh_mode=mode)
    once(monkeypatch, newest, "catch_up", lambda: act(other, source))
    rows = {row["cust"]: (str(row["total"]), row["n"]) for row in lake.table("sales").collect()}
    assert (
        rows
        == {
            move_on: {10: ("12.50", 2), 11: ("1.25", 1)},
            vacuum: {10: ("14.50", 4), 11: ("1.25", 1)},
            redefine: {10: ("7.50", 2), 11: ("1.25", 1)},
        }[act]
    )


@pytest.mark.parametrize("mode", ["DIFFERENTIAL", "FULL"])
@pytest.mark.parametrize("act", [move_on, vacuum, redefine])
def test_verifying_a_table(
    lake: Lake, other: Lake, source: Source, monkeypatch: pytest.MonkeyPatch, mode: str,
    act: Callable[[Lake, Source], None],
) -> None:  # fmt: skip
    lake.create_stream_table("sales", SALES, refresh_mode=mode)
    once(monkeypatch, verify, "_evaluate", lambda: act(other, source))
    assert lake.verify("sales").ok


def test_verifying_a_table_whose_upstream_is_compacted(
    lake: Lake, other: Lake, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    lake.create_stream_table("big", "SELECT cust, n FROM sales", refresh_mode="DIFFERENTIAL")
    once(monkeypatch, verify, "_evaluate", lambda: move_on(other, source))
    assert lake.verify("big").ok


@pytest.mark.parametrize("mode", ["DIFFERENTIAL", "FULL"])
def test_creating_a_table_over_one_that_is_compacted(
    lake: Lake, other: Lake, source: Source, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    lake.create_stream_table("sales", SALES, refresh_mode="DIFFERENTIAL")
    once(monkeypatch, execute, "full_rows", lambda: move_on(other, source))
    lake.create_stream_table("big", "SELECT cust, n FROM sales", refresh_mode=mode)
    rows = {tuple(row) for row in lake.table("big").collect()}
    assert rows == {(10, 2), (11, 1)}, "as sales was when it began"
    check(lake, "big", "REINITIALIZE")
    source.append((60, 11, "1.00"))
    check(lake, "big", mode)
