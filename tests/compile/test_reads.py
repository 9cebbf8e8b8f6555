"""The names a statement reads: more rather than fewer, but not its own CTEs."""

from __future__ import annotations

import pytest

from runnel.compile.reads import statement_reads


def keys(text: str, schema: str = "default") -> set[str]:
    return {mention.name.key for mention in statement_reads(text, schema).mentions}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM a JOIN s.b USING (x)", {"default.a", "s.b"}),
        ("WITH a AS (SELECT * FROM b) SELECT * FROM a", {"default.b"}),
        ("INSERT INTO t SELECT * FROM a", {"default.t", "default.a"}),
        ("WITH q AS (SELECT * FROM a) INSERT INTO b SELECT * FROM q", {"default.a", "default.b"}),
        ("CREATE TABLE t USING delta AS SELECT * FROM a", {"default.t", "default.a"}),
        ("MERGE INTO t USING a ON t.x = a.x WHEN MATCHED THEN DELETE", {"default.t", "default.a"}),
        ("DELETE FROM t WHERE x IN (SELECT y FROM a)", {"default.t", "default.a"}),
        ("FROM a INSERT INTO b SELECT x INSERT INTO c SELECT y",
         {"default.a", "default.b", "default.c"}),
        ("TABLE a", {"default.a"}),
        ("INSERT INTO TABLE t TABLE a", {"default.t", "default.a"}),
        ("SELECT * FROM IDENTIFIER('s.a')", {"s.a"}),
        ("FROM a |> JOIN b USING (x) |> SET x = 1", {"default.a", "default.b"}),
        ("DROP TABLE a", set()),
        ("ALTER TABLE a ADD COLUMNS (x INT)", set()),
        ("SET spark.sql.ansi.enabled = true", set()),
    ],
)  # fmt: skip
def test_statements_that_are_understood(text: str, expected: set[str]) -> None:
    assert keys(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN SELECT * FROM a",
        "EXECUTE IMMEDIATE 'SELECT * FROM a'",
        "BEGIN SELECT * FROM a; END",
        "SELECT * FROM IDENTIFIER('a' || lower('B'))",
        "SELECT * FROM `a` SOMETHING NEW (1",
    ],
)
def test_of_what_is_not_understood_every_word_counts(text: str) -> None:
    assert "default.a" in keys(text)
    assert not statement_reads(text).is_query


def test_qualified_names_in_what_is_not_understood() -> None:
    assert "s.a b" in keys("EXPLAIN SELECT * FROM s . `a b`")


def test_only_queries_write_nothing() -> None:
    assert statement_reads("SELECT 1 FROM a").is_query
    assert statement_reads("(SELECT 1 FROM a) UNION ALL SELECT 2 FROM b").is_query
    assert not statement_reads("INSERT INTO t SELECT 1").is_query
    assert not statement_reads("CACHE TABLE z AS SELECT * FROM a").is_query


def test_names_without_a_schema_may_be_temporary_views() -> None:
    mentions = {m.name.name: m.is_free for m in statement_reads("SELECT * FROM a, s.b").mentions}
    assert mentions == {"a": True, "b": False}
    assert keys("SELECT * FROM a", "s") == {"s.a"}
