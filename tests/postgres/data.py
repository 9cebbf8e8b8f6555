"""The same small tables for PostgreSQL and Spark: NULLs, negatives, numbers as text, dates."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from runnel.model.columns import Column
from runnel.model.names import TableName

D = Decimal
# Name, PostgreSQL's type, Spark's.
COLUMNS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "t": (
        ("id", "integer", "int"),
        ("small", "smallint", "smallint"),
        ("big", "bigint", "bigint"),
        ("price", "numeric(10, 2)", "decimal(10,2)"),
        ("ratio", "double precision", "double"),
        ("name", "text", "string"),
        ("code", "text", "string"),
        ("day", "date", "date"),
        ("at", "timestamp", "timestamp_ntz"),
        ("seen", "timestamptz", "timestamp"),
        ("ok", "boolean", "boolean"),
        ("tags", "text[]", "array<string>"),
        ("nums", "integer[]", "array<int>"),
        ("doc", "jsonb", "string"),
    ),
    "u": (
        ("id", "integer", "int"),
        ("t_id", "integer", "int"),
        ("label", "text", "string"),
        ("qty", "integer", "int"),
        ("cost", "numeric(8, 3)", "decimal(8,3)"),
    ),
}


def _at(*parts: int) -> datetime:
    return datetime(*parts)  # type: ignore[arg-type]


def _seen(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


ROWS: dict[str, list[tuple[Any, ...]]] = {
    "t": [
        (1, 2, 10, D("10.00"), 1.5, "Alpha", "10", date(2024, 1, 31), _at(2024, 1, 31, 10, 30),
         _seen(2024, 1, 31, 23, 30), True, ["a", "b"], [1, 2, 3],
         '{"name": "one", "n": 1, "in": {"x": "y"}, "list": [1, "b"], "flag": true}'),
        (2, 2, 20, D("-3.33"), -2.5, "beta", "-7", date(2024, 2, 29), _at(2024, 2, 29, 0, 0),
         _seen(2024, 2, 29), False, [], [], '{"name": "two", "n": -5, "flag": "no"}'),
        (3, 1, 30, D("12.50"), 0.1, "beta", "007", date(2023, 12, 31),
         _at(2023, 12, 31, 23, 59, 59, 123456), _seen(2023, 12, 31, 23, 59, 59, 999999), True,
         None, [2, None, 2], '{"name": null, "list": []}'),
        (4, None, None, None, None, None, None, None, None, None, None, None, None, None),
        (5, -3, -50, D("0.01"), 2.675, "", "a\\b", date(2024, 1, 31), _at(2024, 1, 31, 12, 0),
         _seen(2024, 7, 1, 12), None, ["x", None], [None], '{"name": "five"}'),
        (6, 0, 9000000000, D("99999.99"), 1e10, " alpha e ", "10%", date(2000, 2, 28),
         _at(2000, 2, 28, 1, 2, 3), _seen(2000, 2, 28, 1, 2, 3), False, ["one,two"],
         [5, 4], '{"n": 7, "in": {"x": 3}}'),
        (7, 3, 7, D("10.00"), 1.5, "gamma", " 42 ", date(2024, 12, 30), _at(2024, 12, 30, 18, 45),
         _seen(2024, 3, 31, 1), True, ["é"], [7], "{}"),
        (8, 1, 12345, D("7.77"), 3.5, "it's", "1,2,,3", date(2021, 1, 3), _at(2021, 1, 3, 6, 7, 8),
         _seen(2021, 1, 3), False, ["b"], [1, 1], '{"flag": true, "name": "one", "n": 2}'),
        (9, 2, 1, D("0.00"), 0.0, "line\nbreak", "v1.2.3", date(2024, 2, 1), _at(2024, 2, 1, 0, 1),
         _seen(2024, 2, 1), True, None, [2, 3], None),
    ],
    "u": [
        (1, 1, "first", 3, D("2.500")),
        (2, 1, "second", 2, D("-1.125")),
        (3, 3, "third", 1, D("0.001")),
        (4, 9, None, 7, None),
        (5, None, "stray", None, D("12345.678")),
        (6, 2, "zero", 0, D("1.000")),
        (7, 3, "first", 3, D("3.333")),
    ],
}  # fmt: skip


def columns_of(name: TableName) -> tuple[Column, ...]:
    """What the translator asks of a source."""
    return tuple(Column(column, spark) for column, _, spark in COLUMNS[name.name.lower()])
