"""Which sums may overflow while a change is added to them, though their totals fit."""

from __future__ import annotations

import pytest

from kit.typer import RuleTyper
from runnel.compile.build import SourceSchema
from runnel.compile.pipeline import compile_query
from runnel.model.columns import Column

_TYPES = {"i": "int", "l": "bigint", "d": "decimal(12,2)", "w": "decimal(38,2)", "f": "double"}
_SOURCE = SourceSchema("default.t", "delta", tuple(Column(n, t) for n, t in _TYPES.items()))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT i, SUM(l) AS s FROM t GROUP BY i", True),
        ("SELECT i, SUM(w) AS s FROM t GROUP BY i", True),
        ("SELECT s FROM (SELECT i, SUM(l) AS s FROM t GROUP BY i) WHERE s > 5", True),
        ("SELECT i, SUM(i) AS s, SUM(d) AS t, AVG(l) AS a, COUNT(l) AS n FROM t GROUP BY i", False),
        ("SELECT i, SUM(f) AS s, MAX(l) AS m FROM t GROUP BY i", False),
        ("SELECT l, w FROM t", False),
    ],
)
def test_only_sums_without_room(query: str, expected: bool) -> None:
    assert compile_query(query, [_SOURCE], RuleTyper()).can_overflow is expected
