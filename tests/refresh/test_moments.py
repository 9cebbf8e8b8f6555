"""Variances, covariances and the like on Spark: near its own answer, and the same to the last bit from everywhere."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from refresh.helpers import Source, check
from runnel.api import Lake
from runnel.errors import QueryFailed

pytestmark = pytest.mark.spark

_COLUMNS = {"k": "int", "x": "int", "y": "smallint", "d": "decimal(13,2)", "e": "decimal(9,4)"}
_CALLS = (
    "STDDEV(d)", "COVAR_SAMP(x, d)", "REGR_AVGX(y, x)", "REGR_INTERCEPT(x, d)", "REGR_R2(d, e)",
    "CORR(x, d) FILTER (WHERE k = 1)",
)  # fmt: skip
_QUERY = f"SELECT k, {', '.join(f'{c} AS v{i}' for i, c in enumerate(_CALLS))} FROM t GROUP BY k"


def _rows(seed: int) -> list[tuple[Any, ...]]:
    dice = random.Random(seed)

    def some(value: Any) -> Any:
        return None if dice.random() < 0.1 else value

    rows = [
        (dice.choice([1, 2, None]), some(dice.randrange(-900, 900)), some(dice.randrange(50)),
         some(f"{dice.randrange(10**6)}.{dice.randrange(100):02}"), some(f"{dice.randrange(99)}.{dice.randrange(10**4):04}"))
        for _ in range(60)
    ]  # fmt: skip
    return [
        *rows,
        (3, 5, 6, "7.25", "8.5000"),
        (4, None, 6, None, "1.0000"),
        (5, 7, 7, "1.00", "1.0000"),
        (5, 7, 7, "1.00", "1.0000"),
    ]


def _contents(lake: Lake, query: str) -> dict[Any, tuple[Any, ...]]:
    return {row[0]: tuple(row)[1:] for row in lake.spark.sql(query).collect()}


def _near(found: Any, expected: Any) -> bool:
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)


def test_near_what_spark_gives_and_the_same_from_full(lake: Lake, tmp_path: Path) -> None:
    source = Source(lake, tmp_path, "t", _COLUMNS, _rows(1))
    lake.create_stream_table("by_change", _QUERY, refresh_mode="DIFFERENTIAL")
    source.append(*_rows(2))
    source.delete("x > 400 OR k = 4")
    check(lake, "by_change", "DIFFERENTIAL")
    lake.create_stream_table("anew", _QUERY, refresh_mode="FULL")
    found = _contents(lake, "SELECT * FROM by_change")
    assert found == _contents(lake, "SELECT * FROM anew")
    expected = _contents(lake, _QUERY)
    assert found.keys() == expected.keys()
    for k, values in found.items():
        for call, ours, theirs in zip(_CALLS, values, expected[k], strict=True):
            assert _near(ours, theirs), (k, call, ours, theirs)


def test_large_numbers_with_a_small_spread(lake: Lake, tmp_path: Path) -> None:
    """Spark's doubles know few digits of these; the other group has the longest numbers there are."""
    far = [(1, 2_000_000_000 + v, 1, f"{99_999_999_000 + v}.25", "1.0000") for v in (1, 2, 3, 6)]
    longest = [
        (2, 2**31 - 1, 1, f"{sign}99999999999.99", f"{sign}99999.9999") for sign in ("", "-")
    ]
    source = Source(lake, tmp_path, "t", _COLUMNS, [*far[:3], *longest])
    query = "SELECT k, VAR_POP(x) AS x, VAR_POP(d) AS d, COVAR_POP(x, d) AS c, COVAR_POP(d, e) AS s FROM t GROUP BY k"
    lake.create_stream_table("far", query, refresh_mode="DIFFERENTIAL")
    source.append(far[3], *(longest * 20))
    check(lake, "far", "DIFFERENTIAL")
    found = _contents(lake, "SELECT * FROM far")
    assert found[1] == (3.5, 3.5, 3.5, 0.0)
    products = (0.0, 99_999_999_999.99**2, 0.0, 99_999_999_999.99 * 99_999.9999)
    assert found[2] == pytest.approx(products, rel=1e-15)


def test_no_correlation_without_a_spread(lake: Lake, tmp_path: Path) -> None:
    """Spark divides by zero there, which in ANSI mode is an error; the old contents stay."""
    source = Source(lake, tmp_path, "t", _COLUMNS, _rows(1)[:40])
    query = "SELECT k, CORR(x, y) AS c FROM t WHERE k = 1 GROUP BY k"
    lake.create_stream_table("tied", query, refresh_mode="DIFFERENTIAL")
    before = _contents(lake, "SELECT * FROM tied")
    source.overwrite((1, 5, 6, None, None), (1, 5, 7, None, None))
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        _contents(lake, query)
    with pytest.raises(QueryFailed, match=r"(?i)divi"):
        lake.refresh("tied")
    assert _contents(lake, "SELECT * FROM tied") == before
    source.append((1, 9, 9, None, None))
    check(lake, "tied", "DIFFERENTIAL")
