"""Where SQL leaves a choice, the rewritten query makes it; what is decided already stays as it is."""

from __future__ import annotations

import pytest

from runnel.compile.parse import parse
from runnel.compile.rewrites.determinism import deterministic_text, make_deterministic


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("collect_list(x)", "ARRAY_SORT(COLLECT_LIST(x))"),
        ("array_agg(DISTINCT x)", "ARRAY_SORT(COLLECT_LIST(DISTINCT x))"),
        ("size(collect_set(x))", "SIZE(ARRAY_SORT(COLLECT_SET(x)))"),
        (
            "collect_list(x) FILTER (WHERE y > 1)",
            "ARRAY_SORT(COLLECT_LIST(x) FILTER(WHERE y > 1))",
        ),
        (
            "array_sort(collect_list(x), (a, b) -> a - b)",
            "ARRAY_SORT(ARRAY_SORT(COLLECT_LIST(x)), (a, b) -> a - b)",
        ),
        (
            "collect_list(x) OVER (PARTITION BY y)",
            "ARRAY_SORT(COLLECT_LIST(x) OVER (PARTITION BY y))",
        ),
        ("collect_set(x) OVER (ORDER BY y)", "ARRAY_SORT(COLLECT_SET(x) OVER (ORDER BY y))"),
        ("listagg(x)", "LISTAGG(x) WITHIN GROUP (ORDER BY x)"),
        ("listagg(DISTINCT x, ',')", "LISTAGG(DISTINCT x, ',') WITHIN GROUP (ORDER BY x)"),
        (
            "string_agg(x, '-') WITHIN GROUP (ORDER BY y DESC) FILTER (WHERE z)",
            "STRING_AGG(x, '-') WITHIN GROUP (ORDER BY y DESC, x) FILTER(WHERE z)",
        ),
        (
            "listagg(x, ',') OVER (PARTITION BY y)",
            "LISTAGG(x, ',') WITHIN GROUP (ORDER BY x) OVER (PARTITION BY y)",
        ),
        ("max_by(x, y)", "MAX_BY(x, CASE WHEN NOT y IS NULL THEN STRUCT(y AS o, x AS v) END)"),
        (
            "min_by(x, y, 3)",
            "MIN_BY(x, CASE WHEN NOT y IS NULL THEN STRUCT(y AS o, x AS v) END, 3)",
        ),
        ("mode(x)", "MODE(x, TRUE)"),
        ("mode(x, false)", "MODE(x, TRUE)"),
    ],
)
def test_a_choice_is_made_once(text: str, expected: str) -> None:
    made = deterministic_text(f"SELECT {text} AS c FROM t")
    assert made == f"SELECT {expected} AS c FROM t"
    assert deterministic_text(made) is None


@pytest.mark.parametrize(
    "text",
    [
        "SUM(x)",
        "array_sort(collect_list(x))",
        "sort_array(collect_set(x), false)",
        "listagg(DISTINCT x) WITHIN GROUP (ORDER BY x DESC)",
        "listagg(x) WITHIN GROUP (ORDER BY y, x)",
        "mode() WITHIN GROUP (ORDER BY x)",
        "mode(x, true)",
        "first(x) OVER (ORDER BY y)",
        "last_value(x) IGNORE NULLS OVER (ORDER BY y)",
        "collect_list(x) OVER (ORDER BY y)",
    ],
)
def test_what_is_decided_stays(text: str) -> None:
    tree = parse(f"SELECT {text} FROM t")
    assert make_deterministic(tree) is tree


def test_subqueries_are_rewritten_too() -> None:
    query = (
        "WITH c AS (SELECT mode(x) AS m FROM t) "
        "SELECT m FROM c WHERE m IN (SELECT max_by(x, y) FROM u)"
    )
    assert deterministic_text(query) == (
        "WITH c AS (SELECT MODE(x, TRUE) AS m FROM t) SELECT m FROM c WHERE m IN "
        "(SELECT MAX_BY(x, CASE WHEN NOT y IS NULL THEN STRUCT(y AS o, x AS v) END) FROM u)"
    )


def test_a_list_over_a_named_window_has_the_order_of_the_window() -> None:
    named = "SELECT collect_list(x) OVER w AS l FROM t WINDOW w AS ({})"
    assert deterministic_text(named.format("ORDER BY a")) is None
    assert deterministic_text(named.format("PARTITION BY a")) == (
        "SELECT ARRAY_SORT(COLLECT_LIST(x) OVER (PARTITION BY a)) AS l FROM t"
    )
