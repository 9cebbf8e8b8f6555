"""A refusal points into the text that the user wrote: the query, or the view it reads."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kit.typer import RuleTyper
from runnel.compile.build import SourceSchema
from runnel.compile.origins import Woven, weave
from runnel.compile.pipeline import compile_query
from runnel.compile.refuse import refuse
from runnel.compile.rewrites.inline_views import Inlined, inline_views
from runnel.errors import InvalidQuery, NotDifferentiable
from runnel.model.columns import Column
from runnel.model.names import TableName
from runnel.model.views import View

_COLUMNS = (Column("a", "int"), Column("x", "int"))
_SOURCES = [SourceSchema("default.t", "delta", _COLUMNS)]


def _view(name: str, text: str) -> View:
    return View(TableName.parse(name), False, text, "default", _COLUMNS, ("a", "x"), "")


def _inlined(query: str, views: Sequence[View]) -> Inlined:
    known = {view.name.key: view for view in views}
    return inline_views(query, lambda name, _: known.get(name.key), lambda _: _COLUMNS)


def _refusal(query: str, *views: View) -> str | None:
    inlined = _inlined(query, views)
    with pytest.raises(NotDifferentiable) as caught:
        compile_query(inlined.query, _SOURCES, RuleTyper())
    inlined.point(caught.value)
    return caught.value.place


_PLAIN = _view("v", "SELECT a, x\nFROM t WHERE x > 0")
_OPEN = "APPROX_PERCENTILE(x, 0.5) OVER (PARTITION BY a)"


def test_behind_a_view_the_place_is_that_of_the_query() -> None:
    query = f"SELECT v.a, w.x\nFROM v JOIN v w ON v.a = w.a\nJOIN\n  (SELECT a, {_OPEN} AS l FROM v) q ON q.a = v.a"
    assert _refusal(query, _PLAIN) == f"line 4, column 14: {_OPEN}"


def test_a_construct_of_a_view_is_shown_in_its_text() -> None:
    bad = _view("bad", f"SELECT a,\n  {_OPEN} AS x\nFROM v")
    assert _refusal("SELECT a FROM v UNION ALL SELECT x FROM bad", _PLAIN, bad) == (
        f"in view bad, line 2, column 3: {_OPEN}"
    )


def test_a_view_below_a_view() -> None:
    bad = _view("bad", f"SELECT a, {_OPEN} AS x FROM t")
    over = _view("over", "SELECT a, x FROM v UNION ALL SELECT a, x FROM bad")
    assert _refusal("SELECT a, x FROM over", _PLAIN, bad, over) == (
        f"in view bad, line 1, column 11: {_OPEN}"
    )


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("SELECT a,\n  rand() AS r FROM t", "line 2, column 3: rand()"),
        ("SELECT a FROM t\nWHERE uuid() <> ''", "line 2, column 7: uuid()"),
        ("SELECT a FROM t LIMIT 3", "line 1, column 17: LIMIT 3"),
        ("SELECT a FROM t\nlimit 2 + 1", "line 2, column 1: limit 2 + 1"),
        ("SELECT a AS offset FROM t\n OFFSET 1", "line 2, column 2: OFFSET 1"),
        ("SELECT a FROM t LIMIT ALL", "line 1, column 8: a FROM t"),
        (
            "SELECT a FROM\n t TABLESAMPLE (10 PERCENT)",
            "line 2, column 4: TABLESAMPLE (10 PERCENT)",
        ),
        ("SELECT a FROM t VERSION AS OF 3 WHERE a > 0", "line 1, column 17: VERSION AS OF 3"),
        (
            "SELECT a FROM t\n TIMESTAMP AS OF '2020-01-01'",
            "line 2, column 2: TIMESTAMP AS OF '2020-01-01'",
        ),
    ],
)
def test_what_no_mode_keeps_has_a_place(query: str, place: str) -> None:
    with pytest.raises(InvalidQuery) as caught:
        refuse(query)
    assert caught.value.place == place


def test_what_no_mode_keeps_is_found_in_the_view() -> None:
    with pytest.raises(InvalidQuery) as caught:
        _inlined("SELECT a FROM over", [
            _view("bad", "SELECT a,\n x + rand() AS x FROM t"), _view("over", "SELECT a, x FROM bad")
        ])  # fmt: skip
    assert caught.value.place == "in view bad, line 2, column 6: rand()"


@pytest.mark.parametrize(
    ("query", "place"),
    [
        (
            "SELECT MAX(s) AS m FROM (\n  SELECT a, percentile_approx(x, 0.5) AS s FROM t GROUP BY a) q",
            "line 2, column 13: percentile_approx(x, 0.5)",
        ),
        ("SELECT a FROM t WHERE\n  x > year(current_date())", "line 2, column 12: current_date()"),
    ],
)
def test_what_is_found_late_has_a_place_too(query: str, place: str) -> None:
    with pytest.raises(NotDifferentiable) as caught:
        compile_query(query, _SOURCES, RuleTyper())
    assert caught.value.place == place


def test_a_rewritten_text_has_no_place() -> None:
    inlined = Inlined("SELECT 1", (_PLAIN,), weave("SELECT 2", []), "select 1")
    error = InvalidQuery("no")
    error.span, error.place = (0, 3), "line 1, column 1: SELE"
    inlined.point(error)
    assert error.place == "SELE"


def test_weaving_keeps_the_text() -> None:
    inner = weave("bcd", [(1, 2, Woven("X"))], "inner")
    assert inner.text == "bXd"
    outer = weave("a?e", [(1, 2, inner.inside("(", ")"))])
    assert outer.text == "a(bXd)e"
    assert outer.place((0, 0)) == "line 1, column 1: a"
    assert outer.place((4, 4)) == "in view inner, line 1, column 3: d"
    assert outer.place((6, 6)) == "line 1, column 3: e"
