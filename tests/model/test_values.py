"""Names, schedules, frontiers and layouts: reading them, and JSON there and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnel.errors import UserError
from runnel.model.columns import Column, Layout, holds_type
from runnel.model.frontier import Frontier, Pin
from runnel.model.names import TableName, quote
from runnel.model.refresh import RefreshMode
from runnel.model.schedule import Schedule


@pytest.mark.parametrize(
    ("text", "schema", "name"),
    [
        ("orders", "default", "orders"),
        ("Shop.Orders", "Shop", "Orders"),
        ("spark_catalog.shop.orders", "shop", "orders"),
        ("`odd name`", "default", "odd name"),
        ("`a.b`.`c``d`", "a.b", "c`d"),
        (" shop . orders ", "shop", "orders"),
        ("größe", "default", "größe"),
    ],
)
def test_names_are_read(text: str, schema: str, name: str):
    assert TableName.parse(text) == TableName(schema, name)


@pytest.mark.parametrize("text", ["", "a.b.c", "a.", ".a", "a b", "`a", "a..b", "``"])
def test_bad_names_are_refused(text: str):
    with pytest.raises(UserError, match="is not a table name"):
        TableName.parse(text)


def test_names_compare_by_key_and_show_short():
    name = TableName.parse("`Odd`.`Na``me`")
    assert (name.key, name.sql, str(name)) == ("odd.na`me", "`Odd`.`Na``me`", "Odd.Na`me")
    assert str(TableName.parse("DEFAULT.t")) == "t"


@given(st.text(min_size=1), st.text(min_size=1))
def test_quoted_names_survive(schema: str, name: str):
    assert TableName.parse(f"{quote(schema)}.{quote(name)}") == TableName(schema, name)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("90 seconds", 90),
        ("1 Day", 86400),
        ("500ms", 0.5),
        ("1.5h", 5400),
        ("2 weeks", 1209600),
        (" 1 min ", 60),
    ],
)
def test_schedules_are_read(text: str, seconds: float):
    assert Schedule.parse(text) == Schedule(text.strip(), seconds)


@pytest.mark.parametrize("text", ["", "0s", "fast", "5", "5x", "-5m", "1h nonsense", "m"])
def test_bad_schedules_are_refused(text: str):
    with pytest.raises(UserError, match="is not a schedule"):
        Schedule.parse(text)


def test_modes_are_read_in_any_case():
    assert RefreshMode.parse("full") is RefreshMode.FULL
    with pytest.raises(UserError, match="is not a refresh mode"):
        RefreshMode.parse("sometimes")


def test_frontier_survives_json():
    frontier = Frontier(
        {"default.b": Pin("trace", "i", 3), "default.a": Pin("delta", "d", 2**40)},
        datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    )
    assert Frontier.from_json(json.loads(json.dumps(frontier.to_json()))) == frontier


def test_layout_survives_json():
    layout = Layout(
        stored=(Column("c0", "bigint"), Column("c1", "struct<a:int,b:array<string>>")),
        key=("c0",),
        visible=((Column('odd "name"', "bigint"), "c0 + 1"),),
        visible_when="c0 > 0",
        is_state=True,
    )
    assert Layout.from_json(json.loads(json.dumps(layout.to_json()))) == layout
    assert layout.columns == (Column('odd "name"', "bigint"),)


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("variant", True),
        ("interval day to second", True),
        ("array<void>", True),
        ("map<string,variant>", True),
        ("struct<a:int,b:interval year to month>", True),
        ("struct<a:array<struct<b:void>>>", True),
        ("struct<interval:int>", False),
        ("struct<a:int,variant:string>", False),
        ("map<string,struct<void:int>>", False),
        ("struct<void_reason:string,avoid:int>", False),
        ("decimal(12,2)", False),
    ],
)
def test_types_are_told_from_fields_of_their_name(type_: str, expected: bool):
    assert holds_type(type_, "void", "variant", "interval") is expected
