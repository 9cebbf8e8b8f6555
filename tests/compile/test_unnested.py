"""UNNEST, which Spark has not, as the table function that it stands for."""

from __future__ import annotations

import pytest

from runnel.compile.rewrites.unnested import without_unnest
from runnel.errors import InvalidQuery


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT a, x FROM t, UNNEST(xs) AS u(x)",
            "SELECT a, x FROM t CROSS JOIN LATERAL EXPLODE(xs) AS u(x)",
        ),
        (
            "SELECT a, x FROM t LEFT JOIN UNNEST(t.xs) AS u(x) ON TRUE",
            "SELECT a, x FROM t LEFT JOIN LATERAL EXPLODE(t.xs) AS u(x) ON TRUE",
        ),
        ("SELECT x FROM UNNEST(array(1, 2)) AS u(x)", "SELECT x FROM EXPLODE(ARRAY(1, 2)) AS u(x)"),
        (
            "SELECT x, y FROM t CROSS JOIN UNNEST(xs, ys) AS u(x, y)",
            "SELECT x, y FROM t CROSS JOIN LATERAL INLINE(ARRAYS_ZIP(xs, ys)) AS u(x, y)",
        ),
    ],
)
def test_written_as_a_table_function(query: str, expected: str) -> None:
    assert without_unnest(query) == expected
    assert without_unnest(expected) == expected


def test_positions_are_refused_with_a_way_out() -> None:
    with pytest.raises(InvalidQuery, match="positions") as caught:
        without_unnest("SELECT x, n FROM t, UNNEST(xs) WITH ORDINALITY AS u(x, n)")
    assert caught.value.hint
    assert str(caught.value.place).startswith("line 1")
