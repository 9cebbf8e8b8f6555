"""Statements that take something away from their readers."""

from __future__ import annotations

import pytest

from runnel.compile.ddl import new_name, new_name_of_table, source_change
from runnel.compile.vacuum import parse_vacuum


@pytest.mark.parametrize(
    ("text", "kind", "key", "columns"),
    [
        ("DROP TABLE orders", "table", "default.orders", None),
        ("-- no longer used\n/* by\nanyone */ DROP TABLE orders", "table", "default.orders", None),
        ("drop table if exists s.orders;", "table", "s.orders", None),
        ("DROP VIEW IF EXISTS `my view`", "view", "default.my view", None),
        ("DROP SCHEMA s CASCADE", "schema", "s.*", None),
        ("DROP TEMPORARY FUNCTION f", "function", "default.f", None),
        ("CREATE OR REPLACE TABLE orders (id INT) USING delta", "table", "default.orders", None),
        ("REPLACE TABLE orders USING delta AS SELECT 1", "table", "default.orders", None),
        ("CREATE OR REPLACE TEMP VIEW v AS SELECT 1", "view", "default.v", None),
        ("CREATE OR REPLACE FUNCTION f(x INT) RETURNS INT RETURN x", "function", "default.f", None),
        ("ALTER VIEW v AS SELECT 1", "view", "default.v", None),
        ("ALTER TABLE orders RENAME TO old", "table", "default.orders", None),
        ("ALTER TABLE orders REPLACE COLUMNS (id INT)", "table", "default.orders", None),
        ("ALTER TABLE orders SET LOCATION '/x'", "table", "default.orders", None),
        ("ALTER TABLE orders DROP COLUMN amount", "table", "default.orders", ("amount",)),
        ("ALTER TABLE orders DROP COLUMNS (a, `b c`)", "table", "default.orders", ("a", "b c")),
        ("ALTER TABLE orders DROP COLUMN IF EXISTS a.x, b", "table", "default.orders", ("a", "b")),
        ("ALTER TABLE orders RENAME COLUMN a TO b", "table", "default.orders", ("a",)),
        ("ALTER TABLE orders ALTER COLUMN a TYPE BIGINT", "table", "default.orders", ("a",)),
        ("ALTER TABLE orders ALTER COLUMN a COMMENT 'x', b TYPE BIGINT", "table",
         "default.orders", ("b",)),
        ("ALTER TABLE orders CHANGE COLUMN a b INT", "table", "default.orders", ("a",)),
    ],
)  # fmt: skip
def test_what_is_taken(text: str, kind: str, key: str, columns: tuple[str, ...] | None) -> None:
    found = source_change(text)
    assert found is not None
    assert (found.kind, found.name.key, found.columns) == (kind, key, columns)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "CREATE TABLE orders (id INT) USING delta",
        "CREATE TABLE IF NOT EXISTS orders (id INT)",
        "CREATE VIEW v AS SELECT 1",
        "ALTER TABLE orders ADD COLUMNS (note STRING)",
        "ALTER TABLE orders SET TBLPROPERTIES ('a' = 'b')",
        "ALTER TABLE orders ALTER COLUMN a COMMENT 'TYPE of a'",
        "ALTER TABLE orders ALTER COLUMN a FIRST",
        "ALTER TABLE orders ALTER COLUMN a SET NOT NULL",
        "INSERT INTO orders VALUES (1)",
        "DROP CATALOG c",
        "DROP TABLE",
        "an unclosed ' string",
    ],
)
def test_what_takes_nothing(text: str) -> None:
    assert source_change(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE orders (id INT) USING delta", ("table", "default.orders")),
        ("CREATE EXTERNAL TABLE IF NOT EXISTS s.orders (id INT)", ("table", "s.orders")),
        ("CREATE VIEW v AS SELECT 1", ("view", "default.v")),
        ("create temporary view if not exists `my view` as select 1", ("view", "default.my view")),
        ("CREATE SCHEMA s", None),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN x", None),
        ("CREATE TABLE", None),
        ("INSERT INTO orders VALUES (1)", None),
    ],
)
def test_what_gets_a_name(text: str, expected: tuple[str, str] | None) -> None:
    found = new_name(text)
    assert (found and (found.kind, found.name.key)) == expected


def test_only_readers_of_the_column_are_concerned() -> None:
    found = source_change("ALTER TABLE orders DROP COLUMN Amount")
    assert found is not None
    assert found.concerns(("id", "amount"))
    assert not found.concerns(("id",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("VACUUM orders", "VACUUM orders RETAIN 300 HOURS"),
        ("vacuum s.orders retain 0 hours;", "vacuum s.orders RETAIN 300 HOURS"),
        ("VACUUM orders DRY RUN", "VACUUM orders RETAIN 300 HOURS DRY RUN"),
        ("VACUUM orders RETAIN 1.5 HOURS DRY RUN", "VACUUM orders RETAIN 300 HOURS DRY RUN"),
        ("VACUUM orders LITE", "VACUUM orders LITE RETAIN 300 HOURS"),
        ("VACUUM delta.`/a b/c`", "VACUUM delta.`/a b/c` RETAIN 300 HOURS"),
        ("VACUUM '/a b/c' RETAIN 2 HOURS", "VACUUM '/a b/c' RETAIN 300 HOURS"),
    ],
)
def test_a_vacuum_that_keeps_more(text: str, expected: str) -> None:
    found = parse_vacuum(text)
    assert found is not None
    assert found.retaining(300) == expected
    assert not found.is_forced


def test_the_parts_of_a_vacuum() -> None:
    forced = parse_vacuum("VACUUM orders RETAIN 0 HOURS FORCE;")
    assert forced is not None
    assert forced.is_forced
    assert (forced.text, forced.hours) == ("VACUUM orders RETAIN 0 HOURS", 0.0)
    placed = parse_vacuum("VACUUM delta.`/a b/c`")
    assert placed is not None
    assert (placed.name, placed.path, placed.hours) == (None, "/a b/c", None)
    assert parse_vacuum("SELECT 'VACUUM orders'") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ALTER TABLE orders RENAME TO old", ("default.orders", "default.old")),
        ("alter table s.orders rename to old;", ("s.orders", "s.old")),
        ("ALTER TABLE s.orders RENAME TO s.`o ld`", ("s.orders", "s.o ld")),
        ("ALTER TABLE orders RENAME COLUMN a TO b", None),
        ("ALTER VIEW orders RENAME TO old", None),
        ("SELECT 'ALTER TABLE orders RENAME TO old'", None),
        ("ALTER TABLE orders RENAME TO", None),
    ],
)
def test_the_new_name_of_a_table(text: str, expected: tuple[str, str] | None) -> None:
    found = new_name_of_table(text)
    assert (found and tuple(name.key for name in found)) == expected
