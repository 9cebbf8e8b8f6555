"""A user's aggregate is written as a function of a sorted list, wherever it stands."""

from __future__ import annotations

import pytest

from runnel.compile.aggregates import is_aggregate
from runnel.compile.parse import parse
from runnel.compile.rewrites.own_aggregates import own_aggregates


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT k, spread(x) FROM t GROUP BY k",
            "SELECT k, SPREAD(ARRAY_SORT(COLLECT_LIST(x))) AS `spread(x)` FROM t GROUP BY k",
        ),
        (
            "SELECT 1 + Spread(x, y) AS z FROM t",
            "SELECT 1 + SPREAD(ARRAY_SORT(COLLECT_LIST(STRUCT(x, y)))) AS z FROM t",
        ),
        (
            "SELECT spread(DISTINCT x) FILTER (WHERE y > 0) AS z FROM t",
            "SELECT SPREAD(ARRAY_SORT(COLLECT_LIST(DISTINCT x) FILTER(WHERE y > 0))) AS z FROM t",
        ),
        (
            "SELECT spread(x) OVER (PARTITION BY k) AS z FROM t",
            "SELECT SPREAD(ARRAY_SORT(COLLECT_LIST(x) OVER (PARTITION BY k))) AS z FROM t",
        ),
        (
            "SELECT k FROM t GROUP BY k HAVING spread(x) > spread(y)",
            "SELECT k FROM t GROUP BY k HAVING SPREAD(ARRAY_SORT(COLLECT_LIST(x))) > "
            "SPREAD(ARRAY_SORT(COLLECT_LIST(y)))",
        ),
    ],
)
def test_calls_become_functions_of_a_list(query: str, expected: str) -> None:
    assert own_aggregates(query, {"spread"}) == expected


def test_other_queries_stay_as_they_are_written() -> None:
    query = "select  K, sum(x) from t group by k"
    assert own_aggregates(query, {"spread"}) == query
    assert own_aggregates(query, ()) == query


def test_a_name_like_an_aggregates_does_not_make_one_of_a_function_over_a_list() -> None:
    bare, wrapped = parse("SELECT my_agg(x), my_agg(array_sort(collect_list(x))) FROM t").selects
    assert is_aggregate(bare)
    assert not is_aggregate(wrapped)
