"""Copies that several windows would place: the text numbers them as the tree does."""

from __future__ import annotations

import pytest

from kit.duck import Table
from kit.typer import RuleTyper
from runnel.compile.pipeline import compile_query
from runnel.errors import NotDifferentiable
from runnel.model.columns import Column

_TABLES = [
    Table("t", (Column("a", "int"), Column("b", "int"))).schema,
    Table("u", (Column("a", "int"), Column("y", "int"))).schema,
]
_TWO = "LAG(b) OVER (ORDER BY t.a) AS p, ROW_NUMBER() OVER (ORDER BY b) AS q"


def _text(query: str) -> str:
    return compile_query(query, _TABLES, RuleTyper()).text or query


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {_TWO} FROM t",
        f"SELECT *, {_TWO} FROM t",
        f"SELECT u.*, {_TWO} FROM t JOIN u ON t.a = u.a",
        f"SELECT t.a, {_TWO} FROM t ORDER BY b DESC, a LIMIT 3",
        f"SELECT {_TWO} FROM t QUALIFY q > 1",
    ],
)
def test_rows_are_numbered_first(query: str) -> None:
    text = _text(query)
    outer, inner = text.split("FROM (", 1)
    assert inner.count("AS __runnel_copy") == 1
    assert outer.count(", __runnel_copy)") == 2
    assert "*" not in outer


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, LAG(b) OVER (ORDER BY a) AS p, ROW_NUMBER() OVER (ORDER BY a) AS q FROM t",
        "SELECT a, RANK() OVER (ORDER BY a) AS p, ROW_NUMBER() OVER (ORDER BY b) AS q FROM t",
        "SELECT SUM(b) AS s, LAG(a) OVER (ORDER BY a) AS p, "
        "ROW_NUMBER() OVER (ORDER BY SUM(b)) AS q FROM t GROUP BY a",
    ],
)
def test_what_one_order_decides_needs_no_number(query: str) -> None:
    assert "__runnel_copy" not in _text(query)


def test_beside_a_subquery_it_is_refused() -> None:
    with pytest.raises(NotDifferentiable, match="beside a subquery"):
        _text(f"SELECT (SELECT MAX(y) FROM u) AS m, {_TWO} FROM t")
