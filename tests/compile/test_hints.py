"""Hints for Spark's planner: neither their tables nor their functions are the query's."""

from __future__ import annotations

import pytest

from runnel.compile.parse import parse
from runnel.compile.refuse import strange_functions
from runnel.compile.sources import redirect, source_names

_QUERY = "SELECT /*+ BROADCAST(c), REPARTITION(4, k) */ o.x FROM t o JOIN u c ON o.k = c.k"


def test_what_a_hint_names_is_no_source() -> None:
    assert [name.key for name in source_names(_QUERY)] == ["default.t", "default.u"]


def test_what_a_hint_calls_is_no_function() -> None:
    assert strange_functions(parse(_QUERY)) == frozenset()


@pytest.mark.parametrize("hint", ["/*+ MERGE(t) */", "/*+ COALESCE(1) */"])
def test_hints_stay_in_the_text_for_spark(hint: str) -> None:
    redirected = redirect(f"SELECT {hint} a FROM t", lambda name: "other")
    assert redirected == f"SELECT {hint} a FROM other AS `t`"
