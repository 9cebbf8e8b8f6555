"""Queries that only FULL can keep: their orders are completed in the text, or refused."""

from __future__ import annotations

import pytest

from runnel.compile.rewrites.open_orders import ordered_text
from runnel.errors import InvalidQuery


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT a, b FROM t ORDER BY a LIMIT 3",
            "SELECT a, b FROM t ORDER BY a, 1, 2 LIMIT 3",
        ),
        ("SELECT * FROM t ORDER BY a LIMIT 3", "SELECT * FROM t ORDER BY a, 1, 2 LIMIT 3"),
        (
            "SELECT a, ROW_NUMBER() OVER (ORDER BY a) AS n FROM t",
            "SELECT a, ROW_NUMBER() OVER (ORDER BY a, STRUCT(*)) AS n FROM t",
        ),
        (
            "SELECT a, ROW_NUMBER() OVER (ORDER BY COUNT(*)) AS n FROM t GROUP BY 1, b + 1",
            "SELECT a, ROW_NUMBER() OVER (ORDER BY COUNT(*), a, b + 1) AS n FROM t GROUP BY 1, b + 1",
        ),
        (
            "SELECT a, LAST_VALUE(b) OVER w AS n FROM t WINDOW w AS (ORDER BY a)",
            "SELECT a, MAX_BY(b, STRUCT(a AS p0, STRUCT(*) AS p1)) OVER (ORDER BY a) AS n FROM t",
        ),
        (
            "SELECT LAST_VALUE(b) OVER (ORDER BY a, c DESC) AS n FROM t",
            "SELECT (TRY_ELEMENT_AT(ARRAY_SORT(COLLECT_LIST(STRUCT(a AS p0, c AS p1, STRUCT(*) AS p2, b AS v)) "
            "OVER (ORDER BY a, c DESC), (__l, __r) -> CASE WHEN __l.p0 IS NOT DISTINCT FROM __r.p0 THEN "
            "CASE WHEN __l.p1 IS NOT DISTINCT FROM __r.p1 THEN CASE WHEN __l.p2 IS NOT DISTINCT FROM __r.p2 THEN 0 "
            "WHEN (__l.p2) IS NULL THEN -1 WHEN (__r.p2) IS NULL THEN 1 WHEN (__l.p2) < (__r.p2) THEN -1 ELSE 1 END "
            "WHEN (__l.p1) IS NULL THEN 1 WHEN (__r.p1) IS NULL THEN -1 WHEN (__l.p1) > (__r.p1) THEN -1 ELSE 1 END "
            "WHEN (__l.p0) IS NULL THEN -1 WHEN (__r.p0) IS NULL THEN 1 WHEN (__l.p0) < (__r.p0) THEN -1 ELSE 1 END), "
            "-1)).v AS n FROM t",
        ),
    ],
)
def test_completed(query: str, expected: str) -> None:
    assert ordered_text(query, 2) == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM t",
        "SELECT a, b FROM t ORDER BY ALL LIMIT 3",
        "SELECT a, RANK() OVER (ORDER BY a) AS r FROM t",
        "SELECT a, LAST_VALUE(b) OVER (ORDER BY a, b DESC) AS n FROM t",
    ],
)
def test_what_is_decided_stays(query: str) -> None:
    assert ordered_text(query, 2) is None


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT a FROM (SELECT * FROM t ORDER BY a LIMIT 3) q", "LIMIT over"),
        ("SELECT a FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY a) = 1", "in this place"),
        ("SELECT NTILE(2) OVER (ORDER BY COUNT(*)) AS n FROM t GROUP BY CUBE (a)", "grouping sets"),
    ],
)
def test_what_cannot_be_completed_is_refused(query: str, words: str) -> None:
    with pytest.raises(InvalidQuery, match=words) as caught:
        ordered_text(query, 1)
    assert caught.value.hint
