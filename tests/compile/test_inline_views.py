"""Views in the text of a query: before and after, and both give the same on DuckDB; `--rewrite` renews the texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pytest
import sqlglot

from kit.bags import bag
from kit.typer import RuleTyper
from runnel.compile.build import SourceSchema
from runnel.compile.dialect import SparkSql
from runnel.compile.pipeline import compile_query
from runnel.compile.rewrites.inline_views import Inlined, inline_views
from runnel.compile.sources import source_names
from runnel.errors import InvalidQuery
from runnel.model.columns import Column
from runnel.model.names import TableName, quote
from runnel.model.views import View

_FOLDER = Path(__file__).parents[1] / "fixtures" / "inline_views"
_PART = re.compile(r"^-- (temporary view|view|query|inlined)\b ?([^\n]*)\n", re.MULTILINE)
_TABLES = """
CREATE SCHEMA "default"; CREATE SCHEMA old; SET search_path = '"default"';
CREATE TABLE orders (id INT, cust INT, status VARCHAR, amount INT);
INSERT INTO orders VALUES (1, 10, 'open', 5), (2, 10, 'done', 7), (3, 11, 'open', 1), (4, NULL, 'open', 9), (1, 10, 'open', 5);
CREATE TABLE customers (id INT, name VARCHAR); INSERT INTO customers VALUES (10, 'a'), (11, 'b'), (12, NULL);
CREATE TABLE old.orders (id INT, cust INT); INSERT INTO old.orders VALUES (100, 10), (101, 13);
"""


@dataclass(frozen=True)
class Case:
    query: str
    views: tuple[View, ...]
    inlined: str


def _read(path: Path) -> Case:
    found = list(_PART.finditer(path.read_text()))
    ends = [m.start() for m in found[1:]] + [len(path.read_text())]
    parts = [
        (m, path.read_text()[m.end() : end].strip("\n")) for m, end in zip(found, ends, strict=True)
    ]
    texts = {m.group(1): text for m, text in parts}
    views = tuple(_view(m.group(1), m.group(2), text) for m, text in parts if "view" in m.group(1))
    return Case(texts["query"], views, texts.get("inlined", ""))


def _view(kind: str, head: str, text: str) -> View:
    name, _, columns = head.partition(": ")
    pairs = [item.replace("`", "").split(" = ") for item in columns.split(", ")]
    parsed = TableName.parse(name)
    shown = tuple(Column(pair[0], "int") for pair in pairs)
    outputs = tuple(pair[-1] for pair in pairs)
    return View(parsed, kind.startswith("temporary"), text, parsed.schema, shown, outputs, "")


def _names_of(text: str) -> tuple[Column, ...]:
    """The columns of a text, all of one type; a star stands for those of the orders."""
    names = [e.output_name for e in sqlglot.parse_one(text, dialect=SparkSql).selects]
    if "`x`" in text:
        return (Column("other", "int"),)
    return tuple(
        Column(n, "int") for n in ([*"id cust status amount".split()] if names == ["*"] else names)
    )


def _inline(query: str, views: tuple[View, ...]) -> Inlined:
    def find(name: TableName, is_free: bool) -> View | None:
        wanted = ["temporary:default." + name.name.lower()] if is_free else []
        known = {view.key: view for view in views}
        return next((known[k] for k in [*wanted, f"catalog:{name.key}"] if k in known), None)

    return inline_views(query, find, _names_of)


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute(_TABLES)
        yield made


def _duck(text: str) -> str:
    return sqlglot.transpile(text, read=SparkSql, write="duckdb")[0]


@pytest.mark.parametrize("path", sorted(_FOLDER.glob("*.sql")), ids=lambda p: p.stem)
def test_before_and_after(path: Path, rewrite: bool, con: duckdb.DuckDBPyConnection) -> None:
    case = _read(path)
    after = _inline(case.query, case.views).query
    if rewrite:
        before = path.read_text().partition("-- inlined\n")[0]
        path.write_text(f"{before.rstrip()}\n-- inlined\n{after}\n")
    else:
        assert after == case.inlined, "run pytest tests/compile --rewrite and read the difference"
    found = bag(con.execute(_duck(after)).fetchall())
    for view in case.views:
        con.execute(f"SET search_path = '\"{view.schema}\"'")
        names = ", ".join(f'"{c.name}"' for c in view.columns)
        listed = ", ".join(f'"{o}"' for o in view.outputs)
        text = _duck(view.text)
        if "*" in text.partition("FROM")[0].split():
            text = f"SELECT {listed} FROM ({text})"
        place = _duck(
            f"SELECT 1 FROM {quote(view.name.name) if view.is_temporary else view.name.sql}"
        )[14:]
        con.execute(
            f"CREATE {'TEMP' if view.is_temporary else ''} VIEW {place} ({names}) AS {text}"
        )
    con.execute("SET search_path = '\"default\"'")
    assert found == bag(con.execute(_duck(case.query)).fetchall())
    assert found, "a case without rows shows nothing"


@pytest.mark.parametrize("path", sorted(_FOLDER.glob("*.sql")), ids=lambda p: p.stem)
def test_what_was_inlined_is_differential(path: Path) -> None:
    orders = {"id": "int", "cust": "int", "status": "string", "amount": "int"}
    customers = {"id": "int", "name": "string"}
    tables = {"default.orders": orders, "default.customers": customers, "old.orders": orders}
    query = _read(path).inlined
    sources = [
        SourceSchema(key, "delta", tuple(Column(n, t) for n, t in tables[key].items()))
        for key in (name.key for name in source_names(query))
    ]
    compiled = compile_query(query, sources, RuleTyper())
    assert compiled.program(frozenset(compiled.kinds)).steps


def _made(name: str, text: str, *columns: str, **changes: object) -> View:
    shown = tuple(Column(c, "int") for c in columns or ("id",))
    view = View(
        TableName.parse(name), False, text, "default", shown, tuple(c.name for c in shown), ""
    )
    return replace(view, **changes)  # type: ignore[arg-type]


def test_a_query_without_views_stays_as_it_is() -> None:
    query = "  SELECT * FROM orders -- as it is\n"
    assert _inline(query, ()) == Inlined(query, ())


def test_the_views_are_given_in_the_order_they_are_met_and_once() -> None:
    views = (
        _made("a", "SELECT id FROM b"),
        _made("b", "SELECT id FROM orders"),
        _made("c", "SELECT id FROM b"),
    )
    found = _inline("SELECT * FROM a JOIN c USING (id) JOIN b USING (id)", views).views
    assert [view.name.name for view in found] == ["a", "b", "c"]


def test_a_view_keeps_the_types_it_was_created_with() -> None:
    view = _made("v", "SELECT id FROM orders", columns=(Column("id", "bigint"),))
    assert "CAST(`id` AS bigint) AS `id`" in _inline("SELECT * FROM v", (view,)).query


@pytest.mark.parametrize(
    ("views", "query", "words"),
    [
        ((("a", "SELECT id FROM b"), ("b", "SELECT id FROM a")), "SELECT * FROM a", "a -> b -> a"),
        ((("a", "SELECT id FROM A"),), "SELECT * FROM a", "reads itself"),
        ((("a", "SELECT id FROM orders LIMIT 3"),), "SELECT * FROM a", "in view a"),
        ((("a", "SELECT rand() AS id FROM orders"),), "SELECT * FROM a", "not deterministic"),
        ((("a", "SELECT * FROM orders JOIN x"),), "SELECT * FROM a", "no longer has a column id"),
        ((("a", "VALUES 1"),), "SELECT * FROM a", "in view a"),
        ((("a", "SELECT id FROM other.db.t"),), "SELECT * FROM a", "another catalog"),
        ((("a", "SELECT id FROM b"), ("b", "SELEC")), "SELECT * FROM a", "in view b; in view a"),
    ],
)  # fmt: skip
def test_what_cannot_be_inlined_says_where(
    views: tuple[tuple[str, str], ...], query: str, words: str
) -> None:
    with pytest.raises(InvalidQuery) as caught:
        _inline(query, tuple(_made(*view) for view in views))
    assert words in str(caught.value)


def test_two_outputs_of_one_name_are_told_apart_by_place() -> None:
    view = _made("v", "SELECT id, cust AS id FROM orders", "a", "b", outputs=("id", "id"))
    assert "AS `view`(`a`, `b`)" in _inline("SELECT * FROM v", (view,)).query


def test_two_outputs_of_one_name_behind_a_star_are_refused() -> None:
    view = _made("v", "SELECT * FROM orders", "a", "b", outputs=("id", "ID"))
    with pytest.raises(InvalidQuery, match="two columns called id"):
        _inline("SELECT * FROM v", (view,))


def test_views_that_double_at_every_level_are_refused_before_memory_ends() -> None:
    views = [_made("v0", "SELECT id FROM orders")]
    views += [
        _made(f"v{i}", f"SELECT a.id FROM v{i - 1} a JOIN v{i - 1} b ON a.id = b.id")
        for i in range(1, 40)
    ]
    known = {view.name.key: view for view in views}
    with pytest.raises(InvalidQuery, match="too many views"):
        inline_views(
            "SELECT * FROM v39",
            lambda name, _: known.get(name.key),
            lambda _: (Column("id", "int"),),
        )
