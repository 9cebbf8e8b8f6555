"""Pipe operators, TABLE t and IDENTIFIER('t'): how they are read, and how their text is redirected."""

from __future__ import annotations

from pathlib import Path

import pytest

from runnel.compile.dialect import SparkSql
from runnel.compile.parse import parse
from runnel.compile.rewrites.determinism import deterministic_text
from runnel.compile.sources import redirect
from runnel.errors import InvalidQuery

_FIXTURES = sorted((Path(__file__).parents[1] / "fixtures" / "pipes").glob("*.sql"))
_PARTS = ("query", "read as", "over other tables")


@pytest.mark.parametrize("path", _FIXTURES, ids=lambda p: p.stem)
def test_fixture(path: Path, request: pytest.FixtureRequest) -> None:
    query, *expected = _parts(path.read_text())
    found = [parse(query).sql(SparkSql), redirect(query, lambda name: f"({name.sql})")]
    if request.config.getoption("--rewrite"):
        parts = zip(_PARTS, [query, *found], strict=True)
        path.write_text("".join(f"-- {name}\n{text}\n" for name, text in parts))
    else:
        assert found == expected


def _parts(text: str) -> list[str]:
    for name in _PARTS:
        text = text.replace(f"-- {name}\n", "\0")
    return [part.strip() for part in text.split("\0")[1:]]


def test_what_is_written_is_read_again() -> None:
    """The tree is written with |> SET, as Spark has no * REPLACE."""
    for path in _FIXTURES:
        written = parse(_parts(path.read_text())[0]).sql(SparkSql)
        assert parse(written).sql(SparkSql) == written
        assert "REPLACE" not in written


@pytest.mark.parametrize(
    ("query", "primary"),
    [
        ("FROM t |> AGGREGATE COUNT(*) GROUP BY 1", "a column's number"),
        ("FROM t |> AGGREGATE COUNT(*) GROUP BY ROLLUP(a)", "GROUP BY ROLLUP"),
        ("SELECT * FROM IDENTIFIER('a' || 'b')", "IDENTIFIER() of something else"),
        ("SELECT * FROM IDENTIFIER(:name)", "IDENTIFIER() of something else"),
        ("SELECT * FROM IDENTIFIER('a b c')", "not the name of a table"),
    ],
)
def test_refused_by_name_with_a_way_out(query: str, primary: str) -> None:
    with pytest.raises(InvalidQuery) as caught:
        parse(query)
    assert primary in caught.value.primary


def test_a_list_is_nothing_but_a_list() -> None:
    with pytest.raises(InvalidQuery) as caught:
        parse("FROM t |> WHERE a > 1 |> SELECT a WHERE b > 1")
    assert "nothing but a list" in (caught.value.detail or "")


def test_an_operator_that_spark_has_not() -> None:
    with pytest.raises(InvalidQuery) as caught:
        parse("FROM t |> SHUFFLE x")
    assert "|> SHUFFLE is no pipe operator" in (caught.value.detail or "")


def test_a_query_that_is_written_anew_has_no_names_of_tables_behind_pipes() -> None:
    passed = "FROM t |> JOIN u ON t.a = u.a |> EXTEND 1 AS one"
    assert deterministic_text(f"{passed} |> WHERE u.b > 1") is None
    for query in (
        f"{passed} |> AGGREGATE collect_list(u.b) AS bs GROUP BY one",
        f"{passed} |> LEFT JOIN LATERAL explode(u.bs) AS e(b)",
        f"{passed} |> DROP one |> AGGREGATE collect_list(1) AS bs GROUP BY (SELECT MAX(v.a) FROM v WHERE v.b = t.b)",
    ):
        with pytest.raises(InvalidQuery) as caught:
            deterministic_text(query)
        assert "behind a pipe" in caught.value.primary
    assert deterministic_text(f"{passed} |> AS q |> AGGREGATE collect_list(q.b) AS bs")
