"""The current time in a query: found for certain, or refused; then an instant like any other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kit.typer import RuleTyper
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import compile_query
from runnel.compile.rewrites.fix_time import fix_time, time_calls
from runnel.compile.variables import unknown_names
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column

_AT = datetime(2026, 11, 16, 7, 20, 27, 123456, tzinfo=UTC)
_NOW = "timestamp_micros(1794813627123456)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("current_timestamp()", _NOW),
        ("CURRENT_TIMESTAMP", _NOW),
        ("Now ( )", _NOW),
        ("`now`()", _NOW),
        ("current_date", f"CAST({_NOW} AS DATE)"),
        ("curdate()", f"CAST({_NOW} AS DATE)"),
        ("localtimestamp()", f"CAST({_NOW} AS TIMESTAMP_NTZ)"),
        ("unix_timestamp()", f"unix_timestamp({_NOW})"),
        ("unix_timestamp(d)", "unix_timestamp(d)"),
        ("date_add(current_date, 1)", f"date_add(CAST({_NOW} AS DATE), 1)"),
        ("d >= current_date() - INTERVAL 7 DAYS", f"d >= CAST({_NOW} AS DATE) - INTERVAL 7 DAYS"),
        ("t.current_date", "t.current_date"),
        ("d AS current_date", "d AS current_date"),
        ("'now()' -- now()", "'now()' -- now()"),
        ("t.now", "t.now"),
    ],
)
def test_only_the_functions_are_replaced(text: str, expected: str) -> None:
    query = f"  SELECT 'ü', {text}\n FROM t"
    time_calls(query)
    assert fix_time(query, _AT) == f"  SELECT 'ü', {expected}\n FROM t"


def test_the_zone_of_the_instant_does_not_matter() -> None:
    query = "SELECT now() AS n FROM t"
    assert fix_time(query, _AT) == fix_time(query, _AT.astimezone(timezone(timedelta(hours=-7))))


@pytest.mark.parametrize(
    "text", ["builtin.now()", "current_timestamp(3)", "current_date.x", "d current_date"]
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuery, match="current time in a way"):
        time_calls(f"SELECT {text} FROM t")


def _compile(text: str) -> None:
    table = SourceSchema("default.t", "delta", (Column("d", "date"), Column("s", "string")))
    compile_query(f"SELECT d FROM t WHERE {text}", [table], RuleTyper())


@pytest.mark.parametrize("text", ["d = current_date", "d < now()", "d < localtimestamp()"])
def test_such_a_query_is_not_differential(text: str) -> None:
    with pytest.raises(NotDifferentiable, match="asks for the current time") as caught:
        _compile(text)
    assert "AUTO" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("s = current_user()", "current_user"),
        ("s = current_timezone()", "current_timezone"),
        ("s = version()", "version"),
        ("d = DATE 'today'", "today"),
        ("d < TIMESTAMP 'Yesterday UTC'", "Yesterday"),
    ],
)
def test_what_else_depends_on_when_and_where_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidQuery, match=words):
        _compile(text)


def test_names_that_nobody_gives_are_found() -> None:
    query = (
        "WITH w(ww) AS (SELECT a FROM t) SELECT a, b.x, ww, s.f.g, my_var + 1 AS q, q + session.v, user, "
        "transform(arr, (y, i) -> y + i + other), c.cc, e.ee FROM t b JOIN (SELECT 1 AS z) c(cc) JOIN w "
        "LATERAL VIEW explode(arr) e AS ee WHERE ee = z"
    )
    assert sorted(unknown_names(query, ["A", "arr", "s"])) == [
        "`my_var`", "`other`", "`session`.`v`", "`user`",
    ]  # fmt: skip


def test_the_text_with_orders_completed_asks_in_the_same_way() -> None:
    table = SourceSchema("default.t", "delta", (Column("d", "date"), Column("s", "string")))
    query = (
        "SELECT s, d, ROW_NUMBER() OVER (ORDER BY d) AS r FROM t WHERE d < localtimestamp() "
        "AND d < current_date() AND d < now() AND d < CURRENT_TIMESTAMP"
    )
    text = compile_query(query, [table], RuleTyper(), is_instant=True).text
    assert text is not None
    assert len(time_calls(text)) == 4
