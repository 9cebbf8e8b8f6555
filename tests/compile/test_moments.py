"""Variances and covariances by exact sums: the values they must have, and of which types."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest

from kit.dialect import transpile
from kit.typer import RuleTyper
from runnel.algebra.nodes import Aggregate, walk
from runnel.compile.build import SourceSchema
from runnel.compile.differentiate.state import Kind, is_inexact, state_of
from runnel.compile.parse import parse
from runnel.compile.pipeline import CompiledQuery, compile_query
from runnel.model.columns import Column

_TYPES = {
    "k": "int", "t": "tinyint", "s": "smallint", "i": "int", "b": "bigint", "f": "float",
    "d": "double", "e": "decimal(13,4)", "w": "decimal(14,4)", "n": "decimal(13,0)", "z": "string",
}  # fmt: skip
_SOURCE = SourceSchema("default.r", "delta", tuple(Column(n, t) for n, t in _TYPES.items()))
_SINGLE = "std stddev stddev_pop stddev_samp variance var_pop var_samp".split()
_OF_PAIRS = (
    "corr covar_pop covar_samp regr_avgx regr_avgy regr_intercept regr_r2 regr_slope regr_sxx "
    "regr_sxy regr_syy".split()
)
_Pairs = Sequence[tuple[Fraction, Fraction]]


def _compiled(query: str) -> CompiledQuery:
    return compile_query(query, [_SOURCE], RuleTyper())


def _aggregate(query: str) -> Aggregate:
    return next(node for node in walk(_compiled(query).tree) if isinstance(node, Aggregate))


def _is_summed(call: str) -> bool:
    aggregate = _aggregate(f"SELECT k, {call} AS v FROM r GROUP BY k")
    is_summed = all(column.is_additive for column in state_of(aggregate).columns)
    assert is_summed != any(map(is_inexact, aggregate.calls))
    return is_summed


@pytest.mark.parametrize("name", _SINGLE)
@pytest.mark.parametrize(("column", "expected"), [
    ("t", True), ("s", True), ("i", True), ("e", True), ("n", True),
    ("b", False), ("f", False), ("d", False), ("w", False), ("z", False),
])  # fmt: skip
def test_which_numbers_are_summed(name: str, column: str, expected: bool) -> None:
    assert _is_summed(f"{name}({column})") is expected


@pytest.mark.parametrize("name", _OF_PAIRS)
@pytest.mark.parametrize(("pair", "expected"), [
    ("i, s", True), ("t, i", True), ("i, i", True), ("i, d", False), ("b, i", False), ("f, d", False),
])  # fmt: skip
def test_which_pairs_are_summed(name: str, pair: str, expected: bool) -> None:
    assert _is_summed(f"{name}({pair})") is expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("covar_pop(e, n)", True),
        ("stddev(i) FILTER (WHERE z = 'a')", True),
        ("corr(i, s) FILTER (WHERE i > s)", True),
        ("var_pop(i + s)", True),
        ("var_pop(CAST(b AS DECIMAL(12,0)))", True),
        ("stddev(DISTINCT i)", False),
        ("var_pop(i) FILTER (WHERE z = 'a') + skewness(i)", False),
    ],
)
def test_which_calls_are_summed(call: str, expected: bool) -> None:
    assert _is_summed(call) is expected


def test_a_constant_is_left_to_spark() -> None:
    assert not _is_summed("covar_pop(i, 2)")


def test_sums_are_kept_once() -> None:
    """The sum and the count of integers serve the average and the total, too."""
    query = "SELECT k, STDDEV(i) AS a, VAR_POP(i) AS b, AVG(i) AS c, SUM(i) AS d, COUNT(i) AS e FROM r GROUP BY k"
    kinds = [column.kind for column in state_of(_aggregate(query)).columns]
    assert kinds == [Kind.ROWS, Kind.COUNT, Kind.SUM, Kind.SUM]


@pytest.mark.parametrize(
    "call", ["STDDEV(i)", "CORR(e, n) FILTER (WHERE z = 'a')", "REGR_R2(i, s)"]
)
def test_a_refresh_reads_what_changed_and_the_state(call: str) -> None:
    query = _compiled(f"SELECT k, {call} AS v FROM r GROUP BY k HAVING {call} > 1")
    reads = {token for step in query.program(frozenset(query.kinds)).steps for token in step.reads}
    assert "change:default.r" in reads
    assert "new:default.r" not in reads
    recomputed = _compiled("SELECT k, STDDEV(d) AS v FROM r GROUP BY k")
    steps = recomputed.program(frozenset(recomputed.kinds)).steps
    assert any("new:default.r" in step.reads for step in steps)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, STDDEV(i) AS v FROM r GROUP BY k",
        "SELECT CORR(e, n) FILTER (WHERE i > 1) AS v FROM r HAVING VAR_POP(s) > 1",
        "SELECT z FROM r WHERE i > (SELECT REGR_SLOPE(i, s) FROM r)",
    ],
)
def test_the_text_is_written_out(query: str) -> None:
    """What the table is compared with must decide alike on every border."""
    text = _compiled(query).text or ""
    assert "TRANSFORM(" in text
    assert not any(name in text.lower() for name in ("stddev", "corr", "var_pop", "regr_"))


def test_what_is_recomputed_stays_as_it_is_written() -> None:
    assert (
        _compiled("SELECT k, STDDEV(d) AS a, STDDEV(DISTINCT i) AS b FROM r GROUP BY k").text
        is None
    )
    text = _compiled("SELECT k, VAR_POP(d) AS a, VAR_POP(i) AS b FROM r GROUP BY k").text or ""
    assert "VAR_POP(d) AS a" in text.replace("VARIANCE_POP", "VAR_POP")


def test_the_columns_of_a_pivot_are_recomputed() -> None:
    """Where its calls stand in the text is not known, so they cannot be written out."""
    query = _compiled("SELECT * FROM (SELECT k, z, i FROM r) PIVOT (STDDEV(i) FOR z IN ('a', 'b'))")
    assert query.text is None
    assert query.inexact({}) == (False, True, True)


def test_sums_have_no_other_last_digits() -> None:
    query = _compiled("SELECT k, STDDEV(i) AS a, STDDEV(d) AS b, CORR(i, s) AS c FROM r GROUP BY k")
    assert query.inexact({}) == (False, False, True, False)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        yield made


def _groups() -> dict[int, list[tuple[int | None, int | None]]]:
    """x and y without their points: tame, far from 0, from end to end, few, equal, with NULLs."""
    dice, limit = random.Random(7), 10**13 - 1
    far = 9 * 10**12 + 11
    return {
        1: [(dice.randrange(-50, 50), dice.randrange(90)) for _ in range(40)],
        2: [(far + dice.randrange(9), 5 - far + dice.randrange(3)) for _ in range(40)],
        3: [(dice.choice([limit, -limit]), dice.choice([limit, 1])) for _ in range(40)],
        4: [(3, 7)],
        5: [(far, 2), (far, 5), (far, None), (None, 4)],
        6: [(1, far), (4, far)],
        7: [(None, 1), (2, None)],
        8: [(far + x, 3 * (far + x) // 3) for x in range(10)],
        9: [(1, 1), (2, 1), (3, 2), (10, -7), (11, -7)],
    }


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _together(pairs: _Pairs) -> Fraction:
    ax, ay = _mean([x for x, _ in pairs]), _mean([y for _, y in pairs])
    return sum(((x - ax) * (y - ay) for x, y in pairs), Fraction(0))


def _expected(name: str, pairs: _Pairs) -> float | None:
    """The value of a function of (y, x), or of x alone, by fractions and Spark's rules for NULL."""
    n = len(pairs)
    if not n:
        return None
    xx, yy = _together([(x, x) for x, _ in pairs]), _together([(y, y) for _, y in pairs])
    xy, ax, ay = _together(pairs), _mean([x for x, _ in pairs]), _mean([y for _, y in pairs])
    if name.startswith(("std", "var", "covar")):
        rows = n if name.endswith("_pop") else n - 1
        if not rows:
            return None
        value = float((xy if name.startswith("covar") else xx) / rows)
        return math.sqrt(value) if name.startswith("std") else value
    if name == "corr":
        return None if n == 1 or not xx * yy else float(xy) / math.sqrt(xx * yy)
    plain = {"avgx": ax, "avgy": ay, "sxx": xx, "syy": yy, "sxy": xy}
    if name.removeprefix("regr_") in plain:
        return float(plain[name.removeprefix("regr_")])
    if not xx:
        return None
    if name == "regr_r2":
        return float(xy * xy / (xx * yy)) if yy else 1.0
    return float(xy / xx) if name == "regr_slope" else float(ay - xy / xx * ax)


