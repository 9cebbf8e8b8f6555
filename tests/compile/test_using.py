"""The order in which stars show columns that USING shares, which is Spark's."""

from __future__ import annotations

import pytest

from kit.typer import RuleTyper
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import compile_query
from runnel.model.columns import Column


def _table(name: str, columns: str) -> SourceSchema:
    return SourceSchema(f"default.{name}", "delta", tuple(Column(c, "int") for c in columns))


_SOURCES = [_table("t", "akb"), _table("u", "ckd"), _table("s", "dxk")]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("SELECT * FROM t JOIN u USING (k)", "kabcd"),
        ("SELECT t.* FROM t JOIN u USING (k)", "kab"),
        ("SELECT u.* FROM t JOIN u USING (k)", "kcd"),
        ("SELECT t.* FROM t RIGHT JOIN u USING (k)", "kab"),
        ("SELECT u.* FROM t FULL JOIN u USING (k)", "kcd"),
        ("SELECT u.* FROM t NATURAL LEFT JOIN u", "kcd"),
        ("SELECT * FROM t LEFT SEMI JOIN u USING (k)", "kab"),
        ("SELECT t.* FROM t LEFT ANTI JOIN u USING (k)", "kab"),
        ("SELECT * FROM t JOIN u USING (k) JOIN s USING (d, k)", "dkabcx"),
        ("SELECT u.* FROM t JOIN u USING (k) JOIN s USING (d)", "kdc"),
        ("SELECT t.*, u.* EXCEPT (c) FROM t JOIN u ON t.k = u.k", "akbkd"),
    ],
)
def test_columns_in_their_order(query: str, shown: str) -> None:
    compiled = compile_query(query, _SOURCES, RuleTyper())
    assert "".join(column.name for column in compiled.layout.columns) == shown
