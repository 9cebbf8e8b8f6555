"""The 22 queries of TPC-H: each has a change program, and soon."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import pytest

from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import compile_query
from runnel.compile.sources import source_names
from runnel.model.columns import Column

_FILES = sorted((Path(__file__).parents[2] / "bench" / "tpch").glob("q*.sql"))
_TYPES = {"orderdate": "date", "shipdate": "date", "commitdate": "date", "receiptdate": "date"}
_NUMBERS = "quantity extendedprice discount tax totalprice acctbal retailprice supplycost".split()
_TABLES = {
    "lineitem": "l orderkey partkey suppkey linenumber quantity extendedprice discount tax returnflag "
    "linestatus shipdate commitdate receiptdate shipinstruct shipmode comment",
    "orders": "o orderkey custkey orderstatus totalprice orderdate orderpriority clerk shippriority "
    "comment",
    "customer": "c custkey name address nationkey phone acctbal mktsegment comment",
    "part": "p partkey name mfgr brand type size container retailprice comment",
    "partsupp": "ps partkey suppkey availqty supplycost comment",
    "supplier": "s suppkey name address nationkey phone acctbal comment",
    "nation": "n nationkey name regionkey comment",
    "region": "r regionkey name comment",
}


class _Typer:
    """Good enough to compile by: nothing is run here."""

    def types(self, columns: Sequence[Column], expressions: Sequence[str]) -> tuple[str, ...]:
        return tuple("bigint" if "COUNT" in e.upper() else "decimal(12,2)" for e in expressions)


def _schema(table: str) -> SourceSchema:
    prefix, *names = _TABLES[table].split()
    columns = tuple(Column(f"{prefix}_{name}", _type(name)) for name in names)
    return SourceSchema(f"default.{table}", "delta", columns)


def _type(name: str) -> str:
    if name in _NUMBERS:
        return "decimal(15,2)"
    return "bigint" if name.endswith("key") else _TYPES.get(name, "string")


def test_all_queries_are_there() -> None:
    assert [path.stem for path in _FILES] == [f"q{number:02}" for number in range(1, 23)]


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_query(path: Path) -> None:
    query = path.read_text()
    schemas = [_schema(name.name) for name in source_names(query)]
    start = perf_counter()
    compiled = compile_query(query, schemas, _Typer())
    assert perf_counter() - start < 3
    program = compiled.program(frozenset(compiled.kinds))
    assert {f"change:{s.key}" for s in schemas} <= {t for step in program.steps for t in step.reads}