@pytest.mark.parametrize("name", [*_SINGLE, *_OF_PAIRS])
@pytest.mark.parametrize("scale", [0, 4, 13])
def test_values(name: str, scale: int, con: duckdb.DuckDBPyConnection) -> None:
    type_ = f"decimal(13,{scale})"
    source = SourceSchema(
        "default.q", "delta", (Column("k", "int"), Column("x", type_), Column("y", type_))
    )
    call = f"{name}(x)" if name in _SINGLE else f"{name}(y, x)"
    groups = _groups()
    con.execute(f"CREATE OR REPLACE TABLE q (k INT, x {type_}, y {type_})")
    unit = Decimal(1).scaleb(-scale)
    rows = [
        (k, *(None if v is None else v * unit for v in pair))
        for k, group in groups.items()
        for pair in group
    ]
    con.executemany("INSERT INTO q VALUES (?, ?, ?)", rows)
    query = compile_query(f"SELECT k, {call} AS v FROM q GROUP BY k", [source], RuleTyper())
    found = dict(con.execute(transpile(query.text or "")).fetchall())
    for k, group in groups.items():
        one = Fraction(1, 10**scale)
        pairs = [
            (one * x, one * (y if name not in _SINGLE else 0))
            for x, y in ((x, 0 if name in _SINGLE else y) for x, y in group)
            if x is not None and y is not None
        ]
        expected = _expected(name, pairs)
        if expected is None:
            assert found[k] is None or math.isnan(found[k]), k
            continue
        # A covariance may be the small rest of large products, and so may an intercept.
        scale_of = max((abs(float(x * y)) for x, y in pairs), default=0.0)
        slack = (
            1e-15 * scale_of if name in ("covar_pop", "covar_samp", "regr_intercept") else 1e-300
        )
        assert found[k] == pytest.approx(expected, rel=4e-15, abs=slack), k


def test_equal_values_have_no_spread_at_all(con: duckdb.DuckDBPyConnection) -> None:
    text = _compiled("SELECT VAR_POP(i) AS v, COVAR_POP(i, s) AS c FROM r").text or ""
    con.execute("CREATE OR REPLACE TABLE r AS SELECT 2147483647 AS i, 3 AS s FROM range(1000)")
    assert con.execute(transpile(text)).fetchall() == [(0.0, 0.0)]


def test_the_text_is_the_same_whatever_it_was_written_in() -> None:
    """A pipe, a CTE, a view of windows: the calls are found by their places."""
    query = "WITH c AS (SELECT k, STDDEV(i) AS v FROM r GROUP BY k) SELECT a.v FROM c a JOIN c b ON a.v = b.v"
    text = _compiled(query).text or ""
    assert parse(text).sql()
    assert text.count("SQRT(") == 1
