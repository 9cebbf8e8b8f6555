"""Every query of the corpus becomes a change program, and gives the right change where DuckDB runs it."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from kit.check import Mismatch
from kit.duck import connection
from kit.duck_backend import DuckBackend
from kit.step import Change, TableSpec
from kit.typer import GuessingTyper
from postgres.corpus import Query, accepted
from postgres.data import COLUMNS, ROWS, columns_of
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import compile_query
from runnel.compile.postgres.translate import translate
from runnel.model.columns import Column

_TABLES = {
    name: tuple(Column(column, spark) for column, _, spark in columns)
    for name, columns in COLUMNS.items()
}
_SOURCES = [SourceSchema(f"default.{name}", "delta", columns) for name, columns in _TABLES.items()]
# Kept by FULL alone; there is none at present.
_ONLY_FULL: frozenset[str] = frozenset()
# The others use functions that the kit has no types for, or DuckDB no counterpart.
_LEAST_RUN = 100


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connection()
    yield made
    made.close()


@pytest.mark.parametrize("query", [q for q in accepted() if str(q) not in _ONLY_FULL], ids=str)
def test_query_becomes_a_change_program(query: Query) -> None:
    text = translate(query.text, columns_of)
    compiled = compile_query(text, _SOURCES, GuessingTyper())
    assert compiled.program(frozenset(compiled.kinds)).steps


def test_a_round_of_changes_gives_the_right_change(con: duckdb.DuckDBPyConnection) -> None:
    queries = [q for q in accepted() if str(q) not in _ONLY_FULL]
    run = sum(_is_run(query, con) for query in queries)
    assert run >= _LEAST_RUN, f"only {run} of {len(queries)}"


def _is_run(query: Query, con: duckdb.DuckDBPyConnection) -> bool:
    """Whether DuckDB can run it, and means the same by it; a wrong change fails."""
    backend = DuckBackend(con)
    for name, columns in _TABLES.items():
        backend.create_table(TableSpec(name, columns, rows=list(ROWS[name])))
    try:
        backend.create_stream_table(translate(query.text, columns_of))
    except Mismatch as error:
        if not _is_taken_for_text(backend):
            raise AssertionError(f"first contents of {query}: {query.text}") from error
        backend.close()
        return False
    except (NotImplementedError, duckdb.Error, KeyError, AttributeError, AssertionError):
        backend.close()
        return False
    try:
        _change(backend)
    except AssertionError as error:
        raise AssertionError(f"{query}: {query.text}") from error
    finally:
        backend.close()
    return True


def _is_taken_for_text(backend: DuckBackend) -> bool:
    """Whether the kit, which knows not all of Spark's types, stores something else as a text."""
    described = backend.con.execute(f"DESCRIBE {backend.oracle_sql}").fetchall()
    stored = [column.type for column in backend.query.compiled.layout.columns]
    return any(
        type_ == "string" and row[1] != "VARCHAR"
        for type_, row in zip(stored, described, strict=True)
    )


def _change(backend: DuckBackend) -> None:
    for name, rows in ROWS.items():
        backend.commit([Change(name, rows[0], None), Change(name, rows[1], rows[2])])
        backend.commit([Change(name, None, rows[0])])
    backend.refresh()
