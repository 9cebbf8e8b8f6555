"""Errors that Spark finds in a text made from the user's query, told by places in that query."""

from __future__ import annotations

import pytest

from runnel.compile.origins import Woven, weave
from runnel.compile.places import point
from runnel.compile.spark_places import locate
from runnel.errors import InvalidQuery

_EMPTY = "(SELECT CAST(NULL AS int) AS `a` WHERE FALSE) AS `t`"


def _made(query: str) -> Woven:
    at = query.index("FROM t") + 5
    return weave(query, [(at, at + 1, Woven(_EMPTY))])


def _told(query: str, found: str, form: str) -> InvalidQuery:
    """What is told of an error that Spark found at these words of the text."""
    made = _made(query)
    before = made.text[: made.text.index(found)]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n") - 1
    error = InvalidQuery(
        f"no such thing{form.format(line, column)}", detail=f"CONDITION\n== SQL ==\n{made.text}"
    )
    locate(error, query, made)
    point(error, query)
    return error


@pytest.mark.parametrize("form", [" line {} pos {}", " (line {}, pos {})"])
@pytest.mark.parametrize(
    ("query", "found", "place"),
    [
        ("SELECT b FROM t", "b F", "line 1, column 8: b"),
        ("SELECT a FROM t WHERE t.`x y` > 1", "t.`x", "line 1, column 23: t.`x y`"),
        ("SELECT a\nFROM t\nWHERE zz = 1", "zz", "line 3, column 7: zz"),
        ("\n  SELECT a FROM t GROUP BY c", "c", "line 2, column 28: c"),
        ("SELECT a FROM t", "CAST", "line 1, column 15: t"),
    ],
)
def test_place(query: str, found: str, place: str, form: str) -> None:
    error = _told(query, found, form)
    assert (error.primary, error.place) == ("no such thing", place)
    assert error.detail == "CONDITION"


def test_the_whole_query_is_no_place() -> None:
    error = _told("SELECT a FROM t", "SELECT a", " line {} pos {}")
    assert (error.primary, error.place) == ("no such thing", None)


def test_what_names_no_place_stays() -> None:
    error = InvalidQuery("no such thing", detail="CONDITION\nmore")
    locate(error, "SELECT a FROM t", _made("SELECT a FROM t"))
    assert (error.primary, error.detail, error.place) == ("no such thing", "CONDITION\nmore", None)
