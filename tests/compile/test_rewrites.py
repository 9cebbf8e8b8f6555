"""Rewrites before differentiation: the query before, one that says the same after, both executed; and what is differentiated.

`pytest tests/compile --rewrite` renews the operators in the fixtures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from kit.duck import Table, connection, oracle, oracle_text
from kit.duck_backend import DuckBackend
from kit.step import Change, TableSpec
from kit.typer import RuleTyper
from runnel.algebra.printing import print_tree
from runnel.compile.dialect import SparkSql
from runnel.compile.parse import parse
from runnel.compile.pipeline import compile_query
from runnel.compile.postgres.translate import translate
from runnel.compile.rewrites.named_windows import expand_named_windows
from runnel.model.columns import Column
from runnel.model.names import TableName

_FOLDER = Path(__file__).parents[1] / "fixtures" / "rewrites"
_OPERATORS = "-- operators\n"
_FILES = sorted(_FOLDER.rglob("*.sql"))
_COLUMNS = {
    "t": (Column("a", "int"), Column("b", "int"), Column("x", "int")),
    "u": (Column("a", "int"), Column("y", "int")),
}
_T = [(1, 1, 10), (1, 2, 20), (2, 2, 30), (2, None, 40), (None, 1, 50), (1, 1, 10)]
_U = [(1, 5), (1, 15), (3, 25), (None, 35)]
_CHANGES = [
    Change("t", (1, 2, 20), None),
    Change("t", (2, 2, 30), (3, 2, 35)),
    Change("t", None, (2, 1, 60)),
    Change("u", (3, 25), (2, 25)),
    Change("u", None, (None, 1)),
]


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connection()
    yield made
    made.close()


def _parts(path: Path) -> tuple[str, str, str]:
    """The query before, the query after, and the operators that the first becomes."""
    before, rest = path.read_text().removeprefix("-- before\n").split("-- after\n")
    after, _, operators = rest.partition(_OPERATORS)
    return before.strip(), after.strip(), operators


def _text(path: Path, before: str) -> str:
    is_postgres = path.parent.name == "distinct_on"
    return translate(before, _columns_of) if is_postgres else before


def _columns_of(name: TableName) -> tuple[Column, ...]:
    return _COLUMNS[name.name.lower()]


@pytest.mark.parametrize("path", _FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_before_and_after_give_the_same(path: Path, con: duckdb.DuckDBPyConnection) -> None:
    before, after, _ = _parts(path)
    backend = DuckBackend(con)
    backend.create_table(TableSpec("t", _COLUMNS["t"], rows=list(_T)))
    backend.create_table(TableSpec("u", _COLUMNS["u"], rows=list(_U)))
    try:
        # The compiled query is compared with the text before, at both ends of the change.
        backend.create_stream_table(_text(path, before), before)
        expected = oracle_text(after, backend.tables)
        assert backend.contents() == oracle(con, expected)
        backend.commit(_CHANGES)
        backend.refresh()
        assert backend.contents() == oracle(con, expected)
    finally:
        backend.close()


@pytest.mark.parametrize(
    "path", sorted((_FOLDER / "named_windows").glob("*.sql")), ids=lambda p: p.stem
)
def test_named_windows_are_written_out(path: Path) -> None:
    before, after, _ = _parts(path)
    assert expand_named_windows(parse(before)).sql(SparkSql) == after


@pytest.mark.parametrize("path", _FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_what_is_differentiated(path: Path, rewrite: bool) -> None:
    before, after, operators = _parts(path)
    text = _text(path, before)
    schemas = [Table(name, columns).schema for name, columns in _COLUMNS.items()]
    tree = print_tree(compile_query(text, schemas, RuleTyper()).tree)
    made = "".join(f"-- {line}\n" for line in tree.splitlines())
    if rewrite:
        path.write_text(f"-- before\n{before}\n-- after\n{after}\n{_OPERATORS}{made}")
        return
    assert made == operators, "run pytest tests/compile --rewrite and read the difference"


def test_every_rewrite_has_a_fixture() -> None:
    assert {path.parent.name for path in _FILES} == set(
        "distinct_on grouping_sets named_windows qualify scalar_subqueries subqueries_under_or "
        "windows_of_different_partitions".split()
    )
