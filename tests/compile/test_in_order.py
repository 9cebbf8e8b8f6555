"""Folds over sorted values: what the functions themselves give, and the same from every order."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

import duckdb
import pytest
from sqlglot import exp

from kit.dialect import transpile
from kit.typer import RuleTyper
from runnel.algebra.nodes import Window, WindowCall, walk
from runnel.compile.aggregates import ADDING_FLOATS, WAYS, Way, in_order
from runnel.compile.build import SourceSchema
from runnel.compile.dialect import SparkSql
from runnel.compile.in_order import FUNCTIONS
from runnel.compile.parse import parse
from runnel.compile.pipeline import compile_query
from runnel.errors import NotDifferentiable
from runnel.model.columns import Column

_PAIRS = ("corr", "covar", "regr")
_COLUMNS = (Column("k", "int"), Column("x", "double"), Column("y", "double"))
_SOURCES = [SourceSchema("default.t", "delta", _COLUMNS)]
# DuckDB calls these otherwise, or (kurtosis) means the population's by another name.
_NATIVE = {"try_sum": "sum", "try_avg": "avg", "std": "stddev", "kurtosis": "kurtosis_pop"}
# DuckDB's skewness corrects for the size of a sample.
_WITHOUT_EQUAL = {"skewness"}


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute("CREATE TABLE t (k INT, x DOUBLE, y DOUBLE)")
        made.executemany("INSERT INTO t VALUES (?, ?, ?)", _rows())
        yield made


def _rows() -> list[tuple[int, float | None, float | None]]:
    """Groups of many rows, of two, of one, of equal values, of NULLs only."""
    dice = random.Random(4)
    rows: list[tuple[int, float | None, float | None]] = [
        (dice.randrange(3), dice.choice([None, dice.gauss(3, 2)]), dice.gauss(-1, 5))
        for _ in range(120)
    ]
    rows += [(4, 1.5, 2.5), (4, 4.0, -1.0), (5, 7.25, 1.0), (6, None, 1.0), (7, 3.0, None)]
    return [*rows, (8, 2.0, 1.0), (8, 2.0, 4.0), (9, 1.0, 3.0), (9, 2.0, 3.0)]


def _call(name: str) -> str:
    return f"{name}(y, x)" if name.startswith(_PAIRS) else f"{name}(x)"


def _fold(call: str) -> str:
    node = parse(f"SELECT {call} FROM t").selects[0]
    made = in_order(node)
    assert made is not None
    return made.sql(SparkSql)


def _values(con: duckdb.DuckDBPyConnection, expression: str) -> list[float | None]:
    text = transpile(f"SELECT k, {expression} FROM t GROUP BY k")
    return [value for _, value in sorted(con.execute(text).fetchall(), key=lambda row: row[0])]


@pytest.mark.parametrize("name", sorted(FUNCTIONS - _WITHOUT_EQUAL))
def test_a_fold_gives_what_the_function_gives(name: str, con: duckdb.DuckDBPyConnection) -> None:
    native = _call(_NATIVE.get(name, name))
    found, expected = _values(con, _fold(_call(name))), _values(con, native)
    assert len(found) == 9
    for ours, theirs in zip(found, expected, strict=True):
        _compare(ours, theirs)


def _compare(ours: float | None, theirs: float | None) -> None:
    if theirs is None or math.isnan(theirs):
        # Spark gives NULL, or fails in ANSI mode, where DuckDB divides by zero.
        assert ours is None or math.isnan(ours)
    elif ours is not None:
        assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12)
    else:
        # Spark gives NULL for the spread of a single row; DuckDB 0 for some of them.
        assert theirs == 0


def test_skewness_is_the_populations(con: duckdb.DuckDBPyConnection) -> None:
    (found, *_) = _values(con, _fold("skewness(x)"))
    values = [v for v in _values_of(0) if v is not None]
    mean = sum(values) / len(values)
    second, third = (sum((v - mean) ** power for v in values) for power in (2, 3))
    assert found == pytest.approx(math.sqrt(len(values)) * third / second**1.5)


def _values_of(group: int) -> Sequence[float | None]:
    return [x for k, x, _ in _rows() if k == group]


@pytest.mark.parametrize("name", ["sum", "avg", "stddev", "corr", "kurtosis"])
def test_every_order_of_the_rows_gives_the_same_digits(name: str) -> None:
    dice, fold = random.Random(1), transpile(f"SELECT {_fold(_call(name))} FROM t")
    rows, seen, plain = _rows(), set(), set()
    for _ in range(8):
        dice.shuffle(rows)
        with duckdb.connect() as con:
            con.execute("CREATE TABLE t (k INT, x DOUBLE, y DOUBLE)")
            con.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
            seen.add(con.execute(fold).fetchone())
            plain.add(con.execute(f"SELECT {_call(_NATIVE.get(name, name))} FROM t").fetchone())
    assert len(seen) == 1
    assert len(plain) > 1, "the rows are too tame to show anything"


def test_filter_and_distinct(con: duckdb.DuckDBPyConnection) -> None:
    for call in ("sum(x) FILTER (WHERE y > 0)", "sum(DISTINCT x)", "avg(DISTINCT x)"):
        found, expected = _values(con, _fold(call)), _values(con, call)
        assert found == [None if v is None else pytest.approx(v) for v in expected]


def test_what_has_no_fold() -> None:
    for call in ("percentile_approx(x, 0.5)", "max(x)", "histogram_numeric(x, 3)"):
        assert in_order(parse(f"SELECT {call} FROM t").selects[0]) is None


def _text(query: str) -> str | None:
    return compile_query(query, _SOURCES, RuleTyper()).text


def test_only_below_another_operator_is_a_sum_folded() -> None:
    grouped = "SELECT k, SUM(x) AS s FROM t GROUP BY k"
    assert _text(grouped) is None
    assert _text(f"{grouped} HAVING AVG(x) > 1") is None
    assert _text(f"SELECT k, s + 1 AS s FROM ({grouped}) q WHERE s > 1") is None
    first = _text(f"SELECT k, s FROM ({grouped}) q ORDER BY s LIMIT 3")
    assert first is not None
    assert not parse(first).find(exp.Reduce)
    text = _text(f"SELECT DISTINCT s FROM ({grouped}) q")
    assert text is not None
    assert parse(text).find(exp.Reduce)
    assert not parse(text).find(exp.Sum)


def test_the_text_says_so_for_every_one_of_them() -> None:
    text = _text(
        "SELECT AVG(s) AS a, COUNT(*) AS n FROM (SELECT k, SUM(x) AS s, MAX(y) AS m FROM t GROUP BY k"
        " HAVING SUM(x) > 0 ORDER BY SUM(x) DESC, k LIMIT 4) q"
    )
    assert text is not None
    tree = parse(text)
    assert len(list(tree.find_all(exp.Reduce))) == 4
    assert not tree.find(exp.Sum, exp.Avg)
    assert tree.find(exp.Max)


def _window_call(call: str) -> WindowCall:
    tree = compile_query(f"SELECT k, {call} AS v FROM t", _SOURCES, RuleTyper()).tree
    return next(node for node in walk(tree) if isinstance(node, Window)).calls[0]


@pytest.mark.parametrize("call", ["stddev(k)", "corr(k, k)", "sum(x)", "avg(y)"])
def test_over_a_whole_partition_the_rows_are_added_in_one_order(call: str) -> None:
    """The old value is evaluated again, and must be the same to the last digit."""
    made = _window_call(f"{call} OVER (PARTITION BY k % 2)")
    assert made.order
    assert made.frame


@pytest.mark.parametrize("call", ["sum(k)", "max(x)", "percentile(x, 0.5)"])
def test_what_is_exact_needs_no_order(call: str) -> None:
    assert not _window_call(f"{call} OVER (PARTITION BY k % 2)").order


def test_spread_over_a_range_is_folded_whatever_the_type() -> None:
    text = _text(
        "SELECT k, stddev(k) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t"
    )
    assert text is not None
    assert parse(text).find(exp.Reduce)


@pytest.mark.parametrize(
    "name", sorted(n for n, w in WAYS.items() if w in (Way.AT_ROOT, Way.REFUSED))
)
def test_what_depends_on_the_order_of_arrival_is_refused_over_a_window(name: str) -> None:
    with pytest.raises(NotDifferentiable, match=name) as caught:
        compile_query(
            f"SELECT {name}(x, 3) OVER (PARTITION BY k) AS v FROM t", _SOURCES, RuleTyper()
        )
    assert caught.value.hint


def test_every_function_that_depends_on_the_order_is_folded_but_those_named() -> None:
    unordered = {"approx_percentile", "percentile_approx", "histogram_numeric"}
    unordered |= {"vector_avg", "vector_sum"}
    assert {n for n, way in WAYS.items() if way is Way.AT_ROOT} == unordered
    assert {n for n, way in WAYS.items() if way in ADDING_FLOATS} | {
        "sum", "avg", "mean", "try_sum", "try_avg",
    } == FUNCTIONS  # fmt: skip
