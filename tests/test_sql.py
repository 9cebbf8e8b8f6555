"""Statements about stream tables, read from text without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from runnel import sql as statements
from runnel.api.speaking import carry_out
from runnel.errors import UserError
from runnel.model.names import TableName
from runnel.sql import parse_statement


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("create stream table t as select 1", statements.CreateStreamTable),
        ("Create Or Replace STREAM table a.`b` schedule '1m' AS SELECT 1",
         statements.CreateStreamTable),
        ("ALTER STREAM TABLE t SUSPEND", statements.AlterStreamTable),
        ("drop stream table if exists t cascade", statements.DropStreamTable),
        ("REFRESH STREAM TABLE t", statements.RefreshStreamTable),
        ("verify stream table t", statements.VerifyStreamTable),
        ("EXPLAIN STREAM TABLE AS SELECT 1", statements.ExplainStreamTable),
        ("SHOW STREAM TABLES", statements.ShowStreamTables),
        ("show refresh history for t", statements.ShowRefreshHistory),
        ("show stream table stats for t window '7d'", statements.ShowStreamTableStats),
        ("show alerts for a.b limit 3", statements.ShowAlerts),
        ("show stream table graph", statements.ShowStreamTableGraph),
        ("SHOW diamond GROUPS;", statements.ShowDiamondGroups),
        ("show cycles", statements.ShowCycles),
        ("SELECT 'CREATE STREAM TABLE t'", statements.SparkStatement),
        ("CREATE TABLE stream (a INT)", statements.SparkStatement),
    ],
)  # fmt: skip
def test_keywords_come_in_any_case(text: str, kind: type) -> None:
    assert isinstance(parse_statement(text), kind)


def test_an_external_table_is_seen_to_be_one() -> None:
    text = "CREATE EXTERNAL TABLE ext (id INT) USING delta LOCATION '/x'"
    assert parse_statement(text) == statements.SparkStatement(
        text, "create", TableName("default", "ext")
    )


@pytest.mark.parametrize(
    "text", ["USE default", "use schema `DEFAULT`", "USE spark_catalog.default"]
)
def test_the_schema_that_is_followed_can_be_used(text: str) -> None:
    assert parse_statement(text) == statements.SparkStatement(text)


@pytest.mark.parametrize("text", ["USE other", "use schema other", "USE other.default"])
def test_use_says_that_it_is_not_followed(text: str) -> None:
    with pytest.raises(UserError, match="USE is not followed") as caught:
        parse_statement(text)
    assert "schema.table" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM TABLE t DIAMOND CONSISTENCY atomic AS SELECT 1",
        "create stream table t with (initialize = false) diamond consistency ATOMIC AS SELECT 1",
        "CREATE STREAM TABLE t WITH (diamond_consistency = 'atomic') AS SELECT 1",
    ],
)
def test_diamond_consistency_is_a_clause_and_an_option(text: str) -> None:
    statement = statements.parse_statement(text)
    assert isinstance(statement, statements.CreateStreamTable)
    assert statement.options["diamond_consistency"].lower() == "atomic"


def test_diamond_consistency_can_be_altered() -> None:
    text = "ALTER STREAM TABLE t SET DIAMOND CONSISTENCY NONE"
    statement = statements.parse_statement(text)
    assert isinstance(statement, statements.AlterStreamTable)
    assert statement.diamond_consistency == "NONE"


def test_a_schedule_can_be_removed() -> None:
    for text, given in {
        "ALTER STREAM TABLE t SET SCHEDULE NONE": {"schedule": None},
        "alter stream table t set schedule '1m'": {"schedule": "1m"},
        "ALTER STREAM TABLE t SET COMMENT 'none'": {"comment": "none"},
    }.items():
        assert carry_out(_Lake(), parse_statement(text)) == {"name": "t", **given}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("SHOW STREAM TABLE GRAPH", "graph"),
        ("SHOW DIAMOND GROUPS", "diamond_groups"),
        ("SHOW CYCLES", "scc_status"),
    ],
)
def test_what_is_shown_is_what_the_verb_gives(text: str, verb: str) -> None:
    assert carry_out(_Lake(), parse_statement(text)) == verb  # type: ignore[arg-type]
    with pytest.raises(UserError, match="expected the end of the statement, found FOR"):
        parse_statement(f"{text} FOR t")


class _Lake:
    """Keeps what it is asked to create."""

    def alter_stream_table(self, name: object, **given: Any) -> dict[str, Any]:
        return {"name": str(name), **given}

    def graph(self) -> str:
        return "graph"

    def diamond_groups(self) -> str:
        return "diamond_groups"

    def scc_status(self) -> str:
        return "scc_status"

    def create_stream_table(self, name: object, query: str, **given: Any) -> dict[str, Any]:
        return {"name": str(name), "query": query, **given}


def _created(text: str) -> dict[str, Any]:
    return carry_out(_Lake(), parse_statement(text))  # type: ignore[arg-type, no-any-return]


def test_clauses_and_options_are_what_the_verb_is_called_with() -> None:
    options = "initialize = false, dialect = 'postgres', diamond_consistency = atomic"
    clauses = f"SCHEDULE '5m' REFRESH MODE full COMMENT 'it''s' WITH ({options})"
    assert _created(f"CREATE OR REPLACE STREAM TABLE IF NOT EXISTS t {clauses} AS SELECT 1") == {
        "name": "t", "query": "SELECT 1", "or_replace": True, "if_not_exists": True,
        "schedule": "5m", "refresh_mode": "full", "comment": "it's", "initialize": False,
        "dialect": "postgres", "diamond_consistency": "atomic",
    }  # fmt: skip
    assert _created("CREATE STREAM TABLE t AS SELECT 1") == {
        "name": "t", "query": "SELECT 1", "or_replace": False, "if_not_exists": False,
    }  # fmt: skip
    given = "schedule = '1h', refresh_mode = AUTO, comment = 'c'"
    assert _created(f"CREATE STREAM TABLE t WITH ({given}) AS SELECT 1")["schedule"] == "1h"


@pytest.mark.parametrize(
    ("clauses", "words"),
    [
        ("WITH (colour = 'red')", "'colour' is not an option"),
        ("SCHEDULE '1m' WITH (schedule = '2m')", "schedule is given twice"),
        ("WITH (initialize = maybe)", "not valid"),
    ],
)
def test_options_that_make_no_sense(clauses: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        _created(f"CREATE STREAM TABLE t {clauses} AS SELECT 1")
    assert caught.value.hint or caught.value.detail
