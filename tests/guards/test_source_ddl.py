"""block_source_ddl: refused with the dependents named; columns nobody uses may go."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from guards.conftest import Bench
from runnel.compile.ddl import source_change
from runnel.errors import InUse, UserError
from runnel.model.columns import Column
from runnel.model.frontier import Frontier
from runnel.model.names import TableName
from runnel.model.settings import Settings
from runnel.model.views import Resolution, View
from runnel.refresh.source_ddl import note_source_ddl, refuse_source_ddl
from schedule.by_hand import Ears


def refuse(bench: Bench, text: str) -> None:
    change = source_change(text)
    assert change is not None
    refuse_source_ddl(bench.workspace, change)


@pytest.fixture
def blocking(bench: Bench) -> Bench:
    view = View(
        TableName.parse("chosen"), False, "SELECT id FROM orders", "default",
        (Column("id", "bigint"),), ("id",), "stamp",
    )  # fmt: skip
    bench.base("orders")
    bench.stream("sales", "orders")
    resolution = Resolution("SELECT id FROM (SELECT id FROM orders)", (view,))
    bench.stream("seen", "orders", resolution=resolution)
    bench.stream("odd", "orders", query="SELECT twice(id) FROM orders", not_differential="a UDF")
    settings = Settings.load(bench.workspace.path, {"block_source_ddl": True})
    bench.workspace = replace(bench.workspace, settings=settings)
    return bench


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("DROP TABLE orders", "odd, sales, seen"),
        ("CREATE OR REPLACE TABLE Orders (id INT) USING delta", "odd, sales, seen"),
        ("ALTER TABLE orders DROP COLUMN ID", "odd, sales, seen"),
        ("ALTER TABLE orders RENAME COLUMN id TO key", "odd, sales, seen"),
        ("ALTER TABLE orders ALTER COLUMN id TYPE STRING", "odd, sales, seen"),
        ("DROP SCHEMA default CASCADE", "odd, sales, seen"),
        ("DROP VIEW chosen", "seen"),
        ("CREATE OR REPLACE VIEW chosen AS SELECT 1 AS id", "seen"),
        ("CREATE OR REPLACE FUNCTION twice(x INT) RETURNS INT RETURN 3 * x", "odd"),
        ("DROP FUNCTION IF EXISTS twice", "odd"),
    ],
)
def test_what_is_read_cannot_be_taken(blocking: Bench, text: str, names: str) -> None:
    with pytest.raises(InUse, match=f": {names}") as caught:
        refuse(blocking, text)
    assert "block_source_ddl" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE orders DROP COLUMN x",
        "DROP TABLE other",
        "DROP VIEW orders_view",
        "DROP SCHEMA elsewhere",
        "DROP FUNCTION thrice",
    ],
)
def test_what_nobody_reads_may_go(blocking: Bench, text: str) -> None:
    refuse(blocking, text)


def test_by_default_nothing_is_blocked(bench: Bench) -> None:
    bench.base("orders")
    bench.stream("sales", "orders")
    refuse(bench, "DROP TABLE orders")


@pytest.mark.parametrize(("given", "expected"), [("false", False), ("TRUE", True), (True, True)])
def test_a_setting_that_is_true_or_false(bench: Bench, given: object, expected: bool) -> None:
    settings = Settings.load(bench.workspace.path, {"block_source_ddl": given})
    assert settings.block_source_ddl is expected
    with pytest.raises(UserError, match="not valid"):
        Settings.load(bench.workspace.path, {"block_source_ddl": "perhaps"})


def test_who_has_to_start_over_is_told_at_once(bench: Bench) -> None:
    bench.base("orders")
    bench.stream("odd", "orders", query="SELECT twice(id) FROM orders", not_differential="a UDF")
    bench.stream("plain", "orders")
    ears = Ears()
    bench.workspace = replace(bench.workspace, alerts=ears)
    for _ in range(2):
        change = source_change("CREATE OR REPLACE FUNCTION twice(x INT) RETURNS INT RETURN 3 * x")
        assert change is not None
        note_source_ddl(bench.workspace, change)
    assert ears.heard == [
        ("reinitialize_needed", "odd", "function twice was redefined or dropped")
    ]  # fmt: skip


def test_a_second_change_is_not_taken_for_the_first(bench: Bench) -> None:
    """A refresh that was begun for the first one does not clear what the second one asks for."""
    bench.base("orders")
    bench.stream("odd", "orders", query="SELECT twice(id) FROM orders", not_differential="a UDF")
    catalog = bench.workspace.catalog
    change = source_change("CREATE OR REPLACE FUNCTION twice(x INT) RETURNS INT RETURN 3 * x")
    assert change is not None
    note_source_ddl(bench.workspace, change)
    begun = catalog.find("default.odd")
    assert begun is not None
    note_source_ddl(bench.workspace, change)
    frontier = Frontier({}, datetime(2026, 3, 1, tzinfo=UTC))
    catalog.record_progress(begun.id, frontier, 1, 1, 0, done=begun.reinitialize)
    left = catalog.find("default.odd")
    assert left is not None
    assert "twice was redefined" in (left.reinitialize or "")
    catalog.record_progress(left.id, frontier, 1, 1, 0, done=left.reinitialize)
    done = catalog.find("default.odd")
    assert done is not None
    assert done.reinitialize is None
