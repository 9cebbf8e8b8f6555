"""The columns a stored query sees: those its sources had when it was defined."""

from __future__ import annotations

import json
from dataclasses import replace

import sqlalchemy as sa

from guards.conftest import Bench
from runnel.model.columns import Column
from runnel.model.names import TableName
from runnel.refresh.bind import in_sight
from runnel.refresh.definition import _in_sight


def test_they_are_recorded(bench: Bench) -> None:
    bench.base("orders")
    source = replace(bench.source("orders"), known=("id", "x"))
    table = bench.stream("sales", "orders", sources=(source,))
    found = bench.workspace.catalog.find("default.sales")
    assert found is not None
    assert found.sources == table.sources


def test_a_catalog_that_did_not_record_them_is_read(bench: Bench) -> None:
    bench.base("orders")
    bench.stream("sales", "orders")
    with bench.workspace.catalog.engine.begin() as connection:
        old = json.dumps(["id"])
        connection.execute(sa.text("UPDATE dependencies SET columns = :old"), {"old": old})
    found = bench.workspace.catalog.find("default.sales")
    assert found is not None
    assert (found.sources[0].columns, found.sources[0].known) == (("id",), ())


def test_what_was_added_is_left_out_and_what_is_gone_too(bench: Bench) -> None:
    source = replace(bench.source("orders"), known=("Id", "x", "gone"))
    assert in_sight(source, ["new", "x", "id"]) == ["id", "x"]
    columns = tuple(Column(name, "int") for name in ("new", "x", "id"))
    assert [c.name for c in _in_sight(source, columns)] == ["id", "x"]


def test_without_a_record_all_are_seen(bench: Bench) -> None:
    source = bench.source("orders")
    assert source.name == TableName.parse("orders")
    assert in_sight(source, ["a", "b"]) == ["a", "b"]
