"""The 22 queries of TPC-H: each has a change program, and soon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from time import process_time

import pytest

from kit.reads import reads_of
from runnel.algebra.nodes import Scan, walk
from runnel.compile.build import SourceSchema
from runnel.compile.explaining import costly, explained_tree
from runnel.compile.pipeline import compile_query
from runnel.compile.program import Program
from runnel.compile.sources import source_names
from runnel.model.columns import Column
from runnel.model.refresh import RefreshMode
from runnel.model.results import Explanation

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
    start = process_time()
    compiled = compile_query(query, schemas, _Typer())
    assert process_time() - start < 0.3
    program = compiled.program(frozenset(compiled.kinds))
    assert {f"change:{s.key}" for s in schemas} <= {t for step in program.steps for t in step.reads}


def test_what_explain_prints_of_a_large_query_is_short() -> None:
    """Names and purposes of the steps; their SQL only when asked for."""
    query = next(path for path in _FILES if path.stem == "q21").read_text()
    compiled = compile_query(query, [_schema(n.name) for n in source_names(query)], _Typer())
    program = compiled.program(frozenset(compiled.kinds))
    told = Explanation(
        "q21", RefreshMode.AUTO, True, "every operator has a law", program=str(program),
        costly=costly(compiled.tree, compiled.root), tree=explained_tree(compiled.tree, compiled.root),
    )  # fmt: skip
    assert len(str(told).splitlines()) < 100
    assert all(f"  {step.name}: {step.purpose}" in str(told) for step in program.steps)
    assert program.output.sql.splitlines()[0] not in str(told)
    assert program.output.sql.splitlines()[0] in told.text(full=True)


# How often sources are read anew when everything changed: fewer is better, more is a step back.
_SCANS = {
    "q02": 14, "q03": 3, "q04": 2, "q05": 12, "q07": 12, "q08": 15, "q09": 7, "q10": 5, "q11": 17,
    "q12": 2, "q13": 2, "q14": 2, "q15": 4, "q16": 8, "q17": 2, "q18": 4, "q19": 2, "q20": 7,
    "q21": 7, "q22": 5,
}  # fmt: skip
# The same when only orders and lineitem changed, as by the standard refresh functions.
_SCANS_OF_REFRESH = {
    "q03": 3, "q04": 2, "q05": 6, "q07": 6, "q08": 8, "q09": 6, "q10": 4, "q12": 2, "q13": 2,
    "q14": 1, "q15": 3, "q17": 2, "q18": 3, "q19": 1, "q20": 5, "q21": 5, "q22": 3,
}  # fmt: skip


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_scans(path: Path) -> None:
    query = path.read_text()
    compiled = compile_query(query, [_schema(n.name) for n in source_names(query)], _Typer())
    everything = frozenset(compiled.kinds)
    assert _scans(compiled.program(everything)) <= _SCANS.get(path.stem, 0)
    refreshed = everything & {"default.orders", "default.lineitem"}
    assert _scans(compiled.program(refreshed)) <= _SCANS_OF_REFRESH.get(path.stem, 0)


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_a_leaf_that_did_not_change_is_read_once(path: Path) -> None:
    query = path.read_text()
    compiled = compile_query(query, [_schema(n.name) for n in source_names(query)], _Typer())
    changed = frozenset(compiled.kinds) & {"default.orders", "default.lineitem"}
    reads = reads_of(compiled.program(changed))
    leaves = Counter(n.source for n in walk(compiled.tree) if isinstance(n, Scan))
    for source in leaves.keys() - changed:
        assert reads[f"new:{source}"] <= leaves[source], source


# Customer, orders, lineitem and supplier are a ring there: customer and supplier are of one nation.
_RING = ("customer", "orders", "lineitem", "supplier")


@pytest.mark.parametrize("changed", [*_RING, "nation", "region"])
def test_a_change_in_the_ring_reads_every_other_leaf_once(changed: str) -> None:
    assert _reads_of_q05(changed) == dict.fromkeys({*_RING, "nation", "region"} - {changed}, 1)


@pytest.mark.parametrize("changed", list(pairwise([*_RING, "nation", "region"])))
def test_changes_of_neighbours_in_the_ring_read_every_leaf_once(changed: tuple[str, str]) -> None:
    assert _reads_of_q05(*changed) == dict.fromkeys({*_RING, "nation", "region"}, 1)


def test_only_the_smaller_of_two_leaves_between_changed_ones_is_read_twice() -> None:
    """One of them must be (see dual_weights), and it is not lineitem."""
    reads = _reads_of_q05("customer", "supplier")
    assert reads == {**dict.fromkeys([*_RING, "nation", "region"], 1), "orders": 2}


def test_a_change_of_the_whole_ring_reads_no_leaf_more_than_twice() -> None:
    reads = _reads_of_q05(*_RING, "nation", "region")
    assert max(reads.values()) == 2
    assert reads["lineitem"] == 1
    assert sum(reads.values()) == 9


def _reads_of_q05(*changed: str) -> dict[str, int]:
    """How often each table is read when these have changed; lineitem is the largest."""
    query = next(path for path in _FILES if path.stem == "q05").read_text()
    compiled = compile_query(query, [_schema(n.name) for n in source_names(query)], _Typer())
    sizes = {key: int(key == "default.lineitem") for key in compiled.kinds}
    reads = reads_of(compiled.program(frozenset(f"default.{t}" for t in changed), sizes=sizes))
    return {t.removeprefix("new:default."): n for t, n in reads.items() if t.startswith("new:")}


def _scans(program: Program) -> int:
    return sum(n for token, n in reads_of(program).items() if token.startswith("new:"))
